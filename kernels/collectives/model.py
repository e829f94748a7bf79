"""The alpha–beta model: a message of n bytes takes α + n/B seconds.

α: seconds per message, whatever its size; B: bytes per second of a link, in each direction (full duplex). Messages much
smaller than αB are bound by latency, much larger ones by bandwidth. A rank sends one message at a time and receives one
meanwhile (the schedules of this lab never do more in one step), a step takes as long as its longest message, and
messages do not slow each other down (`topology` drops that last assumption). Adding costs nothing. Then a broadcast
round a ring of k ranks in S slices of N/S bytes takes

    t(S) = (S + k − 2) · (α + N/(S·B))
         = N/B  +  (k − 2)·α  +  S·α  +  (k − 2)·N/(S·B)

Small S: while the ring fills, k − 2 links wait for a large slice. Large S: every slice costs α. The sum of the last two
terms is least where they are equal, at S* = √((k − 2)·N/(α·B)), and there

    t(S*) = (√(N/B) + √((k − 2)·α))²

Beyond S* the time rises towards S·α. Hockney, "The communication challenge for MPP" (1994), has the model; α and B are
his startup time and asymptotic bandwidth.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from kernels.collectives import recursive, ring, scatter_gather, tree
from kernels.collectives.schedule import Schedule


@dataclass(frozen=True)
class Link:
    """A kind of link: `alpha` in seconds per message, `bandwidth` in bytes per second, in one direction."""

    alpha: float
    bandwidth: float

    def __post_init__(self) -> None:
        if not (self.alpha >= 0 and self.bandwidth > 0):
            raise ValueError(f"a link has alpha ≥ 0 s and bandwidth > 0 bytes/s, not {self.alpha} and {self.bandwidth}")

    def seconds(self, n: float) -> float:
        """Return what a message of n bytes takes."""
        return self.alpha + n / self.bandwidth


# --- Times of algorithms -------------------------------------------------------------------------------------------
# n: bytes of a buffer (bus and algorithm bandwidth count the same N); k: ranks; s: slices.


def pipeline(n: float, link: Link, s: float, per_slice: float, latency: float) -> float:
    """Return seconds of a pipeline of per_slice · S + latency steps, each with a message of N/S bytes."""
    return (per_slice * s + latency) * link.seconds(n / s)


def best_pipeline(n: float, link: Link, per_slice: float, latency: float) -> float:
    """Return the S at which `pipeline` is least, a real number ≥ 1; infinite if messages cost nothing (α = 0)."""
    if latency <= 0:
        return 1.0
    return max(1.0, math.sqrt(latency * n / (per_slice * link.alpha * link.bandwidth))) if link.alpha else math.inf


def ring_broadcast(n: float, k: int, s: float, link: Link) -> float:
    """Return (S + k − 2)(α + N/(SB)); no time for one rank."""
    return pipeline(n, link, s, 1, k - 2) if k > 1 else 0.0


def best_slices(n: float, k: int, link: Link) -> float:
    """Return S* = √((k − 2)N/(αB)) of the ring broadcast, a real number, at least 1. For k = 2 one slice is best."""
    return best_pipeline(n, link, 1, k - 2)


def best_ring_broadcast(n: float, k: int, link: Link) -> float:
    """Return (√(N/B) + √((k − 2)α))², the ring broadcast with the best real S; what S = 1 takes where S* is below 1."""
    if k < 2:
        return 0.0
    if math.isinf(best := best_slices(n, k, link)):
        return n / link.bandwidth
    return ring_broadcast(n, k, best, link)


def tree_broadcast(n: float, k: int, s: float, link: Link) -> float:
    """Return binomial: ⌈log2 k⌉(α + N/B). S makes no difference."""
    return tree.depth(k) * link.seconds(n)


def binary_tree_broadcast(n: float, k: int, s: float, link: Link) -> float:
    """Return (2S + L − 2)(α + N/(SB)), L: the steps of one slice alone, at most 2·log2 k. For k = 2, a chain."""
    return pipeline(n, link, s, *_binary_broadcast(k)) if k > 1 else 0.0


def scatter_all_gather_broadcast(n: float, k: int, s: float, link: Link) -> float:
    """Return the seconds of a scatter (half of the parts, then a quarter, and so on), then (k − 1)S/k slices."""
    away = [1 << i for i in range(tree.depth(k))]
    parts = [min(a, k - a) for a in away]  # the longest message of a step is the root's
    return sum(link.seconds(p * n / k) for p in parts) + (k - 1) * s / k * link.seconds(n / s)


def ring_reduce_scatter(n: float, k: int, s: float, link: Link) -> float:
    """Return (k − 1)(S/k)(α + N/(SB)): for S = k, (k − 1)α + (k − 1)/k · N/B. All-gather takes the same."""
    return (k - 1) * s / k * link.seconds(n / s)


def ring_all_reduce(n: float, k: int, s: float, link: Link) -> float:
    """Return twice a reduce-scatter: for S = k, 2(k − 1)α + 2(k − 1)/k · N/B."""
    return 2 * ring_reduce_scatter(n, k, s, link)


def tree_all_reduce(n: float, k: int, s: float, link: Link) -> float:
    """Return (3S + L)(α + N/(SB)) for k > 4, L < 4·log2 k; for the smallest S idle steps make it a little less."""
    return pipeline(n, link, s, tree.all_reduce_period(k), tree.all_reduce_latency(k)) if k > 1 else 0.0


def recursive_doubling_all_reduce(n: float, k: int, s: float, link: Link) -> float:
    """Return log2 k · (α + N/B). S makes no difference."""
    return math.log2(k) * link.seconds(n)


def halving_doubling_all_reduce(n: float, k: int, s: float, link: Link) -> float:
    """Return 2 log2 k · α + 2(k − 1)/k · N/B. S makes no difference."""
    return 2 * math.log2(k) * link.alpha + 2 * (k - 1) / k * n / link.bandwidth


def hierarchical_ring_all_reduce(n: float, nodes: int, per_node: int, inside: Link, across: Link) -> float:
    """Return 2(g − 1)(α + N/(gB)) inside nodes of g ranks, plus 2(nodes − 1)(α' + N/(g·nodes·B')) across.

    `across`: what one rank has of the network; if the g ranks of a node share it, a g-th.
    """
    g = per_node
    return 2 * (g - 1) * inside.seconds(n / g) + 2 * (nodes - 1) * across.seconds(n / (g * nodes))


Time = Callable[[float, int, float, Link], float]
Generator = Callable[[int, int], Schedule]


@dataclass(frozen=True)
class Algorithm:
    """An algorithm: its time(n, k, s, link) in seconds, its schedule(k, s), and a good number of slices(n, k, link)."""

    collective: str
    time: Time
    schedule: Generator
    slices: Callable[[float, int, Link], float]

    def best_time(self, n: float, k: int, link: Link) -> float:
        """Return seconds with the best (real) number of slices."""
        return self.time(n, k, self.slices(n, k, link), link)


def _one(n: float, k: int, link: Link) -> float:
    return 1.0


def _as_many_as_ranks(n: float, k: int, link: Link) -> float:
    return float(k)


def _binary_broadcast(k: int) -> tuple[int, int]:
    """Return (steps per slice, the steps besides)."""
    period = min(2, k - 1)
    return period, tree.binary_tree_broadcast(k, 1).steps - period


def _best_binary(n: float, k: int, link: Link) -> float:
    return best_pipeline(n, link, *_binary_broadcast(k)) if k > 1 else 1.0


def _best_tree(n: float, k: int, link: Link) -> float:
    return best_pipeline(n, link, tree.all_reduce_period(k), tree.all_reduce_latency(k)) if k > 1 else 1.0


ALGORITHMS = {
    "ring broadcast": Algorithm("broadcast", ring_broadcast, ring.ring_broadcast, best_slices),
    "binomial tree broadcast": Algorithm("broadcast", tree_broadcast, tree.tree_broadcast, _one),
    "binary tree broadcast": Algorithm("broadcast", binary_tree_broadcast, tree.binary_tree_broadcast, _best_binary),
    "scatter and all-gather": Algorithm(
        "broadcast", scatter_all_gather_broadcast, scatter_gather.scatter_all_gather_broadcast, _as_many_as_ranks
    ),
    "ring reduce-scatter": Algorithm(
        "reduce-scatter", ring_reduce_scatter, ring.ring_reduce_scatter, _as_many_as_ranks
    ),
    "ring all-gather": Algorithm("all-gather", ring_reduce_scatter, ring.ring_all_gather, _as_many_as_ranks),
    "ring all-reduce": Algorithm("all-reduce", ring_all_reduce, ring.ring_all_reduce, _as_many_as_ranks),
    "tree all-reduce": Algorithm("all-reduce", tree_all_reduce, tree.tree_all_reduce, _best_tree),
    "recursive doubling": Algorithm(
        "all-reduce", recursive_doubling_all_reduce, recursive.recursive_doubling_all_reduce, _one
    ),
    "halving and doubling": Algorithm(
        "all-reduce", halving_doubling_all_reduce, recursive.halving_doubling_all_reduce, _as_many_as_ranks
    ),
}
