"""A learner's `recompute` on trial: the same values and gradients, nothing kept inside, and one more run.

TensorFlow has such a function, and so has the course. An answer that hands its work to one of these is none.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from kernels.recomputation import plan as plans
from kernels.recomputation import segments
from kernels.recomputation.framework import tf
from kernels.recomputation.tape import Tracker
from warplab.checks import CheckFailed

CHAINS = ((2, 1), (6, 3), (12, 4))  # layers, segment length
WIDTH, BATCH = 32, 1024
RTOL = 1e-5


def check_recompute(recompute: Callable[..., Any]) -> None:
    """Raise CheckFailed unless `recompute(f)` behaves as f in values and gradients, and keeps its arguments alone."""
    with _ready_made_refused() as ready_made:
        if recompute in ready_made:
            _refuse()
        for layers, length in CHAINS:
            _check(recompute, layers, length)
    print(f"recompute: right for {len(CHAINS)} chains.")


@contextlib.contextmanager
def _ready_made_refused() -> Iterator[tuple[Callable[..., Any], ...]]:
    """Let the ready-made functions refuse to work for a while; gives them as they are."""
    places = (tf, segments)
    names = ("recompute_grad", "recompute")
    ready_made = tuple(getattr(place, name) for place, name in zip(places, names, strict=True))
    try:
        for place, name in zip(places, names, strict=True):
            setattr(place, name, _refuse)
        yield ready_made
    finally:
        for place, name, function in zip(places, names, ready_made, strict=True):
            setattr(place, name, function)


def _refuse(*arguments: Any, **options: Any) -> None:
    raise CheckFailed(
        "recompute leaves the work to a ready-made function.",
        expected="your own, by tf.custom_gradient",
        got="tf.recompute_grad, or the course's recompute",
    )


def _check(recompute: Callable[..., Any], layers: int, length: int) -> None:
    where = f"{layers} layers in segments of {length}"
    given, plan = segments.chain(layers, WIDTH, BATCH), plans.even(layers, length)
    if recompute(segments.run) is None:
        raise CheckFailed("recompute is not written yet: it returns nothing.", kind="not written")
    expected = segments.step(given)
    try:
        found = segments.step(given, plan, recompute)
    except CheckFailed:
        raise
    except Exception as error:
        raise CheckFailed(
            f"a step with recompute raises {type(error).__name__}: {str(error)[:300]}", where=where, kind="exception"
        ) from error
    if abs(found.loss - expected.loss) > RTOL * abs(expected.loss):
        raise CheckFailed("the loss changes.", expected=f"{expected.loss:.6g}", got=f"{found.loss:.6g}", where=where)
    for k, (ours, theirs) in enumerate(zip(found.gradients, expected.gradients, strict=True)):
        size = float(tf.reduce_max(tf.abs(theirs)))
        if ours is None or float(tf.reduce_max(tf.abs(ours - theirs))) > RTOL * size:
            raise CheckFailed(
                f"the gradient of layer {k} is {'None' if ours is None else 'wrong'}.",
                expected="that of a step which keeps everything",
                where=where,
                look_at="what backward differentiates, with respect to what, and whether dy is in it",
            )
    kept = _kept(recompute, given, plan) / given.activation_bytes
    # The inputs of all segments but the first, and all of the last segment; a little for what the tape itself makes.
    room = len(plan) - 1 + layers - plan[-1]
    if kept > room + 0.5:
        raise CheckFailed(
            "after the forward pass too much is alive.",
            expected=f"{room} activations",
            got=f"{kept:.0f}",
            where=where,
            look_at="who else records what happens inside f",
        )
    wanted = plans.evaluations(plan, layers)
    if found.evaluations != wanted:
        raise CheckFailed(
            f"too {'many' if found.evaluations > wanted else 'few'} layers run.",
            expected=str(wanted),
            got=str(found.evaluations),
            where=where,
            look_at="how often f is called",
        )


def _kept(recompute: Callable[..., Any], given: segments.Chain, plan: plans.Plan) -> int:
    """Count bytes alive after the forward pass, less the chain's input, which answers may hold (`tf.stop_gradient`)."""
    with Tracker(before=[given.x]) as tracker, tf.GradientTape() as tape:
        out = segments.forward(given, plan, recompute)
    alive = tracker.live
    del out, tape
    return alive


def least_from(input_bytes: int, inside: list[int], least: list[int]) -> int:
    """Return L(i), by trying each end of the first segment. `inside`: of layers i on; `least`: L(i + 1) to L(n)."""
    return input_bytes + min(max(sum(inside[: k + 1]), rest) for k, rest in enumerate(least))


def whole_mean(means: list[float], sizes: list[int]) -> float:
    """Return the mean over all samples of micro-batches, from the mean of each and its size."""
    return sum(mean * size for mean, size in zip(means, sizes, strict=True)) / sum(sizes)
