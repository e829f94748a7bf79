"""Arithmetic on f16, bf16 and pairs of them, for which `numerics.halves` computes, on pairs of f32, and of
halves with f32 (both of sm_100).

Registers hold the bits."""

from collections.abc import Callable

from warplab.simulator.ptx.program import Instruction
from warplab.simulator.translate.block_writer import BlockWriter
from warplab.simulator.translate.operations import arithmetic
from warplab.simulator.translate.operations.arithmetic import allow

KINDS = ("f16", "bf16", "f16x2", "bf16x2")


def _emit(w: BlockWriter, i: Instruction, function: str, options: str) -> None:
    """Write `function(options…, operands…)`, applied to both halves of pairs."""
    kind = i.modifiers[-1]
    if kind.endswith("x2"):
        operands = ", ".join(w.array(o, "u4") for o in i.operands[1:])
        result = f"in_parts(lambda *x: {function}({options}, *x), u2, {operands})"
        return w.define(i.operands[0], result, "u4")
    operands = ", ".join(w.array(o, "u2") for o in i.operands[1:])
    return w.define(i.operands[0], f"{function}({options}, {operands})", "u2")


def _options(i: Instruction) -> str:
    modifiers = i.modifiers[:-1]
    clamp = next((m for m in modifiers if m in ("sat", "relu")), "")
    return f"{i.modifiers[-1].removesuffix('x2')!r}, {'ftz' in modifiers}, {clamp!r}"


def _arithmetic(w: BlockWriter, i: Instruction) -> None:
    allow(w, i.modifiers[:-1], {"rn", "ftz", "sat"})
    _emit(w, i, "half_arithmetic", f"{i.opcode!r}, {_options(i)}")


def _fma(w: BlockWriter, i: Instruction) -> None:
    allow(w, i.modifiers[:-1], {"rn", "ftz", "sat", "relu", "oob"})
    _emit(w, i, "half_fma_oob" if "oob" in i.modifiers else "half_fma", _options(i))


def _least(w: BlockWriter, i: Instruction) -> None:
    *modifiers, kind = i.modifiers
    allow(w, modifiers, {"ftz", "NaN", "xorsign", "abs"})
    if len(i.operands) > 3:
        raise w.unsupported()
    options = f"{i.opcode!r}, {kind.removesuffix('x2')!r}, {'ftz' in modifiers}"
    _emit(w, i, "half_least", f"{options}, {'NaN' in modifiers}, {'xorsign' in modifiers}")


def _two_floats(w: BlockWriter, i: Instruction) -> None:
    """Write add, sub, mul and fma of .f32x2."""
    *modifiers, _ = i.modifiers
    rounding = next((m for m in modifiers if m in arithmetic.DIRECTED), None)
    allow(w, modifiers, {"rn", "ftz", rounding})
    nearest, directed = arithmetic.FLOATS[i.opcode, "f4"]
    names = ("a", "b", "c")[: len(i.operands) - 1]
    given = [f"flush_f32({name})" if "ftz" in modifiers else name for name in names]
    result = str(directed if rounding else nearest).format(*given, r=rounding)
    result = f"flush_f32({result})" if "ftz" in modifiers else result
    operands = ", ".join(w.array(o, "u8") for o in i.operands[1:])
    w.define(i.operands[0], f"in_parts(lambda {', '.join(names)}: {result}, f4, {operands})", "u8")


def _with_a_float(w: BlockWriter, i: Instruction) -> None:
    """Write add, sub and fma of .f32.f16 and .f32.bf16 (sm_100): halves, but for the last operand and the result."""
    *modifiers, _, half = i.modifiers
    rounding = next((m for m in modifiers if m in arithmetic.DIRECTED), None)
    allow(w, modifiers, {"rn", "sat", rounding})
    *halves, last = i.operands[1:]
    operands = []
    for operand in halves:
        operands.append(w.fresh())
        w.line(f"{operands[-1]} = half_to_f32({w.array(operand, 'u2')}, {half!r})")
    nearest, directed = arithmetic.FLOATS[i.opcode, "f4"]
    result = str(directed if rounding else nearest).format(*operands, w.array(last, "f4"), r=rounding)
    arithmetic.define_float(w, i.operands[0], result, modifiers, "f4")


def _special(w: BlockWriter, i: Instruction) -> None:
    *modifiers, kind = i.modifiers
    allow(w, modifiers, {"approx", "ftz"})
    _emit(w, i, "half_special", f"{i.opcode!r}, {kind.removesuffix('x2')!r}, {'ftz' in modifiers}")


_ROWS: dict[str, Callable] = {
    **dict.fromkeys(("add", "sub", "mul", "neg", "abs"), _arithmetic),
    **dict.fromkeys(("min", "max"), _least),
    **dict.fromkeys(("ex2", "tanh"), _special),
    "fma": _fma,
}


def _by_kind(opcode: str) -> Callable:
    """Return the emitter of an opcode that other types have too."""

    def emit(w: BlockWriter, i: Instruction) -> None:
        if i.modifiers[-1] == "f32x2" and opcode in ("add", "sub", "mul", "fma"):
            return _two_floats(w, i)
        if i.modifiers[-2:-1] == ("f32",) and i.modifiers[-1] in ("f16", "bf16") and opcode in ("add", "sub", "fma"):
            return _with_a_float(w, i)
        rows = _ROWS if i.modifiers[-1] in KINDS else arithmetic.TABLE
        return rows[opcode](w, i)

    return emit


TABLE = {opcode: _by_kind(opcode) for opcode in _ROWS}
