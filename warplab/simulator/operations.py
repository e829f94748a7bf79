"""What each PTX instruction becomes: tables of NumPy expressions. To add an instruction, add a row.

A row of `ARITHMETIC` maps (opcode, class of its type) to an expression over operands {0}, {1}, {2}. Classes: "int"
where signed and unsigned are the same bits, else "s" and "u"; "f" for floats; "pred" for predicates.
"""

from __future__ import annotations

from .program import Address, Immediate, Instruction, Register, Symbol, Vector
from .translate import DTYPES, BlockWriter, item_bytes

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

FLOPS = {
    **dict.fromkeys(("add", "sub", "mul", "div", "min", "max", "sqrt", "rsqrt", "rcp"), 1),
    **dict.fromkeys(("ex2", "lg2", "sin", "cos", "tanh"), 1),
    **dict.fromkeys(("fma", "mad"), 2),
}


def flops(instruction: Instruction) -> tuple[str | None, int]:
    """Floating-point operations of one thread: precision ("f16", "f32", "f64") and number."""
    kind = instruction.modifiers[-1] if instruction.modifiers else ""
    amount = FLOPS.get(instruction.opcode, 0)
    if kind in ("f16x2", "bf16x2"):
        return "f16", 2 * amount
    kind = "f16" if kind == "bf16" else kind
    return (kind, amount) if amount and kind in ("f16", "f32", "f64") else (None, 0)


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


def _allow(w: BlockWriter, given, allowed) -> None:
    for modifier in given:
        if modifier not in allowed:
            raise w.unsupported(f"modifier .{modifier}")


def _flushed(expression: str, modifiers, dtype: str) -> str:
    """Subnormal operands and results are zero under .ftz."""
    return f"flush_f32({expression})" if "ftz" in modifiers and dtype == "f4" else expression


def _arithmetic(w: BlockWriter, i: Instruction) -> None:
    *modifiers, kind = i.modifiers
    expression, dtype = _row(i.opcode, kind)
    _allow(w, modifiers, _ROUNDING | {"ftz", "sat"})
    operands = [_flushed(o, modifiers, dtype) for o in w.arrays(i.operands[1:], dtype)]
    result = _flushed(expression.format(*operands), modifiers, dtype)
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
    _allow(w, modifiers, _ROUNDING | {"ftz", "sat"})
    function = {"f32": "fma_f32", "f64": "fma_f64"}[kind]
    dtype = DTYPES[kind]
    a, b, c = (_flushed(w.array(o, dtype), modifiers, dtype) for o in i.operands[1:4])
    result = _flushed(f"{function}({a}, {b}, {c})", modifiers, dtype)
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
    _allow(w, modifiers, {"ftz", "and", "or", "xor"})
    a, b = (_flushed(o, modifiers, dtype) for o in w.arrays(operands[:2], dtype))
    result = f"({template.format(a, b)})"
    sign = {"and": "&", "or": "|", "xor": "^"}.get(combine[0]) if combine else None
    other = w.value(operands[2], "b1") if combine else None
    w.define(i.operands[0], f"{result} {sign} {other}" if combine else result, "b1")
    if two:
        w.define(i.operands[1], f"~{result} {sign} {other}" if combine else f"~{result}", "b1")


def _select(w: BlockWriter, i: Instruction) -> None:
    dtype = DTYPES[i.modifiers[-1]].replace("i", "u")
    a, b = w.array(i.operands[1], dtype), w.array(i.operands[2], dtype)
    w.define(i.operands[0], f"np.where({w.value(i.operands[3], 'b1')}, {a}, {b})", dtype)


def _move(w: BlockWriter, i: Instruction) -> None:
    kind = i.modifiers[-1]
    destination, source = i.operands
    if isinstance(destination, Vector) or isinstance(source, Vector):
        return _repack(w, destination, source, DTYPES[kind].replace("i", "u").replace("f", "u"))
    dtype = DTYPES[kind]
    if isinstance(source, Register):  # no change of dtype: keep the bits as they are
        dtype = w.local(source.name).dtype
    w.define(destination, w.array(source, dtype), dtype, alias_of=source)


def _repack(w: BlockWriter, destination, source, dtype: str) -> None:
    """mov between a wide register and a vector of narrow ones."""
    if isinstance(destination, Vector):
        n = len(destination.items)
        part = f"u{item_bytes(dtype) // n}"
        parts = w.fresh()
        w.line(f"{parts} = np.ascontiguousarray({w.array(source, dtype)}).view({part}).reshape(-1, {n})")
        for k, item in enumerate(destination.items):
            w.define(item, f"{parts}[:, {k}].copy()", part)
    else:
        part = f"u{item_bytes(dtype) // len(source.items)}"
        items = ", ".join(w.array(item, part) for item in source.items)
        w.define(destination, f"np.stack(np.broadcast_arrays({items}), axis=-1).reshape(-1).view({dtype})", dtype)


def _convert(w: BlockWriter, i: Instruction) -> None:
    *modifiers, to_kind, from_kind = i.modifiers
    to, have = DTYPES[to_kind], DTYPES[from_kind]
    _allow(w, modifiers, {"rn", "rz", "rzi", "rni", "rmi", "rpi", "ftz", "sat"})
    value = _flushed(w.array(i.operands[1], have), modifiers, have)
    integral = next((m for m in modifiers if m in ("rzi", "rni", "rmi", "rpi")), None)
    if to[0] != "f" and have[0] == "f":
        result = f"float_to_int({value}, {to}, {integral!r})"
    elif to[0] == "f" and have[0] == "f" and integral:
        function = {"rzi": "trunc", "rni": "rint", "rmi": "floor", "rpi": "ceil"}[integral]
        result = f"np.{function}({value}).astype({to}, copy=False)"
    elif "rz" in modifiers or ("sat" in modifiers and to[0] != "f"):
        raise w.unsupported()
    else:
        result = f"{value}.astype({to})"
    if "sat" in modifiers and to[0] == "f":
        result = f"saturate({result})"
    # A register wider than the destination type takes the sign- or zero-extended value; `define` does that.
    w.define(i.operands[0], _flushed(result, modifiers, to), to)


def _convert_address(w: BlockWriter, i: Instruction) -> None:
    """cvta: shared and local windows lie at fixed distances in the generic space; global and const are generic."""
    space = next(m for m in i.modifiers if m in ("global", "shared", "local", "const", "param"))
    dtype = DTYPES[i.modifiers[-1]]
    source = i.operands[1]
    if space in ("global", "const"):
        return w.define(i.operands[0], w.array(source, dtype), dtype, alias_of=source)
    if space == "param":
        raise w.unsupported()
    sign = "-" if "to" in i.modifiers else "+"
    return w.define(i.operands[0], f"{w.array(source, dtype)} {sign} m.window_{space}", dtype)


_SPACES = ("global", "shared", "local", "const", "param")
_IGNORED = {
    *("weak", "volatile", "relaxed", "acquire", "release", "cta", "gpu", "sys", "cluster", "mmio"),
    *("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "v2", "v4", *_SPACES),
}


def _memory(w: BlockWriter, i: Instruction) -> tuple[str, str, int]:
    """Space, dtype and elements a lane of a load or store."""
    *modifiers, kind = i.modifiers
    _allow(w, (m for m in modifiers if not m.startswith(("L1::", "L2::"))), _IGNORED)
    space = next((m for m in modifiers if m in _SPACES), "generic")
    count = 4 if "v4" in modifiers else 2 if "v2" in modifiers else 1
    return space, DTYPES[kind], count


def _load(w: BlockWriter, i: Instruction) -> None:
    space, dtype, count = _memory(w, i)
    destination, address = i.operands[:2]
    if space == "param":
        if not isinstance(address, Address) or not isinstance(address.base, Symbol):
            raise w.unsupported()
        offset = w.translator.params[address.base.name].offset + address.offset
        items = destination.items if isinstance(destination, Vector) else (destination,)
        for k, item in enumerate(items):
            w.define(item, f"m.param({offset + k * item_bytes(dtype)}, {dtype})", dtype)
        return
    base, offset = w.addresses(address)
    site = w.site("load", space, dtype, count, offset)
    if count == 1:
        w.define(destination, f"m.load({site}, {base}, L)", dtype)
        return
    names = [w.fresh() for _ in range(count)]
    w.line(f"{', '.join(names)} = m.load_vector({site}, {base}, L)")
    for item, name in zip(destination.items, names, strict=True):
        w.define(item, name, dtype)


def _store(w: BlockWriter, i: Instruction) -> None:
    space, dtype, count = _memory(w, i)
    address, source = i.operands[:2]
    if space == "param":
        raise w.unsupported()
    base, offset = w.addresses(address)
    site = w.site("store", space, dtype, count, offset)
    if count == 1:
        w.line(f"m.store({site}, {base}, {w.array(source, dtype)}, L)")
    else:
        items = ", ".join(w.array(item, dtype) for item in source.items)
        w.line(f"m.store_vector({site}, {base}, ({items}), L)")


def _nothing(w: BlockWriter, i: Instruction) -> None:
    """Fences, and barriers of one warp: a warp's lanes that stand at one place run together here."""


TABLE = {
    **{opcode: _arithmetic for opcode, _ in ARITHMETIC},
    **dict.fromkeys(("mul", "mad"), _multiply),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("membar", "fence", "bar"), _nothing),
    "cvt": _convert,
    "cvta": _convert_address,
    "fma": _fma,
    "ld": _load,
    "ldu": _load,
    "mov": _move,
    "selp": _select,
    "setp": _compare,
    "st": _store,
}
