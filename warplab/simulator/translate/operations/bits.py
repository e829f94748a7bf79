"""Shifts, bit fields, permutations and dot products of integers."""

from warplab.simulator.ptx.program import Immediate, Instruction, integer
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter, item_bytes
from warplab.simulator.translate.operations.arithmetic import allow

# Functions of b and c, one bit each, by their table of four bits (PTX ISA, "lop3", with a fixed).
_OF_TWO = (
    "0",
    "~({1} | {2})",
    "~{1} & {2}",
    "~{1}",
    "{1} & ~{2}",
    "~{2}",
    "{1} ^ {2}",
    "~({1} & {2})",
    "{1} & {2}",
    "~({1} ^ {2})",
    "{2}",
    "~{1} | {2}",
    "{1}",
    "{1} | ~{2}",
    "{1} | {2}",
    "-1",
)
# Of floats and predicates these instructions know no bits.
_INTEGERS = {kind: DTYPES[kind] for kind in ("b16", "b32", "b64", "u32", "u64", "s32", "s64", "u16", "s16")}
_COUNTS = {"popc": "popc({0})", "clz": "clz({0})"}
_PERMUTATIONS = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")


def lop3(table: int) -> str:
    """Return the expression over {0}, {1} and {2} for the logic function whose value for a, b, c is bit 4a + 2b + c."""
    where_a, where_not_a = _OF_TWO[table >> 4], _OF_TWO[table & 15]
    if where_a == where_not_a:
        return {"0": "{0} & 0", "-1": "{0} | 0xFFFFFFFF"}.get(where_a, f"({where_a}) | ({{0}} & 0)")
    parts = []
    for source, function in (("{0}", where_a), ("~{0}", where_not_a)):
        if function != "0":
            parts.append(source if function == "-1" else f"({source} & ({function}))")
    return " | ".join(parts)


def _shift(w: BlockWriter, i: Instruction) -> None:
    dtype = _INTEGERS[i.modifiers[-1]]
    if i.opcode == "shl":
        dtype = dtype.replace("i", "u")
    a = w.array(i.operands[1], dtype)
    amount = i.operands[2]
    sign, function = ("<<", "shift_left") if i.opcode == "shl" else (">>", "shift_right")
    if isinstance(amount, Immediate) and 0 <= integer(amount) < 8 * item_bytes(dtype):
        w.define(i.operands[0], f"{a} {sign} {amount.value}", dtype)
    else:
        w.define(i.operands[0], f"{function}({a}, {w.array(amount, 'u4')})", dtype)


def _count(w: BlockWriter, i: Instruction) -> None:
    dtype = _INTEGERS[i.modifiers[-1]]
    w.define(i.operands[0], _COUNTS[i.opcode].format(w.array(i.operands[1], dtype)), "u4")


def _reverse(w: BlockWriter, i: Instruction) -> None:
    dtype = _INTEGERS[i.modifiers[-1]]
    w.define(i.operands[0], f"brev({w.array(i.operands[1], dtype)})", dtype)


def _logic3(w: BlockWriter, i: Instruction) -> None:
    *combine, kind = i.modifiers
    if kind != "b32" or len(i.operands) != (7 if combine else 5):
        raise w.unsupported()
    *destinations, x, y, z, table = i.operands[: -1 if combine else None]
    a, b, c = (w.array(o, "u4") for o in (x, y, z))
    result = lop3(integer(table) & 0xFF).format(a, b, c)
    if combine:  # d|p: is any bit set, and (or) does q hold?
        sign = {"and": "&", "or": "|"}[combine[0]]
        bits, holds = w.fresh(), w.fresh()
        w.line(f"{bits} = {result}")
        w.line(f"{holds} = ({bits} != 0) {sign} {w.value(i.operands[6], 'b1')}")
        w.define(destinations[1], holds, "b1")
        result = bits
    w.define(destinations[0], result, "u4")


def _find(w: BlockWriter, i: Instruction) -> None:
    *modifiers, kind = i.modifiers
    allow(w, modifiers, ("shiftamt",))
    w.define(i.operands[0], f"find_leading({w.array(i.operands[1], _INTEGERS[kind])}, {bool(modifiers)})", "u4")


def _extract(w: BlockWriter, i: Instruction) -> None:
    dtype = _INTEGERS[i.modifiers[-1]]
    position, length = (w.array(o, "u4") for o in i.operands[2:])
    w.define(i.operands[0], f"extract_field({w.array(i.operands[1], dtype)}, {position}, {length})", dtype)


def _insert(w: BlockWriter, i: Instruction) -> None:
    dtype = _INTEGERS[i.modifiers[-1]]
    a, b = (w.array(o, dtype) for o in i.operands[1:3])
    position, length = (w.array(o, "u4") for o in i.operands[3:])
    w.define(i.operands[0], f"insert_field({a}, {b}, {position}, {length})", dtype)


def _funnel(w: BlockWriter, i: Instruction) -> None:
    direction, mode, _ = i.modifiers
    allow(w, (mode,), ("wrap", "clamp"))
    a, b, amount = (w.array(o, "u4") for o in i.operands[1:])
    w.define(i.operands[0], f"funnel_shift({a}, {b}, {amount}, {direction == 'l'}, {mode == 'wrap'})", "u4")


def _permute(w: BlockWriter, i: Instruction) -> None:
    mode = i.modifiers[1] if len(i.modifiers) > 1 else ""
    allow(w, (mode,), ("", *_PERMUTATIONS))
    a, b, c = (w.array(o, "u4") for o in i.operands[1:])
    w.define(i.operands[0], f"permute({a}, {b}, {c}, {mode!r})", "u4")


def _extend(w: BlockWriter, i: Instruction) -> None:
    mode, kind = i.modifiers
    dtype = _INTEGERS[kind]
    allow(w, (mode,), ("wrap", "clamp"))
    w.define(
        i.operands[0],
        f"extend({w.array(i.operands[1], dtype)}, {w.array(i.operands[2], 'u4')}, {mode == 'wrap'})",
        dtype,
    )


def _mask(w: BlockWriter, i: Instruction) -> None:
    mode = i.modifiers[0]
    allow(w, (mode,), ("wrap", "clamp"))
    position, length = (w.array(o, "u4") for o in i.operands[1:])
    w.define(i.operands[0], f"bit_mask({position}, {length}, {mode == 'wrap'})", "u4")


def _find_nth(w: BlockWriter, i: Instruction) -> None:
    if i.modifiers != ("b32",):
        raise w.unsupported()
    mask, base, offset = (w.array(o, dtype) for o, dtype in zip(i.operands[1:], ("u4", "u4", "i4"), strict=True))
    w.define(i.operands[0], f"find_nth({mask}, {base}, {offset})", "u4")


def _dot_product(w: BlockWriter, i: Instruction) -> None:
    *half, a_kind, b_kind = i.modifiers
    a_bytes = {"dp4a": 1, "dp2a": 2}[i.opcode]
    start = 2 if half == ["hi"] else 0
    types = f"{_INTEGERS[a_kind][0]}{a_bytes}, {_INTEGERS[b_kind][0]}1"
    a, b = (w.array(o, "u4") for o in i.operands[1:3])
    c = w.array(i.operands[3], "u4")
    w.define(i.operands[0], f"dot_product({a}, {b}, {c}, {types}, {start})", "u4")


def _packed_difference(w: BlockWriter, i: Instruction) -> None:
    """Write vabsdiff2 and vabsdiff4, to which compilers still turn the intrinsics __vabsdiff and __vsad."""
    to, a_kind, b_kind, *add = i.modifiers
    if to != "u32" or a_kind != b_kind or add not in ([], ["add"]):
        raise w.unsupported()
    a, b, c = (w.array(o, "u4") for o in i.operands[1:])
    part = f"{_INTEGERS[a_kind][0]}{4 // int(i.opcode[-1])}"
    w.define(i.operands[0], f"packed_absolute_difference({a}, {b}, {c}, {part}, {bool(add)})", "u4")


TABLE = {
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(_COUNTS, _count),
    **dict.fromkeys(("dp2a", "dp4a"), _dot_product),
    **dict.fromkeys(("vabsdiff2", "vabsdiff4"), _packed_difference),
    "bfe": _extract,
    "bfi": _insert,
    "bfind": _find,
    "bmsk": _mask,
    "brev": _reverse,
    "fns": _find_nth,
    "lop3": _logic3,
    "prmt": _permute,
    "shf": _funnel,
    "szext": _extend,
}
