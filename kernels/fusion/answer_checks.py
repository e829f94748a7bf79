"""Checks of a learner's answers in exercise 09: passes, divergences, a bound, lifetimes and placements.

They say what is wrong with an answer, as `warplab.checks` does, and hold no answer of their own.
"""

import copy
import functools
import math

import numpy as np

from kernels.fusion.plain_graphs import channels, listing, multiply_adds, run
from warplab import checks
from warplab.checks.called import line_of_code


def check_pass(change, graph, launches, rng, gone=()):
    """Run what the pass `change` makes of a graph; raise CheckFailed unless it is right, in so many launches or fewer.

    `gone`: ops of which no node may be left.
    """
    name, where = getattr(change, "__name__", "the pass"), f"this graph:\n{listing(graph)}"

    def failed(problem, **more):
        return checks.CheckFailed(f"{name}: {problem}", where=where, **more)

    try:
        got = change(copy.deepcopy(graph))
    except Exception as error:
        problem, line = f"{name} raises {type(error).__name__}: {error}", line_of_code(error, change)
        raise checks.CheckFailed(problem, where=where, look_at=line, kind="exception") from error
    if got is None:
        raise failed("not written yet, it returns nothing.", look_at="the return statement", kind="not written")
    if not isinstance(got, dict) or not {"inputs", "outputs", "nodes"} <= got.keys():
        raise failed("it returns no graph.", expected="a dict", got=type(got).__name__, kind="wrong type")
    if got["inputs"] != graph["inputs"] or got["outputs"] != graph["outputs"]:
        raise failed("it changes the graph's inputs or outputs.", got=f"{got['inputs']}, {got['outputs']}")
    images = {tensor: rng.normal(size=(count, 4, 5)) for tensor, count in graph["inputs"].items()}
    right = run(graph, images)
    try:
        got = got | {"nodes": list(got["nodes"])}
        text, work, most = listing(got), multiply_adds(got), max(channels(got).values())
        if work > multiply_adds(graph):
            raise failed("more multiply-adds than before.", expected=f"{multiply_adds(graph)} per pixel", got=f"{work}")
        if most > sum(channels(graph).values()):
            raise ValueError(f"a tensor has {most} channels")
        found = run(got, images)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise failed("the graph that it returns cannot run.", got=str(error)) from None
    for tensor in graph["outputs"]:
        wanted, came = right[tensor], found[tensor]
        if wanted.shape != came.shape:
            sizes = {"expected": f"{len(wanted)} channels", "got": f"{len(came)} channels"}
            raise failed(f"the output {tensor} has the wrong size.", **sizes)
        error = np.nan_to_num(np.abs(came - wanted), nan=np.inf)
        if error.max() <= 1e-9 * np.abs(wanted).max():
            continue
        at = tuple(map(int, np.unravel_index(error.argmax(), error.shape)))
        differ = (x for x in right if x in found and found[x].shape == right[x].shape)
        first = next((x for x in differ if not np.allclose(found[x], right[x], 1e-8, 1e-9)), tensor)
        raise failed(
            f"the output {tensor} is wrong.",
            expected=f"{tensor}{list(at)} = {wanted[at]:.9g}",
            got=f"{tensor}{list(at)} = {came[at]:.9g}",
            look_at=f"what writes {first} in the graph returned:\n{text}",
        )
    left = [node["op"] for node in got["nodes"] if node["op"] in gone]
    if left or len(got["nodes"]) > launches:
        raise failed(
            f"{left[0]} is left in the graph." if left else "too many launches.",
            expected=f"at most {launches} nodes" + (f", no {' and no '.join(gone)}" if gone else ""),
            got=f"{len(got['nodes'])} nodes",
            look_at=f"what could still be changed in the graph returned:\n{text}",
            kind="limit",
        )


def try_pass(change, draw, count, gone=()):
    """Check a pass on so many drawn graphs; `draw(rng)` returns a graph and the launches allowed."""

    def tried(rng):
        check_pass(change, *draw(rng), rng, gone)

    checks.trials(getattr(change, "__name__", "the pass"), tried, count)


class Infinite(Exception):
    """Stands for an infinite divergence, since a check compares finite numbers."""


def compared(check, divergence, *arguments, **options):
    """Run a check of divergence; where it fails for Infinite, say what was returned and expected."""

    def finite(histogram, bins, levels):
        try:
            found = divergence(histogram, bins, levels)
        except Exception as error:
            if type(error).__name__ != Infinite.__name__:  # a class of that name comes from another process, too
                raise
            raise TypeError("expected that divergence returns a number") from error
        if isinstance(found, float | np.floating) and found == math.inf:
            raise Infinite("the divergence is infinite")
        return found

    finite.__name__ = "divergence"
    try:
        check(finite, *arguments, **options)
    except checks.CheckFailed as failed:
        if failed.problem.endswith("does not raise."):
            problem, sides = f"divergence returns {failed.got}, expected inf.", ("inf", failed.got)
        elif failed.problem.startswith("divergence raises Infinite:"):
            problem, sides = "divergence returns inf, expected a finite number.", ("a finite number", "inf")
        else:
            raise
        raise checks.CheckFailed(problem, expected=sides[0], got=sides[1], where=failed.where) from None


def check_bound(error_bound, most, w, q, scale, step):
    """Run error_bound on one filter; raise CheckFailed unless it is a bound of `most`, the largest error, and close."""
    where = f"error_bound(w={w!r}, q={q!r}, scale={scale}, step={step})"
    failed = functools.partial(checks.CheckFailed, where=where)
    got = error_bound(w, q, scale, step)
    if got is None:
        raise failed("error_bound is not written yet, it returns nothing.", kind="not written")
    if not isinstance(got, int | float | np.integer | np.floating) or isinstance(got, bool) or not math.isfinite(got):
        wanted = "a finite number"
        raise failed("error_bound returns the wrong type.", expected=wanted, got=repr(got))
    if got < most * (1 - 1e-6):
        raise failed(
            "the error can be larger than error_bound says.",
            expected=f"at least {most:.6g}: there are activations with that error",
            got=f"{got:.6g}",
            look_at="the worst that each activation can do, whatever the others do",
        )
    if got > most * 1.01:
        raise failed(
            "error_bound says more than the error can be.",
            expected=f"at most 1 % above the largest error, {most:.6g}",
            got=f"{got:.6g}, {got / most:.3g} times as much",
            look_at="what is known: the weights and what is used instead of them",
        )


def check_lifetimes(lifetimes, graph, pixels, right):
    """Run lifetimes on one graph; raise CheckFailed where it is not `right`."""
    failed = functools.partial(checks.CheckFailed, where=f"pixels={pixels}, this graph:\n{listing(graph)}")
    got = lifetimes(copy.deepcopy(graph), pixels)
    if got is None:
        raise failed("lifetimes is not written yet, it returns nothing.", kind="not written")
    if not isinstance(got, dict) or got.keys() != right.keys():
        names = ", ".join(map(str, got)) if isinstance(got, dict) else type(got).__name__
        raise failed("lifetimes has other tensors than nodes write.", expected=", ".join(right), got=names)
    for name, wanted in right.items():
        parts = list(got[name]) if isinstance(got[name], tuple | list) else []
        if parts == list(wanted):
            continue
        pairs = zip(("bytes", "first", "last"), wanted, parts, strict=False)
        raise failed(
            f"lifetimes is wrong for {name}.",
            expected=f"(bytes, first, last) = {wanted}",
            got=repr(got[name]),
            look_at=", ".join(what for what, a, b in pairs if a != b) or "how many parts it has",
        )


def check_place(place, tensors, limit):
    """Run place once; raise CheckFailed where a placement is impossible or ends behind the limit."""
    rows = "\n".join(f"{name}: {size} bytes, {first} to {last}" for name, (size, first, last) in tensors.items())
    where = f"limit {limit}, these tensors, alive from launch to launch:\n{rows}"
    failed = functools.partial(checks.CheckFailed, where=where)
    got = place(dict(tensors), limit)
    if got is None:
        raise failed("place is not written yet, it returns nothing.", kind="not written")
    if not isinstance(got, dict) or got.keys() != tensors.keys():
        names = ", ".join(map(str, got)) if isinstance(got, dict) else type(got).__name__
        raise failed("place has other tensors than it was given.", got=names)
    for name, offset in got.items():
        whole = isinstance(offset, int | np.integer) and not isinstance(offset, bool)
        if not whole or offset < 0 or offset % 256:
            wanted = "a multiple of 256 from 0 on"
            raise failed(f"no offset for {name}.", expected=wanted, got=repr(offset))
    ends = {name: int(got[name]) + size for name, (size, _, _) in tensors.items()}
    for one, (_, first, last) in tensors.items():
        for other, (_, other_first, other_last) in tensors.items():
            launches = max(first, other_first), min(last, other_last)
            if one < other and launches[0] <= launches[1] and got[one] < ends[other] and got[other] < ends[one]:
                raise failed(
                    f"{one} and {other} overlap while both are alive.",
                    expected=f"no byte in common: both are alive in launch {launches[0]}",
                    got=f"bytes {got[one]} to {ends[one]}, and {got[other]} to {ends[other]}",
                )
    if max(ends.values()) > limit:
        last = max(ends, key=ends.get)
        raise failed(
            "more memory than allowed.",
            expected=f"at most {limit} bytes",
            got=f"{ends[last]} bytes, since {last} begins at {got[last]}",
            look_at="in which order tensors get their places, and whether one takes the lowest place where it fits",
            kind="limit",
        )
