"""Loops that wait for memory, as a spin lock does: they look at what other threads write. Also volatile words of global
memory that are no flags themselves: data that a kernel hands over under a flag.

PTX orders no two volatile accesses to different words, so what a flag guards needs a fence, `volatile` or not. A kernel
waits for a flag in a loop; whatever lies in another array than any such flag is data.
"""

from warplab.simulator.ptx.program import Immediate, Instruction, Register, Symbol, as_address
from warplab.simulator.translate.basic_blocks import Block, around, destinations, sources

_WAITING = frozenset(("volatile", "relaxed", "acquire", "mmio", "cas", "exch", "try_wait", "test_wait"))
_SEES = frozenset(("ld", "ldu", "atom", "shfl", "vote", "match", "redux", "activemask", "mbarrier", "bar", "barrier"))
_WORKING = frozenset(("red", "bar", "barrier", "cp", "call", "stmatrix", "wmma", "mma", "trap", "exit", "ret"))
_NEUTRAL = frozenset(("add", "or", "xor"))  # with 0


def waits_for_memory(blocks: list[Block], block: Block) -> bool:
    """Return whether an access in the loop around `block` is meant to see what other threads write?"""
    read = used_registers(blocks)
    return any(_looks(blocks[number], read) for number in around(blocks, block.index))


def waiting_loops(blocks: list[Block]) -> dict[int, frozenset[int]]:
    """Return the innermost loops that look at what other threads write: for each block of one, all its blocks."""
    loops = sorted((b.index - head, head, b.index) for b in blocks for head in b.successors() if head <= b.index)
    read = used_registers(blocks)
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
    read = used_registers(blocks)
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


def used_registers(blocks: list[Block]) -> set[str]:
    """Return the registers that a kernel reads."""
    read = {name for block in blocks for i in block.counted for name in sources(i)}
    return read.union(block.condition.name for block in blocks if block.condition is not None)


def _changes_nothing(i: Instruction) -> bool:
    """Tell whether it is `atomicAdd(flag, 0)` or the like, which only looks."""
    value = i.operands[-1] if i.opcode == "atom" and not _NEUTRAL.isdisjoint(i.modifiers) else None
    return isinstance(value, Immediate) and value.value == 0


_UNKNOWN = "?"  # a pointer from memory, or from an instruction that this does not follow
_MOVES = frozenset(
    ("mov", "cvta", "cvt", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "selp", "rem", "div", "min", "max")
)


def guarded_data(blocks: list[Block]) -> frozenset[int]:
    """Return the `id` of each volatile load or store of global memory that goes to another array than any flag for
    which the kernel waits; none where that is not known."""
    instructions = [i for block in blocks for i in block.counted]
    waiting = deciding_looks(blocks)
    looks = [i for i in instructions if id(i) in waiting and not _in_shared(i)]
    if not looks:
        return frozenset()
    arrays = _Arrays(instructions)
    flags = frozenset[str]().union(*(arrays.of(i) for i in looks))
    if _UNKNOWN in flags:
        return frozenset()
    found = set()
    for i in instructions:
        if i.opcode in ("ld", "st") and "volatile" in i.modifiers and not _in_shared(i) and id(i) not in waiting:
            own = arrays.of(i)
            if own and _UNKNOWN not in own and own.isdisjoint(flags):
                found.add(id(i))
    return frozenset(found)


def _in_shared(i: Instruction) -> bool:
    return any(modifier.startswith("shared") for modifier in i.modifiers)


class _Arrays:
    """The parameters and variables from which addresses are computed."""

    def __init__(self, instructions: list[Instruction]) -> None:
        self._writers: dict[str, list[Instruction]] = {}
        for i in instructions:
            for name in destinations(i):
                self._writers.setdefault(name, []).append(i)

    def of(self, access: Instruction) -> frozenset[str]:
        """Return names of the arrays to which a memory instruction may go, with "?" where that is not known."""
        operand = access.operands[0 if access.opcode == "st" else 1]
        base = as_address(operand).base
        if isinstance(base, Symbol):
            return frozenset((base.name,))
        if not isinstance(base, Register):
            return frozenset((_UNKNOWN,))
        found: set[str] = set()
        seen, work = {base.name}, [base.name]
        while work:
            for writer in self._writers.get(work.pop(), ()):
                if writer.opcode == "ld" and "param" in writer.modifiers:
                    symbol = as_address(writer.operands[1]).base
                    wide = any(modifier in ("u64", "b64", "s64") for modifier in writer.modifiers)
                    if isinstance(symbol, Symbol) and wide:
                        found.add(f"{symbol.name}+{as_address(writer.operands[1]).offset}")
                elif writer.opcode in _MOVES:
                    found |= {operand.name for operand in writer.operands[1:] if isinstance(operand, Symbol)}
                    more = set(sources(writer)) - seen
                    seen |= more
                    work += more
                elif "u64" in writer.modifiers or "b64" in writer.modifiers:
                    found.add(_UNKNOWN)
        return frozenset(found)
