"""Comparisons and selections: setp, set, selp, slct, testp."""

from warplab.simulator.ptx.program import Instruction, Operand, Register
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter
from warplab.simulator.translate.operations.arithmetic import allow, flushed

PROPERTIES = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
COMPARISONS = {
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "lo": "{0} < {1}",
    "ls": "{0} <= {1}",
    "hi": "{0} > {1}",
    "hs": "{0} >= {1}",
    # Float comparisons: NaN makes the ordered ones false and the unordered ones ("u") true.
    "equ": "~(({0} < {1}) | ({0} > {1}))",
    "neu": "{0} != {1}",
    "ltu": "~({0} >= {1})",
    "leu": "~({0} > {1})",
    "gtu": "~({0} <= {1})",
    "geu": "~({0} < {1})",
    "num": "({0} == {0}) & ({1} == {1})",
    "nan": "({0} != {0}) | ({1} != {1})",
}
_FLOAT_NE = "({0} < {1}) | ({0} > {1})"
_COMBINE = {"and": "&", "or": "|", "xor": "^"}
HALVES = ("f16", "bf16")
# set: true is all ones as an integer, 1.0 as a float.
_TRUE_HALF = {"f16": 0x3C00, "bf16": 0x3F80, "u16": 0xFFFF, "s16": 0xFFFF}


def _named(w: BlockWriter, expression: str) -> str:
    name = w.fresh()
    w.line(f"{name} = {expression}")
    return name


def _compared(comparison: str, is_float: bool, a: str, b: str) -> str:
    template = _FLOAT_NE if comparison == "ne" and is_float else COMPARISONS[comparison]
    return f"({template.format(a, b)})"


def _comparison(w: BlockWriter, comparison: str, kind: str, modifiers, operands: tuple[Operand, ...]) -> str:
    """Return an expression for a comparison, an array of bool."""
    if kind == "pred":
        raise w.unsupported()
    if kind in HALVES:
        ftz = "ftz" in modifiers
        a, b = (_named(w, f"half_to_f32({w.array(o, 'u2')}, {kind!r}, {ftz})") for o in operands)
        return _compared(comparison, True, a, b)
    dtype = DTYPES[kind]
    a, b = (flushed(w, o, modifiers, dtype) for o in operands) if "ftz" in modifiers else w.arrays(operands, dtype)
    return _compared(comparison, dtype[0] == "f", a, b)


def _set_predicate(w: BlockWriter, i: Instruction) -> None:
    comparison, *modifiers, kind = i.modifiers
    combine = [m for m in modifiers if m in _COMBINE]
    allow(w, modifiers, {"ftz", *combine})
    second = i.operands[1]
    two = isinstance(second, Register) and w.translator.dtypes.get(second.name) == "b1"
    destinations, operands = i.operands[: 1 + two], i.operands[1 + two :]
    other = w.value(operands[2], "b1") if combine else ""
    if kind in ("f16x2", "bf16x2"):
        results = _of_both_halves(w, comparison, kind[:-2], modifiers, operands[:2])
    else:
        result = _comparison(w, comparison, kind, modifiers, operands[:2])
        result = _named(w, result) if two else result
        results = [result, f"~{result}"]
    if combine:  # read before either destination is written, which may be the same register
        other = _named(w, other)
        results = [f"{result} {_COMBINE[combine[0]]} {other}" for result in results]
    for destination, result in zip(destinations, results, strict=False):
        w.define(destination, result, "b1")


def _of_both_halves(w: BlockWriter, comparison: str, kind: str, modifiers, operands) -> list[str]:
    """Return the names of two arrays of bool, comparisons of the low halves and of the high halves."""
    names = []
    a, b = (w.array(o, "u4") for o in operands)
    for shift in (0, 16):
        ftz = "ftz" in modifiers
        x, y = (_named(w, f"half_to_f32(({source} >> {shift}).astype(u2), {kind!r}, {ftz})") for source in (a, b))
        names.append(_named(w, _compared(comparison, True, x, y)))
    return names


def _set(w: BlockWriter, i: Instruction) -> None:
    comparison, *modifiers, to, kind = i.modifiers
    combine = [m for m in modifiers if m in _COMBINE]
    allow(w, modifiers, {"ftz", *combine})
    other = f" {_COMBINE[combine[0]]} {w.value(i.operands[3], 'b1')}" if combine else ""
    if kind in ("f16x2", "bf16x2"):
        low, high = (f"({r}{other})" for r in _of_both_halves(w, comparison, kind[:-2], modifiers, i.operands[1:3]))
        true = _TRUE_HALF[to[:-2]] if to in ("f16x2", "bf16x2") else 0xFFFF
        result = f"{low}.astype(u4) * np.uint32({true}) | {high}.astype(u4) * np.uint32({true << 16})"
        return w.define(i.operands[0], result, "u4")
    result = f"({_comparison(w, comparison, kind, modifiers, i.operands[1:3])}{other})"
    if to in _TRUE_HALF:
        return w.define(i.operands[0], f"{result}.astype(u2) * np.uint16({_TRUE_HALF[to]})", "u2")
    dtype = DTYPES[to]
    return w.define(i.operands[0], f"{'' if dtype[0] == 'f' else '-'}{result}.astype({dtype})", dtype)


def _select(w: BlockWriter, i: Instruction) -> None:
    dtype = DTYPES[i.modifiers[-1]].replace("i", "u")
    a, b = w.array(i.operands[1], dtype), w.array(i.operands[2], dtype)
    w.define(i.operands[0], f"np.where({w.array(i.operands[3], 'b1')}, {a}, {b})", dtype)


def _select_by_sign(w: BlockWriter, i: Instruction) -> None:
    """Write slct: a where c ≥ 0, else b, also for a NaN."""
    *modifiers, kind, selector = i.modifiers
    allow(w, modifiers, {"ftz"})
    dtype = DTYPES[kind].replace("i", "u")
    a, b = w.array(i.operands[1], dtype), w.array(i.operands[2], dtype)
    c = flushed(w, i.operands[3], modifiers, {"s32": "i4", "f32": "f4"}[selector])
    w.define(i.operands[0], f"np.where({c} >= 0, {a}, {b})", dtype)


def _test_property(w: BlockWriter, i: Instruction) -> None:
    what, kind = i.modifiers
    if what not in PROPERTIES or kind not in ("f32", "f64"):
        raise w.unsupported()
    w.define(i.operands[0], f"has_property({w.array(i.operands[1], DTYPES[kind])}, {what!r})", "b1")


TABLE = {
    "selp": _select,
    "set": _set,
    "setp": _set_predicate,
    "slct": _select_by_sign,
    "testp": _test_property,
}
