"""Arithmetic and logic on integers, predicates, float32 and float64: tables of NumPy expressions.

`INTEGERS` maps (opcode, class) to an expression over the operands {0}, {1}, {2}. Classes: "int" where signed and
unsigned are the same bits, else "s" or "su"; "pred" for predicates. `FLOATS` maps (opcode, dtype) to the expressions
for rounding to nearest and for the mode {r}; `APPROXIMATE` has the functions that PTX marks `.approx` and `.full`.
"""

from collections.abc import Iterable

from warplab.simulator.ptx.program import Immediate, Instruction, Operand, Register
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter, item_bytes, literal

INTEGERS = {
    ("add", "int"): "{0} + {1}",
    ("sub", "int"): "{0} - {1}",
    ("mul", "int"): "{0} * {1}",
    ("mad", "int"): "{0} * {1} + {2}",
    ("div", "su"): "divide({0}, {1})",
    ("rem", "su"): "remainder({0}, {1})",
    ("abs", "s"): "np.abs({0})",
    ("neg", "int"): "-{0}",
    ("min", "su"): "np.minimum({0}, {1})",
    ("max", "su"): "np.maximum({0}, {1})",
    ("sad", "su"): "absolute_difference({0}, {1}) + {2}",
    ("and", "int"): "{0} & {1}",
    ("or", "int"): "{0} | {1}",
    ("xor", "int"): "{0} ^ {1}",
    ("not", "int"): "~{0}",
    ("cnot", "int"): "({0} == 0).astype({0}.dtype)",
    ("and", "pred"): "{0} & {1}",
    ("or", "pred"): "{0} | {1}",
    ("xor", "pred"): "{0} ^ {1}",
    ("not", "pred"): "~{0}",
}
_SATURATED = {"add": "add_saturated({0}, {1})", "sub": "add_saturated({0}, {1}, -1)"}

# float32 NaNs are made canonical, as in the hardware; float64 keeps their payload, as the processor does.
FLOATS = {
    ("add", "f4"): ("canonical({0} + {1})", "add_f32({0}, {1}, {r!r})"),
    ("sub", "f4"): ("canonical({0} - {1})", "add_f32({0}, -{1}, {r!r})"),
    ("mul", "f4"): ("canonical({0} * {1})", "multiply_f32({0}, {1}, {r!r})"),
    ("div", "f4"): ("canonical({0} / {1})", "divide_f32({0}, {1}, {r!r})"),
    ("rcp", "f4"): ("canonical(1 / {0})", "divide_f32(np.ones(1, f4), {0}, {r!r})"),
    ("sqrt", "f4"): ("canonical(np.sqrt({0}))", "square_root_f32({0}, {r!r})"),
    ("fma", "f4"): ("fma_f32({0}, {1}, {2})", "fma_f32_rounded({0}, {1}, {2}, {r!r})"),
    ("abs", "f4"): ("canonical(np.abs({0}))", None),
    ("neg", "f4"): ("canonical(-{0})", None),
    ("add", "f8"): ("{0} + {1}", "add_f64({0}, {1}, {r!r})"),
    ("sub", "f8"): ("{0} - {1}", "add_f64({0}, -{1}, {r!r})"),
    ("mul", "f8"): ("{0} * {1}", "multiply_f64({0}, {1}, {r!r})"),
    ("div", "f8"): ("{0} / {1}", "divide_f64({0}, {1}, {r!r})"),
    ("rcp", "f8"): ("1 / {0}", "divide_f64(np.ones(1), {0}, {r!r})"),
    ("sqrt", "f8"): ("np.sqrt({0})", "square_root_f64({0}, {r!r})"),
    ("fma", "f8"): ("fma_f64({0}, {1}, {2})", "fma_f64_rounded({0}, {1}, {2}, {r!r})"),
    ("abs", "f8"): ("absolute_f64({0})", None),
    ("neg", "f8"): ("negative_f64({0})", None),
    ("copysign", "f4"): ("np.copysign({1}, {0})", None),
    ("copysign", "f8"): ("np.copysign({1}, {0})", None),
}
APPROXIMATE = {
    ("div", "approx", "f4"): "div_approx({0}, {1})",
    ("div", "full", "f4"): "div_full({0}, {1})",
    **{
        (opcode, "approx", "f4"): f"{opcode}_approx({{0}})"
        for opcode in ("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
    },
    ("rsqrt", "approx", "f8"): "rsqrt_f64({0})",
    ("rcp", "approx.ftz", "f8"): "rcp_approx_f64({0})",
    ("rsqrt", "approx.ftz", "f8"): "rsqrt_approx_f64({0})",
}
DIRECTED = ("rz", "rm", "rp")
_SATURATED24 = ("mad24", "hi", "s32")  # the only one of these with .sat
_OPERATORS = ("add", "sub", "mul", "div")
_MAY_ROUND_UP = ("mul", "div", "fma")  # from below all normal numbers to the smallest one


# -- shared with other files ---------------------------------------------------------------------------------


def allow(w: BlockWriter, given: Iterable[str], allowed) -> None:
    for modifier in given:
        if modifier not in allowed:
            raise w.unsupported(f"modifier .{modifier}")


def flushed(w: BlockWriter, operand: Operand, modifiers, dtype: str) -> str:
    """Return an operand as an array, in which .ftz turns subnormal float32 into zeros, unless of .ftz."""
    value = w.array(operand, dtype)
    if "ftz" not in modifiers or dtype != "f4":
        return value
    if isinstance(operand, Immediate) and abs(operand.value) >= 2.0**-126:
        return value
    key = (value, "flushed")
    if key not in w.views:
        w.views[key] = w.fresh()
        w.line(f"{w.views[key]} = flush_f32({value})")
    return w.views[key]


def define_float(w: BlockWriter, destination: Operand, result: str, modifiers, dtype: str) -> None:
    """Write a float result, after applying .ftz and .sat."""
    if "ftz" in modifiers and dtype == "f4":
        result = f"flush_f32({result})"
    if "sat" in modifiers:
        result = f"saturate({result})"
    w.define(destination, result, dtype)
    if dtype == "f4" and ("ftz" in modifiers or "flushed" in modifiers) and isinstance(destination, Register):
        name = w.local(destination.name).name
        w.views[name, "flushed"] = name


def _integer_row(opcode: str, kind: str) -> tuple[str, str]:
    """Return the expression and operand dtype of an integer instruction. Raises KeyError if there is none."""
    if kind == "pred":
        return INTEGERS[opcode, "pred"], "b1"
    dtype = DTYPES[kind]
    if (opcode, "int") in INTEGERS:
        return INTEGERS[opcode, "int"], dtype.replace("i", "u")
    signs = "su" if (opcode, "su") in INTEGERS or dtype[0] == "u" else "s"
    return INTEGERS[opcode, signs], dtype


# -- emitters ----------------------------------------------------------------------------------------------


def _arithmetic(w: BlockWriter, i: Instruction) -> None:
    *modifiers, kind = i.modifiers
    if DTYPES[kind][0] == "f":
        return _float(w, i)
    allow(w, modifiers, {"lo", "sat"})
    expression, dtype = _integer_row(i.opcode, kind)
    if "sat" in modifiers:
        expression, dtype = _SATURATED[i.opcode], {"s32": "i4"}[kind]
    # NumPy is faster with a Python number than with an array of one entry, but only its operators take numbers.
    operands = w.arrays(i.operands[1:], dtype) if "(" not in expression else [w.array(o, dtype) for o in i.operands[1:]]
    w.define(i.operands[0], expression.format(*operands), dtype)


def _float(w: BlockWriter, i: Instruction) -> None:
    *modifiers, kind = i.modifiers
    dtype = DTYPES[kind]
    opcode = "fma" if i.opcode == "mad" else i.opcode
    form = next((m for m in modifiers if m in ("approx", "full")), None)
    rounding = next((m for m in modifiers if m in DIRECTED), None)
    allow(w, modifiers, {"rn", "ftz", "sat", form, rounding})
    if opcode in _OPERATORS and rounding is None and form is None and "ftz" not in modifiers:
        operands = w.arrays(i.operands[1:], dtype)
    else:
        operands = [flushed(w, o, modifiers, dtype) for o in i.operands[1:]]
    if form:
        form += ".ftz" if "ftz" in modifiers and dtype == "f8" else ""
        return define_float(w, i.operands[0], APPROXIMATE[opcode, form, dtype].format(*operands), modifiers, dtype)
    nearest, directed = FLOATS[opcode, dtype]
    if rounding and not directed:
        raise w.unsupported(f"modifier .{rounding}")
    template = directed if rounding and directed else nearest
    result = template.format(*operands, r=rounding)
    if directed and "ftz" in modifiers and dtype == "f4" and opcode in _MAY_ROUND_UP:
        scaled = [f"{o} * np.float32(2**24)" if k != 1 else o for k, o in enumerate(operands)]
        again = directed.format(*scaled, r=rounding or "rn")
        result = f"flush_tiny({result}, lambda: {again})"
        modifiers = [m for m in modifiers if m != "ftz"] + ["flushed"]
    return define_float(w, i.operands[0], result, modifiers, dtype)


def _least(w: BlockWriter, i: Instruction) -> None:
    """Write min and max."""
    *modifiers, kind = i.modifiers
    dtype = DTYPES[kind]
    if len(i.operands) > 3 and kind != "f32":
        raise w.unsupported()
    if dtype[0] != "f":
        return _arithmetic(w, i)
    allow(w, modifiers, {"ftz", "NaN", "xorsign", "abs"})
    a, b, *third = (flushed(w, o, modifiers, dtype) for o in i.operands[1:])
    function = {"min": "minimum", "max": "maximum"}[i.opcode]
    second = i.operands[2]
    if (
        not modifiers and not third and isinstance(second, Immediate) and abs(second.value) > 0
    ):  # no zeros to distinguish
        result = f"np.f{i.opcode}({a}, {b})"
        return define_float(w, i.operands[0], f"canonical({result})" if dtype == "f4" else result, modifiers, dtype)
    function += "_nan" if "NaN" in modifiers else ""
    if third:  # of sm_100; .abs alone
        if "xorsign" in modifiers:
            raise w.unsupported()
        a, b, c = (f"np.abs({x})" if "abs" in modifiers else x for x in (a, b, *third))
        result = f"{function}({function}({a}, {b}), {c})"
    elif "xorsign" in modifiers:
        result = f"xor_sign({a}, {b}, {function}(np.abs({a}), np.abs({b})))"
    else:
        result = f"{function}({a}, {b})"
    return define_float(w, i.operands[0], result, modifiers, dtype)


def _multiply(w: BlockWriter, i: Instruction) -> None:
    """Write mul and mad: .lo, .hi and .wide of integers."""
    *modifiers, kind = i.modifiers
    dtype = DTYPES[kind]
    form = next((m for m in modifiers if m in ("hi", "wide")), None)
    if dtype[0] == "f" or form is None:
        return _arithmetic(w, i)
    allow(w, modifiers, {"hi", "wide", "sat"})
    a, b = (w.array(o, dtype) for o in i.operands[1:3])
    if form == "hi":
        result, out = f"mul_hi({a}, {b})", dtype
    else:
        out = f"{dtype[0]}{2 * item_bytes(dtype)}"
        if isinstance(i.operands[2], Immediate):
            result = f"{a}.astype({out}) * {literal(i.operands[2].value, dtype)}"
        else:
            result = f"np.multiply({a}, {b}, dtype={out})"
    if i.opcode == "mad":
        c = w.array(i.operands[3], out)
        result = f"add_saturated({result}, {c})" if "sat" in modifiers else f"{result} + {c}"
    return w.define(i.operands[0], result, out)


def _multiply24(w: BlockWriter, i: Instruction) -> None:
    form, *saturated, kind = i.modifiers
    if form not in ("hi", "lo") or saturated not in ([], ["sat"] if (i.opcode, form, kind) == _SATURATED24 else []):
        raise w.unsupported()
    dtype = {"u32": "u4", "s32": "i4"}[kind]
    a, b, *c = (w.array(o, dtype) for o in i.operands[1:])
    result = f"mul24({a}, {b}, {form == 'hi'})"
    if i.opcode == "mad24":
        result = f"add_saturated({result}, {c[0]})" if saturated else f"{result} + {c[0]}"
    w.define(i.operands[0], result, dtype)


def _or_packed(emit):
    """Return `emit`, except for pairs of 16-bit integers in a register and .relu of integers."""

    def choose(w: BlockWriter, i: Instruction) -> None:
        *modifiers, kind = i.modifiers
        relu = "relu" in modifiers
        if kind not in ("u16x2", "s16x2") and not relu:
            return emit(w, i)
        allow(w, modifiers, ("relu",))
        dtype = {"u16x2": "u2", "s16x2": "i2", "s32": "i4"}[kind]
        function = {"add": "np.add", "min": "np.minimum", "max": "np.maximum"}[i.opcode]
        a, b = (w.array(o, "u4") for o in i.operands[1:])
        result = f"in_parts({function}, {dtype}, {a}, {b})"
        return w.define(
            i.operands[0], f"in_parts(np.maximum, {dtype}, {result}, np.zeros(1, u4))" if relu else result, "u4"
        )

    return choose


TABLE = {
    **{opcode: _arithmetic for opcode, _ in INTEGERS},
    **{opcode: _float for opcode, _, _ in APPROXIMATE if opcode != "div"},
    **dict.fromkeys(("mul", "mad"), _multiply),
    **dict.fromkeys(("mul24", "mad24"), _multiply24),
    **dict.fromkeys(("copysign", "fma"), _float),
    "add": _or_packed(_arithmetic),
    "min": _or_packed(_least),
    "max": _or_packed(_least),
}
