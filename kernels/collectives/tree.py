"""Tree algorithms: few messages on the way from the root to the last rank, but not every link works all the time.

N: bytes of a buffer, S: slices, k: ranks. Ranks are counted from the root: v = (rank − root) mod k.
"""

from __future__ import annotations

from kernels.collectives.schedule import Schedule, Send
from kernels.collectives.sizes import check_sizes


def tree_broadcast(ranks: int, slices: int, root: int = 0) -> Schedule:
    """Binomial tree: in each step, everybody who has the buffer sends all of it to somebody who has not.

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
    """Pipelined binary tree: v sends each slice to 2v + 1, and one step later to 2v + 2.

    2(S − 1) steps more than for S = 1, and that is at most 2·log2 k; N bytes per link, but a rank sends each slice
    twice, so at best 2N/B: half of the ring's speed, with a latency of log2 k instead of k steps.
    """
    check_sizes(ranks, slices, root)
    begin = _begin(ranks, 0)
    return Schedule("broadcast", ranks, slices, _down(ranks, slices, root, begin), root)


def tree_all_reduce(ranks: int, slices: int, root: int = 0) -> Schedule:
    """Sums flow up a pipelined binary tree, and down again as soon as a slice is complete.

    2(S − 1) steps more than for S = 1, and that is at most 4·log2 k; N bytes per link and direction, at best 2N/B. The
    latency grows with log2 k, the ring's with k. On its way a rank sends up once and down twice per slice, so where all
    its links share one port, as behind a switch, the bound is 3N/B. NCCL since 2.4 runs two such trees, each for half of
    the data, with every rank a leaf in one of them: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth
    broadcast, reduction and scan" (2009).
    """
    check_sizes(ranks, slices, root)
    below = level(ranks - 1)
    sends = []
    for v in range(1, ranks):
        first = 2 * (below - level(v)) + (v + 1) % 2  # a left child (odd v) sends in even steps, a right one in odd
        sends += [
            Send(first + 2 * i, (root + v) % ranks, (root + (v - 1) // 2) % ranks, i, True) for i in range(slices)
        ]
    arrived = max((s.step for s in sends if s.destination == root and s.slice == 0), default=-1) + 1
    return Schedule("all-reduce", ranks, slices, [*sends, *_down(ranks, slices, root, _begin(ranks, arrived))])


def depth(ranks: int) -> int:
    """⌈log2 ranks⌉."""
    return (ranks - 1).bit_length()


def level(v: int) -> int:
    """How far v is from the root of a binary tree in heap order."""
    return (v + 1).bit_length() - 1


def _begin(ranks: int, root_begins: int) -> list[int]:
    """The step at which each v sends slice 0 to its left child."""
    begin = [root_begins] * ranks
    for v in range(1, ranks):
        begin[v] = begin[(v - 1) // 2] + (1 if v % 2 else 2)
    return begin


def _down(ranks: int, slices: int, root: int, begin: list[int]) -> list[Send]:
    sends = []
    for v in range(1, ranks):
        parent = (v - 1) // 2
        first = begin[parent] + (v + 1) % 2
        sends += [Send(first + 2 * i, (root + parent) % ranks, (root + v) % ranks, i) for i in range(slices)]
    return sends
