"""cvt: between integers, floats and halves, with PTX's rounding and clamping. `numerics.conversions` computes."""

from warplab.simulator.ptx.program import Instruction
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter
from warplab.simulator.translate.operations.arithmetic import allow, define_float, flushed
from warplab.simulator.translate.operations.comparisons import HALVES

_ROUNDINGS = ("rn", "rz", "rm", "rp")
_INTEGRAL = ("rni", "rzi", "rmi", "rpi")
_SMALL = ("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2")
_SCALES = "ue8m0x2"


def _convert(w: BlockWriter, i: Instruction) -> None:
    *modifiers, to, have = i.modifiers
    rounding = next((m for m in modifiers if m in _ROUNDINGS or m == "rna"), "rn")
    integral = next((m for m in modifiers if m in _INTEGRAL), None)
    allow(w, modifiers, {"ftz", "sat", "relu", "satfinite", rounding, integral})
    if _SCALES in (to, have):
        return _scales(w, i, rounding)
    if "pack" in modifiers or len(i.operands) > 2 or to in _SMALL or have in _SMALL:
        return _pack(w, i, rounding)
    if to == "tf32":
        return _to_tf32(w, i, rounding)
    is_float = [kind in HALVES or DTYPES[kind][0] == "f" for kind in (to, have)]
    if is_float == [False, False]:
        return _between_integers(w, i)
    if is_float == [False, True]:
        value = _as_float(w, i, have, modifiers)
        if integral is None:
            raise w.unsupported("it needs .rni, .rzi, .rmi or .rpi")
        return w.define(i.operands[0], f"float_to_int({value}, {DTYPES[to]}, {integral!r})", DTYPES[to])
    if is_float == [True, False]:
        return _from_integer(w, i, rounding)
    return _between_floats(w, i, rounding, integral)


def _as_float(w: BlockWriter, i: Instruction, kind: str, modifiers) -> str:
    """Return the source as float32 or float64."""
    source = i.operands[1]
    if kind in HALVES:
        return f"half_to_f32({w.array(source, 'u2')}, {kind!r})"
    return flushed(w, source, modifiers, DTYPES[kind])


def _between_integers(w: BlockWriter, i: Instruction) -> None:
    *modifiers, to, have = i.modifiers
    value = w.array(i.operands[1], DTYPES[have])
    dtype = DTYPES[to]
    # `define` sign- or zero-extends the value for a register wider than the destination type.
    w.define(
        i.operands[0],
        f"saturate_integer({value}, {dtype})" if "sat" in modifiers else f"{value}.astype({dtype})",
        dtype,
    )


def _from_integer(w: BlockWriter, i: Instruction, rounding: str) -> None:
    *modifiers, to, have = i.modifiers
    value = w.array(i.operands[1], DTYPES[have])
    if to in HALVES:
        return _define_half(w, i, f"half_from_f64(to_exact_f64({value}), {to!r}, {rounding!r})", modifiers, to)
    return define_float(w, i.operands[0], f"int_to_float({value}, {DTYPES[to]}, {rounding!r})", modifiers, DTYPES[to])


def _between_floats(w: BlockWriter, i: Instruction, rounding: str, integral: str | None) -> None:
    *modifiers, to, have = i.modifiers
    value = _as_float(w, i, have, modifiers)
    if to in HALVES:
        if integral and have == to:
            value = f"round_to_integral({value}, {integral!r})"
        function = "half_of_f64" if have == "f64" else "half_from_f32"
        return _define_half(w, i, f"{function}({value}, {to!r}, {rounding!r})", modifiers, to)
    dtype = DTYPES[to]
    if integral:
        result = f"round_to_integral({value}, {integral!r})"
        result = result if have == to else f"{result}.astype({dtype})"
    elif have == "f64" and to == "f32":
        result = f"narrow_f32({value}, {rounding!r})"
        if "ftz" in modifiers:
            result = f"flush_tiny({result}, lambda: narrow_f32({value} * 2.0**24, {rounding!r}))"
    elif have == to:
        result = f"canonical({value})" if to == "f32" else f"({value} + 0)"
    else:
        result = f"{value}.astype({dtype}, copy=False)"
    return define_float(w, i.operands[0], result, modifiers, dtype)


def _define_half(w: BlockWriter, i: Instruction, bits: str, modifiers, kind: str) -> None:
    clamp = next((m for m in modifiers if m in ("sat", "relu")), None)
    if clamp:
        bits = f"half_clamped({bits}, {kind!r}, {clamp!r})"
    w.define(i.operands[0], bits, "u2")


def _to_tf32(w: BlockWriter, i: Instruction, rounding: str) -> None:
    modifiers = i.modifiers[:-2]
    allow(w, modifiers, {"rn", "rz", "rna", "relu", "satfinite"})
    options = f"{rounding!r}, {'relu' in modifiers}, {'satfinite' in modifiers}"
    result = f"tf32({w.array(i.operands[1], 'f4')}, {options})"
    w.define(i.operands[0], result, "u4")


def _pack(w: BlockWriter, i: Instruction, rounding: str) -> None:
    """Convert two values into one register, a in the upper half, or out of one."""
    *modifiers, to, have = i.modifiers
    relu = "relu" in modifiers
    if have in _SMALL and to == "f16x2":
        bits = w.array(i.operands[1], "u1" if have == "e2m1x2" else "u2")
        return w.define(i.operands[0], f"small_to_halves({bits}, {have[:-2]!r}, {relu})", "u4")
    if to in _SMALL:
        if "satfinite" not in modifiers:
            raise w.unsupported()
        given = f"small_pack({', '.join(_two(w, i, have, 'f16'))}, {to[:-2]!r}, {relu})"
        return w.define(i.operands[0], given, "u1" if to == "e2m1x2" else "u2")
    kind = to[:-2]
    if have != "f32" or kind not in HALVES:
        raise w.unsupported()
    parts = []
    for operand in (i.operands[2], i.operands[1]):
        bits = f"half_from_f32({w.array(operand, 'f4')}, {kind!r}, {rounding!r})"
        parts.append(f"half_clamped({bits}, {kind!r}, 'relu')" if relu else bits)
    return w.define(i.operands[0], f"pack(u4, {', '.join(parts)})", "u4")


def _two(w: BlockWriter, i: Instruction, have: str, half: str) -> tuple[str, ...]:
    """Return two sources as float32: operands of that type, or the halves of one."""
    if have == "f32":
        a, b = (w.array(o, "f4") for o in i.operands[1:])
        return a, b
    if have != half + "x2":
        raise w.unsupported()
    both = w.array(i.operands[1], "u4")
    return tuple(f"half_to_f32(({both} >> {shift}).astype(u2), {half!r})" for shift in (16, 0))


def _scales(w: BlockWriter, i: Instruction, rounding: str) -> None:
    """Write conversions to and from ue8m0, the scales of MXFP4 and its like (sm_100)."""
    *modifiers, to, have = i.modifiers
    if to == "bf16x2":
        allow(w, modifiers, {"rn"})
        return w.define(i.operands[0], f"scales_to_halves({w.array(i.operands[1], 'u2')})", "u4")
    allow(w, modifiers, {"rz", "rp", "satfinite"})
    given = ", ".join(_two(w, i, have, "bf16"))
    return w.define(i.operands[0], f"scale_pack({given}, {rounding!r}, {'satfinite' in modifiers})", "u2")


def _pack_integers(w: BlockWriter, i: Instruction) -> None:
    """Write cvt.pack.sat."""
    to, have = i.modifiers[2:4]
    bits = {"2": 2, "4": 4, "8": 8, "16": 16}[to[1:]]
    if have != "s32" or to[0] not in "us":
        raise w.unsupported()
    low, high = (0, 2**bits - 1) if to[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    a, b = (w.array(o, "i4") for o in i.operands[1:3])
    c = w.array(i.operands[3], "u4") if len(i.operands) > 3 else "np.zeros(1, u4)"
    w.define(i.operands[0], f"pack_saturated({a}, {b}, {c}, {low}, {high}, {bits})", "u4")


TABLE = {"cvt": lambda w, i: (_pack_integers if "pack" in i.modifiers else _convert)(w, i)}
