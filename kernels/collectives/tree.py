"""Tree algorithms: few messages on the way from the root to the last rank, but not every link works all the time.

A rank sends one message at a time and receives one. N: bytes of a buffer, S: slices, k: ranks. Ranks are counted from
the root: v = (rank − root) mod k.
"""

import functools
from dataclasses import replace

from kernels.collectives.schedule import Schedule, Send
from kernels.collectives.sizes import check_sizes


def tree_broadcast(ranks: int, slices: int, root: int = 0) -> Schedule:
    """Return binomial tree: in each step, everybody who has the buffer sends all of it to somebody who has not.

    ⌈log2 k⌉ steps, one message of N bytes each, so S makes no difference; N bytes on each of the k − 1 links used, but
    one after the other: ⌈log2 k⌉·(α + N/B). Best for small N. MPI's standard broadcast for short messages: Thakur,
    Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (2005).
    """
    check_sizes(ranks, slices, root)
    sends = []
    for step in range(depth(ranks)):
        for v in range(min(2**step, ranks - 2**step)):
            sends.append(Send(step, (root + v) % ranks, (root + v + 2**step) % ranks, 0, False, slices))
    return Schedule("broadcast", ranks, slices, sends, root)


def binary_tree_broadcast(ranks: int, slices: int, root: int = 0) -> Schedule:
    """Return pipelined binary tree: v sends each slice to 2v + 1, and one step later to 2v + 2.

    2(S − 1) steps more than for S = 1, and that is at most 2·log2 k; N bytes per link, but a rank sends each slice
    twice, so at best 2N/B: half of the ring's speed, with a latency of log2 k instead of k steps. Sanders, Speck and
    Träff, as below.
    """
    check_sizes(ranks, slices, root)
    period = min(2, ranks - 1)  # how many messages the root sends per slice
    begin = [0] * ranks  # the step at which v sends slice 0 to its left child
    sends = []
    for v in range(1, ranks):
        parent, second = (v - 1) // 2, (v + 1) % 2
        begin[v] = begin[parent] + second + 1
        sends += [
            Send(begin[parent] + second + period * i, (root + parent) % ranks, (root + v) % ranks, i)
            for i in range(slices)
        ]
    return Schedule("broadcast", ranks, slices, sends, root)


def tree_all_reduce(ranks: int, slices: int, root: int = 0) -> Schedule:
    """Return sums flow up a pipelined binary tree, and down again as soon as a slice is complete.

    3 steps per slice, as a rank sends each slice up once and down twice, after a latency of at most 4·log2 k steps; N
    bytes per link and direction, 3N leave a rank: at best 3N/B, where the ring takes 2N/B. But the ring's latency grows
    with k. NCCL since 2.4 runs two such trees across nodes, its double binary tree, each for half of the data, with an
    inner node of one a leaf of the other, and so reaches 2N/B: Sanders, Speck and Träff, "Two-tree algorithms for full
    bandwidth broadcast, reduction and scan" (2009).

    Rank v sends up in steps that are its phase modulo 3, and receives from above in such steps; its children's phases
    are one and two less. So a rank sends one message per step and receives one.
    """
    check_sizes(ranks, slices, root)
    period = all_reduce_period(ranks)
    phase = [0] * ranks
    for v in range(1, ranks):
        phase[v] = (phase[(v - 1) // 2] - 1 - (v + 1) % 2) % period
    up = list(phase)  # the step at which v sends slice 0 up
    complete = [0] * ranks  # the step at which v has slice 0 of all below it
    for v in range(ranks - 1, 0, -1):
        up[v] = _next(complete[v], phase[v], period)
        parent = (v - 1) // 2
        complete[parent] = max(complete[parent], up[v] + 1)
    down = [complete[0] - 1] * ranks  # the step at which v receives the sum of slice 0
    sends = []
    for v in range(1, ranks):
        parent = (v - 1) // 2
        down[v] = _next(down[parent] + 1, phase[v], period)
        for i in range(slices):
            sends.append(Send(up[v] + period * i, (root + v) % ranks, (root + parent) % ranks, i, True))
            sends.append(Send(down[v] + period * i, (root + parent) % ranks, (root + v) % ranks, i))
    return Schedule("all-reduce", ranks, slices, _without_idle_steps(sends), root)


def all_reduce_period(ranks: int) -> int:
    """Return steps per slice of `tree_all_reduce`: what the busiest rank sends, up and to its children."""
    return 3 if ranks > 4 else (0, 0, 1, 2, 2)[ranks]


@functools.lru_cache(maxsize=1024)
def all_reduce_latency(ranks: int) -> int:
    """Return the steps of `tree_all_reduce` are `all_reduce_period` · S plus this, for all S but the smallest."""
    full = 2 * depth(ranks) + 2  # slices that fill the pipeline
    return tree_all_reduce(ranks, full).steps - all_reduce_period(ranks) * full


def depth(ranks: int) -> int:
    """Return ⌈log2 ranks⌉."""
    return (ranks - 1).bit_length()


def _next(least: int, phase: int, period: int) -> int:
    """Return the first step from `least` on that is `phase` modulo `period`."""
    return least + (phase - least) % period


def _without_idle_steps(sends: list[Send]) -> list[Send]:
    """Return the same sends, with steps counted without those in which nobody sends."""
    number = {step: i for i, step in enumerate(sorted({send.step for send in sends}))}
    return [replace(send, step=number[send.step]) for send in sends]
