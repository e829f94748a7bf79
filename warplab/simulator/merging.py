"""Neighbouring accesses to shared memory that `ptxas` makes one of: which they are, so that they are counted as one.

Within a basic block `ptxas` (CUDA 13.0 for sm_90, read in the machine code of the kernels in kernels/counters) puts
loads of neighbouring words together to one of 8 or 16 bytes, if it can prove that the address is a multiple of that
and no store lies between; stores likewise. It starts variables of shared memory at multiples of 16.
"""

from __future__ import annotations

from .blocks import Block, destinations
from .program import Address, Entry, Immediate, Instruction, Operand, Register, Symbol, Variable

WIDEST = 16  # bytes
_MOST = 16  # zero bits at the end of an address beyond which nothing changes
_ITEMS = {"b32": 4, "u32": 4, "s32": 4, "f32": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8}
_SAME = frozenset(("cvta", "cvt", "neg"))
_FLUSH = frozenset(("atom", "red", "membar", "fence", "ldmatrix", "stmatrix", "wmma", "cp", "call", "mbarrier"))


def merged_accesses(entry: Entry, blocks: list[Block], variables: dict[str, Variable]) -> dict[int, int]:
    """By `id(instruction)`: bytes a lane of the access that stands for several, 0 for the others of them."""
    if not any("shared" in i.modifiers and i.opcode in ("ld", "st") for i in entry.instructions):
        return {}
    bits = _zero_bits(entry, variables)
    result: dict[int, int] = {}
    for block in blocks:
        for run, item in _runs(block):
            _merge(run, item, _operand_bits(_address(run[0]).base, bits, variables), result)
    return result


def _runs(block: Block):
    """Accesses of a block with the same base, item size and direction that nothing forbids to put together."""
    open_runs: dict[tuple, list[Instruction]] = {}  # by opcode, base, item size

    def close(keys):
        for key in list(keys):
            yield open_runs.pop(key), key[2]

    for i in block.body:
        modifiers = set(i.modifiers)
        if i.opcode in ("ld", "st") and modifiers.isdisjoint(("global", "param", "const", "local")):
            item = _ITEMS.get(i.modifiers[-1])
            mergeable = item and "shared" in modifiers and modifiers.isdisjoint(("v2", "v4", "volatile"))
            key = (i.opcode, _address(i).base, item) if mergeable else None
            # A store may change what the loads read, and other words than another base's stores seem to.
            others = [k for k in open_runs if k != key and (k[0] == "st" or i.opcode == "st")]
            yield from close(others)
            if mergeable:
                open_runs.setdefault(key, []).append(i)
        elif i.opcode in _FLUSH:
            yield from close(open_runs)
        written = destinations(i)
        yield from close([k for k in open_runs if isinstance(k[1], Register) and k[1].name in written])
    yield from close(open_runs)


def _address(i: Instruction) -> Address:
    return i.operands[0 if i.opcode == "st" else 1]


def _merge(run: list[Instruction], item: int, zero_bits: int, result: dict[int, int]) -> None:
    by_offset = {_address(i).offset: i for i in run}
    for width in (WIDEST, WIDEST // 2):
        if width == item or 1 << zero_bits < width:
            continue
        for offset in sorted(by_offset):
            parts = [by_offset.get(offset + k) for k in range(0, width, item)]
            if offset % width or any(part is None or id(part) in result for part in parts):
                continue
            result.update({id(part): 0 for part in parts})
            result[id(parts[0])] = width


def _zero_bits(entry: Entry, variables: dict[str, Variable]) -> dict[str, int]:
    """For each register, how many of its lowest bits are known to be zero. Registers without an entry: any number."""
    bits: dict[str, int] = {}
    changed = True
    while changed:
        changed = False
        for i in entry.instructions:
            for name in destinations(i):
                known = min(bits.get(name, _MOST), _result_bits(i, bits, variables))
                if bits.get(name) != known:
                    bits[name], changed = known, True
    return bits


def _result_bits(i: Instruction, bits: dict[str, int], variables: dict[str, Variable]) -> int:
    def of(number: int) -> int:
        return _operand_bits(i.operands[number], bits, variables)

    if i.opcode in ("mov", *_SAME):
        return of(1) if i.modifiers[-1] not in ("f32", "f64", "pred") else 0
    if i.opcode in ("add", "sub", "or", "xor"):
        return min(of(1), of(2))
    if i.opcode == "selp":
        return min(of(1), of(2))
    if i.opcode == "and":
        return max(of(1), of(2))
    if i.opcode == "mul" and "hi" not in i.modifiers:
        return min(_MOST, of(1) + of(2))
    if i.opcode == "mad" and "hi" not in i.modifiers:
        return min(of(1) + of(2), of(3))
    if i.opcode == "shl" and isinstance(i.operands[2], Immediate):
        return min(_MOST, of(1) + int(i.operands[2].value))
    return 0


def _operand_bits(operand: Operand | None, bits: dict[str, int], variables: dict[str, Variable]) -> int:
    if isinstance(operand, Register):
        return bits.get(operand.name, 0 if operand.name.startswith("%") and "." in operand.name else _MOST)
    if isinstance(operand, Immediate):
        if isinstance(operand.value, float):  # not an address
            return 0
        value = int(operand.value)
        return (value & -value).bit_length() - 1 if value else _MOST
    if isinstance(operand, Symbol) and operand.name in variables:
        variable = variables[operand.name]
        align = variable.align if variable.dynamic else max(variable.align, WIDEST)
        return align.bit_length() - 1 if variable.space == "shared" else 0
    return 0
