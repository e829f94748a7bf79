"""Ring algorithms: every rank sends to the next one alone, and all links work at the same time. NCCL calls a slice a
chunk, and runs several rings side by side, its channels.

Ranks stand on the ring in the order 0, 1, ..., k − 1, or as `order` says: order[i] sends to order[i + 1], the last one
to the first. N: bytes of a buffer, S: slices.
"""

from collections.abc import Sequence

from kernels.collectives.schedule import Schedule, Send
from kernels.collectives.sizes import check_multiple, check_sizes, ring_order


def ring_broadcast(ranks: int, slices: int, root: int = 0, order: Sequence[int] | None = None) -> Schedule:
    """Return pipelined broadcast: slice i leaves the root at step i and moves on by one rank per step.

    S + k − 2 steps; N bytes on each of the k − 1 links used. At best N/B, whatever k, as S grows: each link carries
    each byte once. Also called a pipelined chain: Chan, Heimlich, Purkayastha and van de Geijn, "Collective
    communication: theory, practice, and experience" (2007).
    """
    check_sizes(ranks, slices, root)
    ring = ring_order(ranks, order, root)
    sends = [Send(i + p, ring[p], ring[p + 1], i) for i in range(slices) for p in range(ranks - 1)]
    return Schedule("broadcast", ranks, slices, sends, root)


def ring_reduce(ranks: int, slices: int, root: int = 0, order: Sequence[int] | None = None) -> Schedule:
    """Return the broadcast backwards: sums flow along the ring to the root, which comes last.

    S + k − 2 steps; N bytes on each of the k − 1 links used. The same source.
    """
    check_sizes(ranks, slices, root)
    ring = ring_order(ranks, order, root)
    ring = [*ring[1:], root]
    sends = [Send(i + p, ring[p], ring[p + 1], i, True) for i in range(slices) for p in range(ranks - 1)]
    return Schedule("reduce", ranks, slices, sends, root)


def ring_reduce_scatter(ranks: int, slices: int, order: Sequence[int] | None = None) -> Schedule:
    """Send each of k parts once round the ring to gather its sum; it ends with the rank that owns it.

    S a multiple of k; (k − 1)·S/k steps of one slice, so S = k is best; (k − 1)·N/k bytes on each of the k links,
    which is the least possible. Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
    workstations" (2009).
    """
    check_sizes(ranks, slices)
    check_multiple("ring_reduce_scatter", slices, ranks)
    sends = _rounds(ring_order(ranks, order), slices, behind=1, reduce=True)
    return Schedule("reduce-scatter", ranks, slices, sends)


def ring_all_gather(ranks: int, slices: int, order: Sequence[int] | None = None) -> Schedule:
    """Send each of k parts once round the ring from the rank that owns it, and everybody keeps a copy.

    S a multiple of k; (k − 1)·S/k steps; (k − 1)·N/k bytes on each of the k links, the least possible. The same source.
    """
    check_sizes(ranks, slices)
    check_multiple("ring_all_gather", slices, ranks)
    return Schedule("all-gather", ranks, slices, _rounds(ring_order(ranks, order), slices, behind=0, reduce=False))


def ring_all_reduce(ranks: int, slices: int, order: Sequence[int] | None = None) -> Schedule:
    """Return reduce-scatter, then all-gather.

    S a multiple of k; 2(k − 1)·S/k steps; 2(k − 1)·N/k bytes on each of the k links, the least possible: Patarasuk and
    Yuan (2009). For N → ∞ it takes 2(k − 1)/k · N/B: less than 2N/B for any k; the number of messages grows with k.
    """
    first = ring_reduce_scatter(ranks, slices, order)
    second = ring_all_gather(ranks, slices, order)
    return Schedule("all-reduce", ranks, slices, [*first.sends, *later(second.sends, first.steps)])


def later(sends: Sequence[Send], steps: int) -> list[Send]:
    """Return the same sends, `steps` steps later."""
    return [Send(s.step + steps, s.source, s.destination, s.slice, s.reduce, s.count) for s in sends]


def _rounds(ring: Sequence[int], slices: int, behind: int, reduce: bool) -> list[Send]:
    """Return k − 1 rounds: in round j the rank at place p sends part p − j − behind, slice after slice."""
    k, part = len(ring), slices // len(ring)
    return [
        Send(j * part + i, ring[p], ring[(p + 1) % k], ring[(p - j - behind) % k] * part + i, reduce)
        for j in range(k - 1)
        for p in range(k)
        for i in range(part)
    ]
