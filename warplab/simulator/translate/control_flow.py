"""Which basic blocks lead to which, and the loops among them."""

from collections.abc import Mapping, Sequence

from warplab.simulator.ptx.graphs import reached
from warplab.simulator.translate.basic_blocks import Block


def around(blocks: Sequence[Block], number: int) -> set[int]:
    """Return the blocks that control may come to after a block and before it comes back; none if it does not."""
    before: list[list[int]] = [[] for _ in blocks]
    for one in blocks:
        for follower in one.successors():
            before[follower].append(one.index)
    return reached([one.successors() for one in blocks], number) & reached(before, number)


def leads_on(blocks: Sequence[Block], block: Block) -> bool:
    """Tell whether lanes cannot come back to a branch from one of its sides, as where they leave a loop."""
    following = [one.successors() for one in blocks]
    sides = (block.target, block.index + 1)
    return any(side != block.index and block.index not in reached(following, side) for side in sides)


def loops(blocks: Sequence[Block]) -> dict[int, int]:
    """Return the last block of each loop, by its head; the blocks between belong to it (`block_order`)."""
    found: dict[int, int] = {}
    for block in blocks:
        for head in block.successors():
            if head <= block.index:
                found[head] = max(found.get(head, 0), block.index)
    return found


def entered(block: Block, ends: Mapping[int, int]) -> list[int]:
    """Return the heads of the loops that a block leads into. `ends`: the `loops` of its kernel."""
    return [head for head in block.successors() if head in ends and not head <= block.index <= ends[head]]
