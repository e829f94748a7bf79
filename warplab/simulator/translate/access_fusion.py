"""Shared-memory accesses that `ptxas` fuses into one vector access, so that they are counted as one.

Within a basic block `ptxas` (CUDA 13.0 for sm_90, as read in the machine code of the kernels in evidence/counters)
fuses loads of neighbouring words into one of 8 or 16 bytes if it can prove that the address is a multiple of that and
no store lies between them. The same goes for stores. If three of four words are loaded, the fourth is loaded too.
`ptxas` lays out the variables in shared memory one after another at their `.align`, starting at a multiple of 1024, and
fuses accesses at known addresses across variables as well.
"""

from warplab.simulator.ptx import program
from warplab.simulator.translate.basic_blocks import Block, destinations

WIDEST = 16  # bytes
_MOST = 16  # more trailing zero bits of an address make no difference
_ITEMS = {"b32": 4, "u32": 4, "s32": 4, "f32": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8}
_SAME = frozenset(("cvta", "cvt", "neg"))
_FLUSH = frozenset(("atom", "red", "membar", "fence", "ldmatrix", "stmatrix", "wmma", "cp", "call", "mbarrier"))


def fused_accesses(
    entry: program.Entry, blocks: list[Block], variables: dict[str, program.Variable], offsets: dict[str, int]
) -> dict[int, int]:
    """Return, by `id(instruction)`, bytes per lane of a fused access for its first instruction, 0 for others.

    `offsets`: those of the static variables in shared memory.
    """
    if not any("shared" in i.modifiers and i.opcode in ("ld", "st") for i in entry.instructions):
        return {}
    known = _Known(variables, offsets)
    known.follow(entry)
    result: dict[int, int] = {}
    for block in blocks:
        for run, base, item in _runs(block, known):
            _merge(run, item, _MOST if base is None else known.zero_bits(base), result)
    return result


def _runs(block: Block, known: "_Known"):
    """Yield accesses of a block that may be fused, as they have the same base, item size and direction: by their
    distance from the base, which is None for locations in static shared memory.
    """
    open_runs: dict[tuple, dict[int, program.Instruction]] = {}  # by opcode, base, item size

    def close(keys):
        for key in list(keys):
            yield open_runs.pop(key), key[1], key[2]

    for i in block.body:
        modifiers = set(i.modifiers)
        if i.opcode in ("ld", "st") and modifiers.isdisjoint(("global", "param", "const", "local")):
            item = _ITEMS.get(i.modifiers[-1])
            mergeable = item and "shared" in modifiers and modifiers.isdisjoint(("v2", "v4", "volatile"))
            base, distance = known.place(program.as_address(i.operands[0 if i.opcode == "st" else 1]))
            key = (i.opcode, base, item) if mergeable else None
            # A store may change what the loads read, and a store with another base may hit any word.
            others = [k for k in open_runs if k != key and (k[0] == "st" or i.opcode == "st")]
            yield from close(others)
            if key is not None:
                open_runs.setdefault(key, {})[distance] = i
        elif i.opcode in _FLUSH:
            yield from close(open_runs)
        written = destinations(i)
        yield from close([k for k in open_runs if isinstance(k[1], program.Register) and k[1].name in written])
    yield from close(open_runs)


def _merge(run: dict[int, program.Instruction], item: int, zero_bits: int, result: dict[int, int]) -> None:
    for width in (WIDEST, WIDEST // 2):
        if width == item or 1 << zero_bits < width:
            continue
        for start in sorted({distance // width * width for distance in run}):
            parts = [run[start + k] for k in range(0, width, item) if start + k in run]
            fills = len(parts) == 3 and parts[0].opcode == "ld"
            if (len(parts) * item < width and not fills) or any(id(part) in result for part in parts):
                continue
            result.update({id(part): 0 for part in parts})
            result[id(parts[0])] = width


class _Known:
    """What is known about addresses: how many of their lowest bits are zero. Without an entry: any number."""

    def __init__(self, variables: dict[str, program.Variable], offsets: dict[str, int]) -> None:
        self.variables, self.offsets = variables, offsets
        self.bits: dict[str, int] = {}

    def follow(self, entry: program.Entry) -> None:
        changed = True
        while changed:
            changed = False
            for i in entry.instructions:
                for name in destinations(i):
                    known = min(self.bits.get(name, _MOST), self._result(i))
                    if self.bits.get(name) != known:
                        self.bits[name], changed = known, True

    def place(self, address: program.Address) -> tuple[program.Operand | None, int]:
        """Return the base and distance from it. Base None: the distance is from the start of static shared memory."""
        if isinstance(address.base, program.Symbol) and address.base.name in self.offsets:
            return None, self.offsets[address.base.name] + address.offset
        return address.base, address.offset

    def _result(self, i: program.Instruction) -> int:
        def of(number: int) -> int:
            return self.zero_bits(i.operands[number])

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
        if i.opcode == "shl" and isinstance(i.operands[2], program.Immediate):
            return min(_MOST, of(1) + int(i.operands[2].value))
        return 0

    def zero_bits(self, operand: program.Operand | None) -> int:
        if isinstance(operand, program.Register):
            return self.bits.get(operand.name, 0 if operand.name.startswith("%") and "." in operand.name else _MOST)
        if isinstance(operand, program.Immediate):
            return 0 if isinstance(operand.value, float) else _zeros(int(operand.value))  # a float is no address
        if isinstance(operand, program.Symbol) and operand.name in self.variables:
            variable = self.variables[operand.name]
            if variable.space == "shared":
                return _zeros(self.offsets.get(operand.name, variable.align))
        return 0


def _zeros(value: int) -> int:
    return min(_MOST, (value & -value).bit_length() - 1) if value else _MOST
