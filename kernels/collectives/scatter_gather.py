"""Broadcast by scatter and all-gather: the root deals out parts of its buffer, then a ring gathers them everywhere."""

from kernels.collectives.ring import later, ring_all_gather
from kernels.collectives.schedule import Schedule, Send
from kernels.collectives.sizes import check_multiple, check_sizes
from kernels.collectives.tree import depth


def scatter_all_gather_broadcast(ranks: int, slices: int, root: int = 0) -> Schedule:
    """Scatter down a binomial tree, all-gather round the ring: van de Geijn's broadcast for long messages.

    S a multiple of k; ⌈log2 k⌉ + (k − 1)·S/k steps; (k − 1)·N/k bytes leave the root in the scatter, and as many each
    rank in the all-gather: about 2N/B, twice the pipelined ring's, but with few messages and no S to choose (S = k).
    The ring also brings some ranks what they have passed on in the scatter; leaving that out would save no time.
    Thakur, Rabenseifner and Gropp (2005).
    """
    check_sizes(ranks, slices, root)
    check_multiple("scatter_all_gather_broadcast", slices, ranks)
    part = slices // ranks
    sends = []
    levels = depth(ranks)
    # Counted from the root, v gets parts v to v + away − 1 and deals them out further; part v is v's in the all-gather.
    for step in range(levels):
        away = 1 << (levels - 1 - step)
        for v in range(0, ranks - away, 2 * away):
            parts = min(away, ranks - v - away)
            sends.append(
                Send(step, (root + v) % ranks, (root + v + away) % ranks, (v + away) * part, False, parts * part)
            )
    gather = ring_all_gather(ranks, slices)
    turned = [Send(s.step, (root + s.source) % ranks, (root + s.destination) % ranks, s.slice) for s in gather.sends]
    return Schedule("broadcast", ranks, slices, [*sends, *later(turned, levels)], root)
