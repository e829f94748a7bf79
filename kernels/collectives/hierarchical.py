"""Hierarchical rings: sums inside each node first, so that the slow links between nodes carry little."""

from __future__ import annotations

from kernels.collectives.schedule import Schedule, Send
from kernels.collectives.sizes import check_multiple, check_sizes


def hierarchical_ring_all_reduce(nodes: int, per_node: int, slices: int) -> Schedule:
    """Return all-reduce over `nodes` nodes of `per_node` ranks; rank = node · per_node + place in the node.

    1. reduce-scatter round the ring of each node: place i then holds part i, summed over its node;
    2. all-reduce of part i round the ring of all ranks with place i, one per node;
    3. all-gather round the ring of each node.

    With g per node and n nodes: S a multiple of g·n; 2(g − 1) + 2(n − 1) steps, of messages of N/g and N/(gn) bytes;
    2(g − 1)·N/g bytes on a link inside a node, and 2(n − 1)·N/(gn) on one between nodes (g such rings share what
    network a node has). The latency grows with g + n, a flat ring's with g·n. Horovod's hierarchical all-reduce works
    so.
    """
    if nodes < 1 or per_node < 1:
        raise ValueError(f"a cluster has at least one node of at least one rank, not {nodes} of {per_node}")
    ranks = nodes * per_node
    check_sizes(ranks, slices)
    check_multiple("hierarchical_ring_all_reduce", slices, ranks)
    part, piece = slices // per_node, slices // ranks

    def inside(begin: int, behind: int, reduce: bool) -> list[Send]:
        return [
            Send(
                begin + j,
                node * per_node + place,
                node * per_node + (place + 1) % per_node,
                (place - j - behind) % per_node * part,
                reduce,
                part,
            )
            for j in range(per_node - 1)
            for node in range(nodes)
            for place in range(per_node)
        ]

    def across(begin: int, behind: int, reduce: bool) -> list[Send]:
        return [
            Send(
                begin + j,
                node * per_node + place,
                (node + 1) % nodes * per_node + place,
                place * part + (node - j - behind) % nodes * piece,
                reduce,
                piece,
            )
            for j in range(nodes - 1)
            for node in range(nodes)
            for place in range(per_node)
        ]

    first, second = per_node - 1, nodes - 1
    sends = [
        *inside(0, 1, True),
        *across(first, 1, True),
        *across(first + second, 0, False),
        *inside(first + 2 * second, 0, False),
    ]
    return Schedule("all-reduce", ranks, slices, sends)
