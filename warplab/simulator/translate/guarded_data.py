"""Volatile words of global memory that are no flags themselves: data that a kernel hands over under a flag.

PTX orders no two volatile accesses to different words, so what a flag guards needs a fence, `volatile` or not. A kernel
waits for a flag in a loop; whatever lies in another array than any such flag is data.
"""

from warplab.simulator.ptx.program import Instruction, Register, Symbol, as_address
from warplab.simulator.translate.basic_blocks import Block, destinations, sources
from warplab.simulator.translate.waiting_loops import deciding_looks

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
