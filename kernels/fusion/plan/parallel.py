"""Which launches of a plan may run side by side: what each must wait for, and how few streams say so.

A launch waits for an earlier one if it reads what that one writes, or if one of them writes where the other's tensors
lie: memory that is reused makes launches wait that share no data. Writers of different channels of one tensor do not
wait for each other.
"""

from dataclasses import dataclass

from kernels.fusion.graph.nodes import Slice
from kernels.fusion.plan.plan import Plan


@dataclass(frozen=True)
class StreamedLayer:
    """A layer's launches in a captured graph: in `stream`, after the layers with the numbers `waits`.

    `waits` are layers of other streams; those of its own stream come before it anyway.
    """

    layer: int
    stream: int
    waits: tuple[int, ...]


def dependencies(plan: Plan) -> list[set[int]]:
    """Return, for each layer, in the order of the plan's layers, the numbers of the earlier ones that it must wait for.

    Those that another one waits for already are left out.
    """
    touched = [
        ([Slice(t.name, 0, t.channels) for t in layer.reads], [part for part, _ in layer.writes])
        for layer in plan.layers
    ]
    before: list[set[int]] = []  # all layers that come before one, near or far
    found = []
    for reads, writes in touched:
        number, needed, known = len(found), set(), set()
        for earlier in range(number - 1, -1, -1):
            if earlier in known:
                continue
            read, written = touched[earlier]
            if _meet(plan, writes, written) or _meet(plan, reads, written) or _meet(plan, writes, read):
                needed.add(earlier)
                known |= before[earlier] | {earlier}
        found.append(needed)
        before.append(known)
    return found


def steps(plan: Plan) -> list[StreamedLayer]:
    """Return the layers in the plan's order, each in a stream: in that of a layer that it waits for, if nobody has gone
    on in it, or in one of its own.
    """
    found: list[StreamedLayer] = []
    last: dict[int, int] = {}  # by stream its last layer
    for number, needed in enumerate(dependencies(plan)):
        going_on = [stream for stream, layer in last.items() if layer in needed]
        # The latest of them: the others are likely to be done by then.
        stream = max(going_on, key=last.__getitem__) if going_on else len(last)
        waits = tuple(sorted(layer for layer in needed if found[layer].stream != stream))
        found.append(StreamedLayer(number, stream, waits))
        last[stream] = number
    return found


def in_a_row(plan: Plan) -> list[StreamedLayer]:
    """Return the layers in the plan's order, all in one stream."""
    return [StreamedLayer(number, 0, ()) for number in range(len(plan.layers))]


def depth(plan: Plan) -> int:
    """Return layers on the longest way through the plan: as many launches one after the other as side by side still
    need."""
    longest: list[int] = []
    for needed in dependencies(plan):
        longest.append(1 + max((longest[layer] for layer in needed), default=0))
    return max(longest, default=0)


def _meet(plan: Plan, some: list[Slice], others: list[Slice]) -> bool:
    """Return whether one of `some` lies where one of `others` does."""
    memory, owners = {p.tensor: p for p in plan.memory.placed}, plan.memory.owners
    for a in some:
        for b in others:
            first, second = memory[owners[a.tensor]], memory[owners[b.tensor]]
            if first.tensor != second.tensor:
                meet = first.overlaps(second)
            elif a.tensor != b.tensor:  # one of them is the other under another name, perhaps of another shape
                meet = True
            else:
                meet = a.start < b.start + b.channels and b.start < a.start + a.channels
            if meet:
                return True
    return False
