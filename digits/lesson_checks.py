"""Checks of the lesson's tasks whose answers are lists, arrays or kernels: a confusion matrix, occlusion, an epoch's
order, a curve after a crash, suppression of boxes. Each raises CheckFailed, or prints that the answer is right.
"""

import itertools
import json
import random
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from warplab.checks import Case, CheckFailed, called, kernel, shared_work
from warplab.checks.errors import wrong_type

SEED = 12
CLASSES = 10


def check_confusion(confusion: Any) -> None:
    """Raise CheckFailed unless a thread per image adds 1 to matrix[label, guess], a square of int32, by an atomic."""
    shared = shared_work(lambda n: n, instructions=300, atomics=lambda n: n, bytes_loaded=16, busy=0.4)
    try:
        kernel(confusion, _labelled, shared=shared, language="Numba")
    except CheckFailed as failed:
        if failed.kind == "race" or "data race" in failed.look_at:
            failed = failed.but(
                look_at="two images of the same class with the same guess: both threads read, add 1 and write.\n"
                "cuda.atomic.add(array, index, value) does that as one operation; an index may be a tuple"
            )
        elif failed.kind == "wrong result":  # equal counts are no sign of another element
            failed = failed.but(
                look_at="the index, a row for the label, a column for the guess; which images are counted"
            )
        raise failed from None


def _labelled(rng: np.random.Generator, n: int) -> Case:
    labels = rng.integers(0, CLASSES, n)
    guesses = np.where(rng.random(n) < 0.6, labels, rng.integers(0, CLASSES, n))
    before = rng.integers(0, 5, (CLASSES, CLASSES)).astype(np.int32)  # a second batch adds to the first
    after = before.copy()
    np.add.at(after, (labels, guesses), 1)
    return Case({"labels": labels, "guesses": guesses, "matrix": before}, {"matrix": after})


def occluded(image: np.ndarray, scores: Callable[[np.ndarray], np.ndarray], size: int) -> np.ndarray:
    """Return how much a score falls where a square of the image is covered with 0.

    `image`: (h, w). `scores`: from images (n, h, w) to n numbers. Returns float64, (h - size + 1, w - size + 1): at
    (y, x) for the square whose upper left corner is there.
    """
    height, width = image.shape[0] - size + 1, image.shape[1] - size + 1
    covered = np.repeat(image[None], height * width, axis=0)
    for place in range(height * width):
        y, x = divmod(place, width)
        covered[place, y : y + size, x : x + size] = 0
    return (scores(image[None])[0] - np.asarray(scores(covered))).reshape(height, width)


def check_occlusion(occlusion: Callable[..., Any], seed: int = SEED) -> None:
    """Raise CheckFailed unless occlusion(image, scores, size) is `occluded`, with few calls of `scores`."""
    rng = np.random.default_rng(seed)
    cases = [((4, 4), 2), ((8, 8), 3), ((5, 7), 1), ((6, 6), 6)]
    for shape, size in cases:
        image, weights = rng.integers(1, 10, shape).astype(float), rng.integers(1, 10, shape).astype(float)
        calls = 0

        def scores(images: np.ndarray, weights: np.ndarray = weights) -> np.ndarray:
            nonlocal calls
            calls += 1
            stack = np.asarray(images)
            if stack.ndim != 3 or stack.shape[1:] != weights.shape:
                wanted = ", ".join(map(str, weights.shape))
                raise ValueError(f"scores takes images of shape (n, {wanted}), and got {stack.shape}")
            return (stack * weights).sum(axis=(1, 2))

        where = f"an image of {shape[0]} × {shape[1]}, size {size}, seed {seed}"
        mine = image.copy()
        got = _array(called(occlusion, where, mine, scores, size), "occlusion", where)
        asked, right = calls, occluded(image, scores, size)
        if not np.array_equal(mine, image):
            raise CheckFailed(
                "occlusion changes the image that it was given.",
                where=where,
                look_at="what is covered: a copy of the image for each place",
                kind="input modified",
            )
        _same(got, right, "occlusion", where, "which pixels are covered, with what, and the sign: how much it falls")
        if asked > 2 and right.size > 2:
            raise CheckFailed(
                "occlusion is right, but asks the network too often.",
                expected="all covered images in one call of scores, as a stack",
                got=f"{asked} calls for {right.size} places",
                where=where,
                look_at="where scores is called: inside the loop, or once after it",
                kind="limit",
            )
    print(f"occlusion: right for {len(cases)} images, seed {seed}.")


def check_order(order: Callable[..., Any]) -> None:
    """Raise CheckFailed unless order(seed, epoch, count) is a permutation that depends on these three alone."""
    asked = [(seed, epoch, 50) for seed in (0, 1, 2) for epoch in (0, 1, 2, 3)]
    orders = {}
    for seed, epoch, count in asked:
        where = f"order({seed}, {epoch}, {count})"
        found = _array(called(order, where, seed, epoch, count), "order", where)
        if sorted(found.ravel().tolist()) != list(range(count)):
            raise CheckFailed(
                "order does not return each image once.",
                expected=f"the numbers 0 to {count - 1}, each once, in some order",
                got=f"{found.size} numbers, {len(np.unique(found))} different",
                where=where,
            )
        orders[seed, epoch] = found.ravel().tolist()
    np.random.seed(99)  # noqa: NPY002, what a process that starts in the middle has: another state
    random.seed(99)
    for seed, epoch, count in reversed(asked):
        again = np.asarray(called(_elsewhere(order), "", seed, epoch, count)).ravel().tolist()
        if again != orders[seed, epoch]:
            raise CheckFailed(
                "order gives another order when it is asked again.",
                expected="the same order, also in a process that was started anew",
                got="two different ones",
                where=f"order({seed}, {epoch}, {count}), asked twice",
                look_at="what the random numbers come from: a generator made inside the function, of seed and epoch",
            )
    for one in orders:
        for other in orders:
            if one < other and orders[one] == orders[other]:
                raise CheckFailed(
                    "order gives two epochs the same order.",
                    expected="another order for another epoch, and for another seed",
                    got=f"the same for (seed, epoch) = {one} and {other}",
                    look_at="whether seed and epoch both count, and do not cancel: "
                    "default_rng also takes a list of numbers",
                )
            in_a_row = [set(itertools.pairwise(orders[each])) for each in (one, other)]
            if one < other and len(in_a_row[0] & in_a_row[1]) > count / 2:
                raise CheckFailed(
                    "order gives two epochs the same images in a row.",
                    got=f"most neighbours are the same for (seed, epoch) = {one} and {other}",
                    look_at="what is random in an epoch: batches of the same images in another turn are no new order",
                )
    print(f"order: right for {len(asked)} epochs.")


def _elsewhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` as it is in another process, where `hash` gives a text another number."""
    if not isinstance(function, FunctionType):
        return function
    names = {"hash": lambda value: hash(value) ^ ("'" in repr(value)), **function.__globals__}
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)


def check_kept(kept: Callable[..., Any]) -> None:
    """Raise CheckFailed unless kept(text, step) reads JSON lines, skips a torn last one and what comes after `step`."""
    steps = (10, 20, 20, 30, 40, 40, 50)  # both parts have points of some steps
    points = [{"step": step, "loss": round(2.3 / (10 + step), 4)} for step in steps]
    lines = [json.dumps(point) + "\n" for point in points]
    whole = "".join(lines)
    table = [
        (whole, 50, points, "a whole file"),
        (whole, 30, points[:4], "a whole file"),
        (whole + '{"step": 60, "lo', 99, points, "a torn last line"),
        (whole + '{"step"', 40, points[:6], "a torn last line"),
        ('{"st', 3, [], "a torn first line"),
        ("", 3, [], "an empty file"),
    ]
    for text, step, right, what in table:
        where = f"kept(text, {step}), {what}: text ends with {text[-18:]!r}"
        got = called(kept, where, text, step)
        if not isinstance(got, list) or not all(isinstance(point, dict) for point in got):
            shown, advice = f"{type(got).__name__}: {got!r}"[:80], "json.loads, which makes a dictionary of a line"
            raise _wrong_type("kept", "a list of dictionaries", shown, where, advice)
        if got != right:
            raise CheckFailed(
                "kept returns the wrong points.",
                expected=f"steps {[point['step'] for point in right]}",
                got=f"steps {[point.get('step') for point in got]}",
                where=where,
                look_at="the last line, and which steps the checkpoint has seen: step itself is one of them",
            )
    print(f"kept: right for {len(table)} files.")


def check_best_epoch(best_epoch: Callable[..., Any]) -> None:
    """Raise CheckFailed unless best_epoch(losses, patience) is the epoch of the lowest loss so far when training ends:
    after `patience` epochs without a new lowest."""
    table = [
        (([0.9, 0.5, 0.3, 0.2], 2), 3),
        (([0.9, 0.5, 0.6, 0.7, 0.1], 2), 1),
        (([0.9, 0.5, 0.6, 0.4, 0.7], 2), 3),
        (([0.9, 0.5, 0.6, 0.7, 0.1], 3), 4),
        (([0.3, 0.3, 0.3, 0.2], 2), 0),
        (([0.9, 1.0, 0.5, 0.6, 0.4], 2), 4),
        (([0.3, 0.6, 0.5, 0.4], 2), 0),
        (([0.7], 1), 0),
    ]
    for (losses, patience), right in table:
        where = f"best_epoch({losses}, {patience})"
        got = called(best_epoch, where, list(losses), patience)
        if isinstance(got, bool) or not isinstance(got, int | np.integer):
            shown = f"{type(got).__name__}: {got!r}"
            raise _wrong_type("best_epoch", "the number of an epoch, from 0", shown, where)
        if got != right:
            raise CheckFailed(
                "best_epoch returns the wrong epoch.",
                expected=repr(right),
                got=repr(int(got)),
                where=where,
                look_at="when training ends: what comes later is never seen, and an equal loss is no new lowest",
            )
    print(f"best_epoch: right for {len(table)} curves.")


def suppressed(scores: np.ndarray, overlap: np.ndarray, limit: float) -> list[int]:
    """Return non-maximum suppression: indices of the boxes that are kept, best first.

    `scores`: (n,). `overlap`: (n, n), IoU of each pair. A box goes if it overlaps a kept one by more than `limit`.
    """
    kept: list[int] = []
    for i in np.argsort(-np.asarray(scores), kind="stable").tolist():
        if all(overlap[i, j] <= limit for j in kept):
            kept.append(i)
    return kept


def check_nms(nms: Callable[..., Any], seed: int = SEED) -> None:
    """Raise CheckFailed unless nms(scores, overlap, limit) is `suppressed`."""
    rng = np.random.default_rng(seed)
    # The second box goes because of the first, so it cannot take the third with it.
    chain = np.array([[1, 0.6, 0.1], [0.6, 1, 0.6], [0.1, 0.6, 1]])
    cases = [(np.array([0.9, 0.8, 0.7]), chain, 0.5), (np.array([0.7, 0.8, 0.9]), chain, 0.7)]
    cases.append((np.array([0.8, 0.9, 0.7]), chain, 0.6))  # as much as the limit is not more
    for n in (1, 5, 12, 30):
        half = np.triu(rng.random((n, n)), 1)
        cases.append((rng.permutation(n) / n, half + half.T + np.eye(n), 0.8))
    for scores, overlap, limit in cases:
        few = len(scores) < 6
        shown = f"scores {scores.tolist()}, overlap {overlap.tolist()}" if few else f"{len(scores)} boxes, seed {seed}"
        where = f"{shown}, limit {limit}"
        got, right = called(nms, where, scores.copy(), overlap.copy(), limit), suppressed(scores, overlap, limit)
        if not isinstance(got, list | tuple | np.ndarray):
            raise _wrong_type("nms", "a list of numbers of boxes", type(got).__name__, where)
        if [int(i) for i in got] != right:
            raise CheckFailed(
                "nms keeps the wrong boxes.",
                expected=str(right),
                got=str([int(i) for i in got]),
                where=where,
                look_at="the order, best score first, and with which boxes one is compared: only those that are kept",
            )
    print(f"nms: right for {len(cases)} sets of boxes, seed {seed}.")


def _array(got: Any, name: str, where: str) -> np.ndarray:
    try:
        found = np.asarray(got)
    except ValueError:
        found = np.array(None)
    if found.dtype.kind not in "iuf":
        raise _wrong_type(name, "an array of numbers", type(got).__name__, where)
    return found


def _wrong_type(name: str, expected: str, got: str, where: str, look_at: str = "") -> CheckFailed:
    problem = f"{name} returns the wrong type."
    return wrong_type(problem, expected=expected, got=got, where=where, look_at=look_at)


def _same(got: np.ndarray, right: np.ndarray, name: str, where: str, look_at: str) -> None:
    if got.shape != right.shape:
        raise wrong_type(
            f"{name} returns the wrong shape.",
            expected=str(right.shape),
            got=str(got.shape),
            where=where,
            look_at="how many places the square has: from 0 to where it touches the other edge",
        )
    wrong = ~np.isclose(got, right, rtol=1e-6, atol=1e-9)
    if wrong.any():
        first = tuple(map(int, np.argwhere(wrong)[0]))
        raise CheckFailed(
            f"{name} returns the wrong value.",
            expected=f"{right[first]:g} at {first}",
            got=f"{got[first]:g}, and {int(wrong.sum())} of {wrong.size} values are wrong",
            where=where,
            look_at=look_at,
        )
