"""Arithmetic, logic, shifts and comparisons: tables of NumPy expressions.

A row of `ARITHMETIC` maps (opcode, class of its type) to an expression over operands {0}, {1}, {2}. Classes: "int"
where signed and unsigned are the same bits, else "s" and "u"; "f" for floats; "pred" for predicates.
"""

from __future__ import annotations

from ..program import Immediate, Instruction, Register
from ..translate import DTYPES, BlockWriter, item_bytes

ARITHMETIC = {
    ("add", "int"): "{0} + {1}",
    ("add", "f"): "{0} + {1}",
    ("sub", "int"): "{0} - {1}",
    ("sub", "f"): "{0} - {1}",
    ("mul", "int"): "{0} * {1}",
    ("mul", "f"): "{0} * {1}",
    ("mad", "int"): "{0} * {1} + {2}",
    ("div", "s"): "divide_signed({0}, {1})",
    ("div", "u"): "divide_signed({0}, {1})",
    ("div", "f"): "{0} / {1}",
    ("rem", "s"): "remainder_signed({0}, {1})",
    ("rem", "u"): "remainder_signed({0}, {1})",
    ("abs", "s"): "absolute({0})",
    ("abs", "f"): "absolute({0})",
    ("neg", "int"): "-{0}",
    ("neg", "f"): "-{0}",
    ("min", "s"): "np.minimum({0}, {1})",
    ("min", "u"): "np.minimum({0}, {1})",
    ("min", "f"): "np.fmin({0}, {1})",
    ("max", "s"): "np.maximum({0}, {1})",
    ("max", "u"): "np.maximum({0}, {1})",
    ("max", "f"): "np.fmax({0}, {1})",
    ("and", "int"): "{0} & {1}",
    ("or", "int"): "{0} | {1}",
    ("xor", "int"): "{0} ^ {1}",
    ("not", "int"): "~{0}",
    ("and", "pred"): "{0} & {1}",
    ("or", "pred"): "{0} | {1}",
    ("xor", "pred"): "{0} ^ {1}",
    ("not", "pred"): "~{0}",
    ("popc", "int"): "popc({0})",
    ("clz", "int"): "clz({0})",
    ("brev", "int"): "brev({0})",
    ("sqrt", "f"): "np.sqrt({0})",
    ("rsqrt", "f"): "1 / np.sqrt({0})",
    ("rcp", "f"): "1 / {0}",
    ("ex2", "f"): "np.exp2({0})",
    ("lg2", "f"): "np.log2({0})",
    ("sin", "f"): "np.sin({0})",
    ("cos", "f"): "np.cos({0})",
    ("tanh", "f"): "np.tanh({0})",
}
# Modifiers that change nothing here: round to nearest is NumPy's, approximate functions are computed exactly.
_ROUNDING = frozenset(("rn", "approx", "full", "lo"))
_RESULT_U32 = ("popc", "clz")

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


def _row(opcode: str, kind: str) -> tuple[str, str]:
    """Expression and operand dtype of an arithmetic instruction. KeyError if the tables have none."""
    if kind == "pred":
        return ARITHMETIC[opcode, "pred"], "b1"
    dtype = DTYPES[kind]
    if dtype[0] == "f":
        return ARITHMETIC[opcode, "f"], dtype
    if (opcode, "int") in ARITHMETIC:
        return ARITHMETIC[opcode, "int"], dtype.replace("i", "u")
    return ARITHMETIC[opcode, "s" if dtype[0] == "i" else "u"], dtype


def allow(w: BlockWriter, given, allowed) -> None:
    for modifier in given:
        if modifier not in allowed:
            raise w.unsupported(f"modifier .{modifier}")


def flushed(expression: str, modifiers, dtype: str) -> str:
    """Subnormal operands and results are zero under .ftz."""
    return f"flush_f32({expression})" if "ftz" in modifiers and dtype == "f4" else expression


def _arithmetic(w: BlockWriter, i: Instruction) -> None:
    *modifiers, kind = i.modifiers
    expression, dtype = _row(i.opcode, kind)
    allow(w, modifiers, _ROUNDING | {"ftz", "sat"})
    operands = [flushed(o, modifiers, dtype) for o in w.arrays(i.operands[1:], dtype)]
    result = flushed(expression.format(*operands), modifiers, dtype)
    if "sat" in modifiers:
        if dtype[0] != "f":
            raise w.unsupported("modifier .sat on integers")
        result = f"saturate({result})"
    w.define(i.operands[0], result, "u4" if i.opcode in _RESULT_U32 else dtype)


def _multiply(w: BlockWriter, i: Instruction) -> None:
    """mul and mad on integers: .lo, .hi and .wide."""
    kind = i.modifiers[-1]
    form = i.modifiers[0] if i.modifiers[0] in ("hi", "wide") else "lo"
    if DTYPES[kind][0] == "f" or form == "lo":
        if i.opcode == "mad" and DTYPES[kind][0] == "f":
            return _fma(w, i)
        return _arithmetic(w, i)
    dtype = DTYPES[kind]
    a, b = w.arrays(i.operands[1:3], dtype)
    if form == "hi":
        result, out = f"mul_hi({a}, {w.array(i.operands[2], dtype)})", dtype
    else:
        out = f"{dtype[0]}{2 * item_bytes(dtype)}"
        b = b if isinstance(i.operands[2], Immediate) else f"{b}.astype({out})"
        result = f"{a}.astype({out}) * {b}"
    if i.opcode == "mad":
        result = f"{result} + {w.value(i.operands[3], out)}"
    return w.define(i.operands[0], result, out)


def _fma(w: BlockWriter, i: Instruction) -> None:
    *modifiers, kind = i.modifiers
    allow(w, modifiers, _ROUNDING | {"ftz", "sat"})
    function = {"f32": "fma_f32", "f64": "fma_f64"}[kind]
    dtype = DTYPES[kind]
    a, b, c = (flushed(w.array(o, dtype), modifiers, dtype) for o in i.operands[1:4])
    result = flushed(f"{function}({a}, {b}, {c})", modifiers, dtype)
    w.define(i.operands[0], f"saturate({result})" if "sat" in modifiers else result, dtype)


def _shift(w: BlockWriter, i: Instruction) -> None:
    dtype = DTYPES[i.modifiers[-1]]
    if i.opcode == "shl":
        dtype = dtype.replace("i", "u")
    a = w.array(i.operands[1], dtype)
    amount = i.operands[2]
    sign, function = ("<<", "shift_left") if i.opcode == "shl" else (">>", "shift_right")
    if isinstance(amount, Immediate) and 0 <= amount.value < 8 * item_bytes(dtype):
        w.define(i.operands[0], f"{a} {sign} {amount.value}", dtype)
    else:
        w.define(i.operands[0], f"{function}({a}, {w.value(amount, 'u4')})", dtype)


def _compare(w: BlockWriter, i: Instruction) -> None:
    comparison, *modifiers, kind = i.modifiers
    dtype = DTYPES[kind]
    template = _FLOAT_NE if comparison == "ne" and dtype[0] == "f" else COMPARISONS[comparison]
    if (dtype[0] == "u" and comparison in ("eq", "ne")) or (dtype[0] == "i" and comparison in ("eq", "ne")):
        dtype = dtype.replace("i", "u")
    two = isinstance(i.operands[1], Register) and w.translator.dtypes.get(i.operands[1].name) == "b1"
    if kind == "pred":
        raise w.unsupported()
    operands = i.operands[2:] if two else i.operands[1:]
    combine = [m for m in modifiers if m in ("and", "or", "xor")]
    allow(w, modifiers, {"ftz", "and", "or", "xor"})
    a, b = (flushed(o, modifiers, dtype) for o in w.arrays(operands[:2], dtype))
    result = f"({template.format(a, b)})"
    sign = {"and": "&", "or": "|", "xor": "^"}.get(combine[0]) if combine else None
    other = w.value(operands[2], "b1") if combine else None
    w.define(i.operands[0], f"{result} {sign} {other}" if combine else result, "b1")
    if two:
        w.define(i.operands[1], f"~{result} {sign} {other}" if combine else f"~{result}", "b1")


TABLE = {
    **{opcode: _arithmetic for opcode, _ in ARITHMETIC},
    **dict.fromkeys(("mul", "mad"), _multiply),
    **dict.fromkeys(("shl", "shr"), _shift),
    "fma": _fma,
    "setp": _compare,
}
