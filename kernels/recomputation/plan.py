"""Which activations to keep: plans that cut a chain of layers into segments, and the memory and work they take.

The model. Layer i reads `inputs[i]` bytes and keeps `inside[i]` bytes for its backward pass, its output among them. A
plan is a tuple of the layers at which segments begin, the first of them 0. The forward pass keeps the input of each
segment alone. The backward pass takes segments from the last to the first: it runs a segment again, keeping
everything inside, differentiates it, and drops both. While segment j is differentiated there are in memory

    the inputs of segments 0 to j  +  what the layers of segment j keep inside

and the most of these is the plan's peak. Weights, gradients and temporary arrays of a layer are not in it. The last
segment is differentiated right after it has run, so it need not run twice.

The idea, and √n for equal layers: Chen and others, "Training Deep Nets with Sublinear Memory Cost" (2016),
https://arxiv.org/abs/1604.06174.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Plan = tuple[int, ...]


def even(layers: int, length: int) -> Plan:
    """Return segments of `length` layers each; the last may be shorter. ValueError unless both are at least 1."""
    if layers < 1 or length < 1:
        raise ValueError(f"a plan needs at least one layer and segments of at least one, not {layers} and {length}")
    return tuple(range(0, layers, length))


def square_root(layers: int) -> Plan:
    """Return segments of √layers layers, rounded to the nearest whole number."""
    return even(layers, max(1, round(math.sqrt(layers))))


def segments(plan: Plan, layers: int) -> list[range]:
    """Return the layers of each segment. ValueError unless a plan begins at 0, rises, and ends before `layers`."""
    ends = (*plan[1:], layers)
    if not plan or plan[0] != 0 or any(first >= end for first, end in zip(plan, ends, strict=True)):
        raise ValueError(f"{plan} is no plan for {layers} layers; it must begin with 0 and rise, each below {layers}")
    return [range(first, end) for first, end in zip(plan, ends, strict=True)]


def peak(plan: Plan, inputs: Sequence[float], inside: Sequence[float]) -> float:
    """Return bytes of activations at the plan's peak. `inputs`, `inside`: bytes of each layer."""
    kept, most = 0.0, 0.0
    for segment in segments(plan, _layers(inputs, inside)):
        kept += inputs[segment[0]]
        most = max(most, kept + sum(inside[segment.start : segment.stop]))
    return most


def kept_all(inputs: Sequence[float], inside: Sequence[float]) -> float:
    """Return bytes of activations at the peak of an ordinary step, which keeps everything."""
    return peak((0,), inputs, inside)


def evaluations(plan: Plan, layers: int) -> int:
    """Return how many layers run forward in one step: all of them once, and all but the last segment's once more."""
    return layers + sum(map(len, segments(plan, layers)[:-1]))


def best(inputs: Sequence[float], inside: Sequence[float]) -> Plan:
    """Return the plan with the least peak, by dynamic programming in O(layers²).

    least[i] is the least peak of layers i to the end, counted without what was kept before i. The first segment ends
    at some k. Its input stays until the end, so least[i] = inputs[i] + min over k of max(inside of i to k, least[k]).
    """
    n = _layers(inputs, inside)
    least: list[tuple[float, int]] = [(0.0, 0)] * n + [(0.0, 0)]
    following = [n] * n
    for i in range(n - 1, -1, -1):
        found, total = (math.inf, n), 0.0
        for k in range(i + 1, n + 1):
            total += inside[k - 1]
            candidate = inputs[i] + max(total, least[k][0]), 1 + least[k][1]
            if candidate < found:
                found, following[i] = candidate, k
        least[i] = found
    starts, i = [], 0
    while i < n:
        starts.append(i)
        i = following[i]
    return tuple(starts)


@dataclass(frozen=True)
class Lifetime:
    """When the output of `layer` is in memory, in layers run, forward and backward. `again`: it was made again."""

    layer: int
    begin: float
    end: float
    again: bool


def lifetimes(plan: Plan, layers: int) -> list[Lifetime]:
    """Return all activations of a step through equal layers, each of which keeps its output; less the chain's input.

    The output that ends a segment is made twice: it is the next one's input, and what its own layer keeps.
    """
    *again, last = segments(plan, layers)
    forward = {i: i + 1 for i in range(layers)}  # the time at which layer i has run
    found, now = [], layers
    ends = {}
    for segment, recomputed in [(last, False), *((segment, True) for segment in reversed(again))]:
        born = forward
        if recomputed:
            born = {i: now + k for k, i in enumerate(segment, 1)}
            now += len(segment)
        for i in reversed(segment):
            now += 1
            found.append(Lifetime(i, born[i], now, recomputed))
        ends[segment.start - 1] = now  # its input has done its duty
    return found + [Lifetime(i, forward[i], ends[i], False) for i in ends if i >= 0]


def every_plan(layers: int) -> Iterator[Plan]:
    """Yield all 2^(layers - 1) plans, for few layers."""
    for count in range(layers):
        for starts in itertools.combinations(range(1, layers), count):
            yield (0, *starts)


def _layers(inputs: Sequence[float], inside: Sequence[float]) -> int:
    if len(inputs) != len(inside) or not len(inputs):
        raise ValueError(f"inputs has {len(inputs)} layers and inside {len(inside)}; both need the same, at least one")
    if min(*inputs, *inside) < 0:
        raise ValueError("a layer has a negative number of bytes; inputs and inside hold sizes")
    return len(inputs)
