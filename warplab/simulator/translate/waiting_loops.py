"""Loops that wait for memory, as a spin lock does: they look at what other threads write."""

from warplab.simulator.ptx.program import Immediate, Instruction
from warplab.simulator.translate.basic_blocks import Block, destinations, sources
from warplab.simulator.translate.control_flow import around

_WAITING = frozenset(("volatile", "relaxed", "acquire", "mmio", "cas", "exch", "try_wait", "test_wait"))
_SEES = frozenset(("ld", "ldu", "atom", "shfl", "vote", "match", "redux", "activemask", "mbarrier", "bar", "barrier"))
_WORKING = frozenset(("red", "bar", "barrier", "cp", "call", "stmatrix", "wmma", "mma", "trap", "exit", "ret"))
_NEUTRAL = frozenset(("add", "or", "xor"))  # with 0


def waits_for_memory(blocks: list[Block], block: Block) -> bool:
    """Return whether an access in the loop around `block` is meant to see what other threads write?"""
    read = _read(blocks)
    return any(_looks(blocks[number], read) for number in around(blocks, block.index))


def waiting_loops(blocks: list[Block]) -> dict[int, frozenset[int]]:
    """Return the innermost loops that look at what other threads write: for each block of one, all its blocks."""
    loops = sorted((b.index - head, head, b.index) for b in blocks for head in b.successors() if head <= b.index)
    read = _read(blocks)
    looking = set()
    for block in blocks:
        around = next((loop for loop in loops if loop[1] <= block.index <= loop[2]), None)
        if around is not None and _looks(block, read):
            looking.add(around)
    result: dict[int, frozenset[int]] = {}
    for _, head, end in sorted(looking):  # a block belongs to the smallest
        for number in range(head, end + 1):
            result.setdefault(number, frozenset(range(head, end + 1)))
    return result


def turns_on_memory(blocks: list[Block]) -> bool:
    """Return whether there is a loop in which a branch depends on what it sees others write, as in waiting for a flag?

    Other loops that look at memory, such as the steps of a scan in volatile memory, only compute with it.
    """
    return bool(deciding_looks(blocks))


def deciding_looks(blocks: list[Block]) -> frozenset[int]:
    """Return the `id` of each memory instruction of a loop that is meant to see what others write, and on which a
    branch of that loop depends."""
    found: set[int] = set()
    for number, loop in waiting_loops(blocks).items():
        if number != min(loop):
            continue
        inside = [blocks[index] for index in sorted(loop)]
        wanted = {block.condition.name for block in inside if block.condition is not None}
        instructions = [i for block in inside for i in block.counted]
        while more := {n for i in instructions if wanted.intersection(destinations(i)) for n in sources(i)} - wanted:
            wanted |= more
        found |= {
            id(i)
            for i in instructions
            if i.opcode in ("ld", "atom", "mbarrier")
            and wanted.intersection(destinations(i))
            and not _WAITING.isdisjoint(i.modifiers)
        }
    return frozenset(found)


def working_blocks(blocks: list[Block], inside: bool = True) -> frozenset[int]:
    """Return the blocks that do more than look and compute: they store, meet at barriers, or are atomic.

    `inside`: also those that do so inside their thread block alone, at its barriers and in its shared memory.
    """
    read = _read(blocks)
    return frozenset(
        block.index for block in blocks if any(_works(i, read) and (inside or not _inside(i)) for i in block.counted)
    )


def _inside(i: Instruction) -> bool:
    """Tell whether only threads of the same block notice."""
    if i.opcode in ("bar", "barrier"):
        return {"cluster", "grid"}.isdisjoint(i.modifiers)
    return i.opcode == "st" and not {"shared", "shared::cta"}.isdisjoint(i.modifiers)


def _works(i: Instruction, read: set[str]) -> bool:
    if i.opcode == "atom":
        return read.isdisjoint(destinations(i)) or (_WAITING.isdisjoint(i.modifiers) and not _changes_nothing(i))
    if i.opcode == "mbarrier":
        return _WAITING.isdisjoint(i.modifiers)
    return "local" not in i.modifiers if i.opcode == "st" else i.opcode in _WORKING


def fixed_loops(blocks: list[Block]) -> frozenset[int]:
    """Return the blocks of loops that look at no memory and whose condition they never change: what comes round once
    never leaves them."""
    result: set[int] = set()
    for one in blocks:
        for head in one.successors():
            if head <= one.index:
                around = blocks[head : one.index + 1]
                inside = [i for block in around for i in block.counted]
                changed = {name for i in inside for name in destinations(i)}
                if not changed & blocks[head].live_in and all(_only_computes(i) for i in inside):
                    result.update(range(head, one.index + 1))
    return frozenset(result)


def _only_computes(i: Instruction) -> bool:
    clocks = any(name.startswith(("%clock", "%globaltimer")) for name in sources(i))
    return i.opcode in ("bra", "nanosleep") or (bool(destinations(i)) and i.opcode not in _SEES and not clocks)


def _looks(block: Block, read: set[str]) -> bool:
    """Tell whether a block looks. `read`: the registers that the kernel reads. An atomic operation whose result nobody
    reads, such as the one that releases a lock, does not."""
    return any(
        i.opcode in ("ld", "atom", "mbarrier")
        and (not _WAITING.isdisjoint(i.modifiers) or _changes_nothing(i))
        and (i.opcode != "atom" or not read.isdisjoint(destinations(i)))
        for i in block.counted
    )


def _read(blocks: list[Block]) -> set[str]:
    read = {name for block in blocks for i in block.counted for name in sources(i)}
    return read.union(block.condition.name for block in blocks if block.condition is not None)


def _changes_nothing(i: Instruction) -> bool:
    """Tell whether it is `atomicAdd(flag, 0)` or the like, which only looks."""
    value = i.operands[-1] if i.opcode == "atom" and not _NEUTRAL.isdisjoint(i.modifiers) else None
    return isinstance(value, Immediate) and value.value == 0
