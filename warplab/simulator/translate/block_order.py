"""The order of basic blocks in which diverged lanes reconverge.

The scheduler runs the lowest block first. Lanes reconverge at the join of a branch if the join comes after both sides,
and after a loop if the loop's blocks stand together. Compilers mostly write blocks in such an order, but they move what
they consider rare behind the end, with a jump back. Hardware needs no order, as `ptxas` marks where paths join.

The order: a loop (a strongly connected component) stays together and begins with its head. Without the jumps back to
the head, its blocks are ordered in the same way. Among the blocks that can come next, program order decides.
[F. Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993: a weak topological order.]
"""

import heapq

from warplab.simulator.errors import UnsupportedInstruction
from warplab.simulator.ptx import graphs

MOST_WORK = 2**20  # blocks times the loops around them; some seconds


def convergent_order(successors: list[tuple[int, ...]]) -> list[int]:
    """Return numbers of the blocks in their new order, which is the old one if lanes reconverge in it. Block 0 is
    first. Raises UnsupportedInstruction for jumps into loops out of other loops, deeper than any compiler writes."""
    if all(other > number for number, following in enumerate(successors) for other in following):
        return list(range(len(successors)))
    predecessors: list[list[int]] = [[] for _ in successors]
    for number, following in enumerate(successors):
        for other in following:
            predecessors[other].append(number)
    order: list[int] = []
    # Blocks and loops still to order, the next one last.
    work = _components_in_order(list(range(len(successors))), successors)[::-1]
    done = 0
    while work:
        blocks = work.pop()
        done += len(blocks)
        if done > MOST_WORK:
            raise UnsupportedInstruction(f"jumps that cross: {len(successors):,} basic blocks in loops inside loops")
        inside = set(blocks)
        entered = [b for b in blocks if b == 0 or any(p not in inside for p in predecessors[b])]
        head = min(entered or blocks)
        order.append(head)
        work += _components_in_order([b for b in blocks if b != head], successors)[::-1]
    return order


def _components_in_order(blocks: list[int], successors: list[tuple[int, ...]]) -> list[list[int]]:
    """List strongly connected components of the graph among `blocks`, each after those that lead to it."""
    components = graphs.components(blocks, successors)
    of = {block: number for number, component in enumerate(components) for block in component}
    missing = [0] * len(components)
    following: list[set[int]] = [set() for _ in components]
    for block in blocks:
        for other in successors[block]:
            if other in of and of[other] != of[block] and of[other] not in following[of[block]]:
                following[of[block]].add(of[other])
                missing[of[other]] += 1
    ready = [(min(component), number) for number, component in enumerate(components) if not missing[number]]
    heapq.heapify(ready)
    result = []
    while ready:
        _, number = heapq.heappop(ready)
        component = components[number]
        result.append(component)
        for other in following[number]:
            missing[other] -= 1
            if not missing[other]:
                heapq.heappush(ready, (min(components[other]), other))
    return result
