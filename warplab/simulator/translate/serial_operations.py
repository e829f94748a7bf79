"""What a PTX instruction becomes where a single lane runs it: Python code on plain numbers.

`TABLE` maps an opcode to its emitter, `emit(writer, instruction)`, which writes Python code with the methods of
`SerialWriter`: `u`, `s`, `f` and `p` return an operand as an unsigned or signed integer, a float or a bool, and the
`define_…` methods write a register. An emitter raises `NotSerial` for a form that it leaves to the arrays, as for all
that is not in the table. The results are those of `operations`, bit for bit: where a plain number would differ, as for
a NaN, the emitter has the array's code compute it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from warplab.simulator.ptx.program import (
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
    as_address,
    integer,
    items_of,
)
from warplab.simulator.translate.block_writer import DTYPES, item_bytes
from warplab.simulator.translate.operations.bits import lop3
from warplab.simulator.translate.operations.comparisons import COMPARISONS
from warplab.simulator.translate.operations.memory import space_of

Writer = Any  # a SerialWriter, whose module imports this one


class NotSerial(Exception):
    """This form of an instruction has no code for plain numbers."""


_BITS = {f"{letter}{bits}": bits for letter in "bus" for bits in (8, 16, 32, 64)}
_FLOATS = {"f32": 4, "f64": 8}
FORMS = {"f32": "f", "f64": "d"}


def mask(bits: int) -> str:
    return hex((1 << bits) - 1)


def _require(condition: object) -> None:
    if not condition:
        raise NotSerial


def _only(modifiers: Iterable[str], allowed: Iterable[str]) -> None:
    _require(set(modifiers) <= set(allowed))


def _read_floats(w: Writer, i: Instruction, operands: Iterable[Operand]) -> list[str]:
    """Operands of the last type of an instruction as floats, after .ftz."""
    kind = i.modifiers[-1]
    ftz = "ftz" in i.modifiers
    _require(kind == "f32" or not ftz)
    return [w.flushed(o) if ftz else w.f(o, _FLOATS[kind]) for o in operands]


def _define_float(w: Writer, i: Instruction, kind: str, result: str) -> None:
    if kind == "f32":
        w.define_flushed(i, result)
    else:
        w.define(i.operands[0], FORMS[kind], result)


# -- integers ------------------------------------------------------------------------------------------------------


def _sum(w: Writer, i: Instruction) -> None:
    """add and sub."""
    *modifiers, kind = i.modifiers
    if kind in _FLOATS:
        return _float(w, i)
    _only(modifiers, ())
    bits, sign = _BITS[kind], {"add": "+", "sub": "-"}[i.opcode]
    a, b = i.operands[1:]
    w.define_u(i.operands[0], f"({w.u(a, bits)} {sign} {w.u(b, bits, small=True)}) & {mask(bits)}", bits)


def _product(w: Writer, i: Instruction) -> None:
    """mul and mad."""
    *modifiers, kind = i.modifiers
    if kind in _FLOATS:
        return _float(w, i)
    _only(modifiers, ("lo", "hi", "wide"))
    bits, (form,) = _BITS[kind], modifiers
    read = w.s if kind[0] == "s" and form != "lo" else w.u
    product = f"{read(i.operands[1], bits)} * {read(i.operands[2], bits)}"
    out = 2 * bits if form == "wide" else bits
    if form == "hi":
        product = f"({product} >> {bits})"
    add = f" + {w.u(i.operands[3], out)}" if i.opcode == "mad" else ""
    exact = kind[0] == "u" and form in ("hi", "wide") and not add
    w.define_u(i.operands[0], product if exact else f"({product}{add}) & {mask(out)}", out)


def _quotient(w: Writer, i: Instruction) -> None:
    """div and rem. Division by zero gives all ones."""
    *modifiers, kind = i.modifiers
    if kind in _FLOATS:
        return _float(w, i)
    _only(modifiers, ())
    bits = _BITS[kind]
    if kind[0] == "u":
        a, b = w.named(w.u(i.operands[1], bits)), w.named(w.u(i.operands[2], bits))
        result = f"{a} {'//' if i.opcode == 'div' else '%'} {b} if {b} else {mask(bits)}"
    else:
        a, b = w.named(w.s(i.operands[1], bits)), w.named(w.s(i.operands[2], bits))
        if i.opcode == "div":
            result = f"(abs({a}) // abs({b}) if ({a} < 0) == ({b} < 0) else -(abs({a}) // abs({b}))) & {mask(bits)}"
        else:
            result = f"(abs({a}) % abs({b}) if {a} >= 0 else -(abs({a}) % abs({b}))) & {mask(bits)}"
        result = f"{result} if {b} else {mask(bits)}"
    return w.define_u(i.operands[0], result, bits)


def _least(w: Writer, i: Instruction) -> None:
    """min and max."""
    *modifiers, kind = i.modifiers
    _only(modifiers, ("ftz",) if kind in _FLOATS else ())
    sign = {"min": "<", "max": ">"}[i.opcode]
    if kind in _FLOATS:
        a, b = (w.named(value) for value in _read_floats(w, i, i.operands[1:]))
        name = w.named(f"{a} if {a} {sign} {b} else {b}")
        # Of zeros the sign counts, and of a number and NaN the number.
        w.line(f"if {a} == 0.0 == {b} or {a} != {a} != {b} != {b}: {name} = {w.by_arrays(i, FORMS[kind])}")
        w.line(f"elif {b} != {b}: {name} = {a}")
        return _define_float(w, i, kind, name)
    _require(kind in _BITS)
    bits = _BITS[kind]
    a, b = (w.named(w.u(o, bits)) for o in i.operands[1:])
    if kind[0] == "s":
        flip = 1 << (bits - 1)
        return w.define_u(i.operands[0], f"{a} if {a} ^ {flip} {sign} {b} ^ {flip} else {b}", bits)
    return w.define_u(i.operands[0], f"{a} if {a} {sign} {b} else {b}", bits)


def _sign(w: Writer, i: Instruction) -> None:
    """neg and abs."""
    *modifiers, kind = i.modifiers
    _only(modifiers, ("ftz",) if kind in _FLOATS else ())
    function = {"neg": "-{}", "abs": "abs({})"}[i.opcode]
    if kind in _FLOATS:
        a = w.named(*_read_floats(w, i, i.operands[1:]))
        result = w.named(function.format(a))
        w.line(f"if {a} != {a}: {result} = {w.by_arrays(i, FORMS[kind])}")
        return _define_float(w, i, kind, result)
    bits = _BITS[kind]
    return w.define_u(i.operands[0], f"{function.format(w.s(i.operands[1], bits))} & {mask(bits)}", bits)


def _logic(w: Writer, i: Instruction) -> None:
    """and, or, xor, not."""
    (kind,) = i.modifiers
    sign = {"and": "&", "or": "|", "xor": "^", "not": None}[i.opcode]
    if kind == "pred":
        if sign is None:
            return w.define_p(i.operands[0], f"not {w.p(i.operands[1])}")
        return w.define_p(i.operands[0], f"{w.p(i.operands[1])} {sign} {w.p(i.operands[2])}")
    bits = _BITS[kind]
    if sign is None:
        return w.define_u(i.operands[0], f"{w.u(i.operands[1], bits)} ^ {mask(bits)}", bits)
    return w.define_u(i.operands[0], f"{w.u(i.operands[1], bits)} {sign} {w.u(i.operands[2], bits)}", bits)


def _logic3(w: Writer, i: Instruction) -> None:
    a, b, c = (w.u(o, 32) for o in i.operands[1:4])
    _require(i.modifiers == ("b32",))
    w.define_u(i.operands[0], f"({lop3(integer(i.operands[4]) & 0xFF).format(a, b, c)}) & {mask(32)}", 32)


def _shift(w: Writer, i: Instruction) -> None:
    (kind,) = i.modifiers
    bits, amount = _BITS[kind], i.operands[2]
    signed = i.opcode == "shr" and kind[0] == "s"
    a = (w.s if signed else w.u)(i.operands[1], bits)
    if isinstance(amount, Immediate):
        count = integer(amount)
        _require(0 <= count < bits)
        shifted = f"{a} << {count}" if i.opcode == "shl" else f"{a} >> {count}"
        exact = i.opcode == "shr" and not signed
        return w.define_u(i.operands[0], shifted if exact else f"({shifted}) & {mask(bits)}", bits)
    count = w.named(w.u(amount, 32))
    if i.opcode == "shl":
        result = f"({a} << {count}) & {mask(bits)} if {count} < {bits} else 0"
    elif signed:
        result = f"({a} >> ({count} if {count} < {bits} else {bits - 1})) & {mask(bits)}"
    else:
        result = f"{a} >> {count} if {count} < {bits} else 0"
    return w.define_u(i.operands[0], result, bits)


def _funnel(w: Writer, i: Instruction) -> None:
    direction, mode, kind = i.modifiers
    _require(kind == "b32" and mode in ("wrap", "clamp") and direction in "lr")
    low, high, amount = (w.u(o, 32) for o in i.operands[1:])
    count = w.named(f"{amount} & 31" if mode == "wrap" else f"{amount} if {amount} < 32 else 32")
    both = f"({high} << 32 | {low})"
    result = f"({both} << {count} >> 32) & {mask(32)}" if direction == "l" else f"({both} >> {count}) & {mask(32)}"
    w.define_u(i.operands[0], result, 32)


def _count(w: Writer, i: Instruction) -> None:
    bits = _BITS[i.modifiers[-1]]
    a = w.named(w.u(i.operands[1], bits))
    w.define_u(i.operands[0], f"{a}.bit_count()" if i.opcode == "popc" else f"{bits} - {a}.bit_length()", 32)


def _extract(w: Writer, i: Instruction) -> None:
    """bfe of unsigned fields at known places."""
    kind = i.modifiers[-1]
    position, length = (integer(o) if isinstance(o, Immediate) else -1 for o in i.operands[2:])
    _require(kind in ("u32", "u64") and 0 <= position < _BITS[kind] and 0 < length <= _BITS[kind] - position)
    w.define_u(i.operands[0], f"{w.u(i.operands[1], _BITS[kind])} >> {position} & {mask(length)}", _BITS[kind])


# -- floating point ------------------------------------------------------------------------------------------------


def _float(w: Writer, i: Instruction) -> None:
    """Rounding to nearest. A float64 result rounded to float32 is right for one operation on float32."""
    *modifiers, kind = i.modifiers
    _only(modifiers, ("rn", "ftz"))
    item = _FLOATS[kind]
    opcode = "fma" if i.opcode == "mad" else i.opcode
    values = _read_floats(w, i, i.operands[1:])
    if opcode == "fma" and item == 4:
        return _fma32(w, i, values)
    if opcode == "fma":
        result = w.named(f"fma_of_f64({', '.join(values)})")
        w.line(f"if {result} is None: {result} = {w.by_arrays(i, 'd')}")
        return w.define(i.operands[0], "d", result)
    rare = None
    if opcode in ("add", "sub", "mul"):
        result = f"{values[0]} {dict(add='+', sub='-', mul='*')[opcode]} {values[1]}"
    elif opcode == "div":
        values = [w.named(value) for value in values]
        result, rare = f"{values[0]} / {values[1]}", f"{values[1]} == 0.0"
    elif opcode == "rcp":
        values = [w.named(values[0])]
        result, rare = f"1.0 / {values[0]}", f"{values[0]} == 0.0"
    elif opcode == "sqrt":
        values = [w.named(values[0])]
        result, rare = f"square_root({values[0]})", f"not {values[0]} >= 0.0"
    else:
        raise NotSerial
    if rare:
        result = f"{result} if not ({rare}) else {w.by_arrays(i, FORMS[kind])}"
    return w.define_rounded(i, result, FORMS[kind])


def _fma32(w: Writer, i: Instruction, values: list[str]) -> None:
    """As `numerics.fma_f32`: the sum of the exact product is rounded twice, which is wrong only where the first result
    lies halfway between two float32, or is tiny."""
    product, total, result = w.fresh(), w.fresh(), w.fresh()
    w.line(f"{product} = {values[0]} * {values[1]}")
    w.line(f"{total} = D[0] = {product} + {values[2]}")
    w.line(f"if Q[0] & 0x1FFFFFFF == 0x10000000: {total} = off_halfway({product}, {values[2]}, {total})")
    w.line(f"F[0] = {total}")
    w.line(f"{result} = F[0]")
    w.line(f"if not ({result} >= 2e-38 or {result} <= -2e-38 or {total} == 0.0):")
    w.line(f"    {result} = {w.by_arrays(i, 'f')}")
    w.define_flushed(i, result)


# -- comparisons, selections ---------------------------------------------------------------------------------------

# Of integers; those of floats differ where NaN is concerned, as Python's `not` stands for NumPy's `~` there.
_COMPARISONS = {name: COMPARISONS[name] for name in ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs")}
_FLOAT_COMPARISONS = {
    **{name: _COMPARISONS[name] for name in ("eq", "lt", "le", "gt", "ge")},
    "ne": "({0} < {1} or {0} > {1})",
    "equ": "not ({0} < {1} or {0} > {1})",
    "neu": "{0} != {1}",
    "ltu": "not {0} >= {1}",
    "leu": "not {0} > {1}",
    "gtu": "not {0} <= {1}",
    "geu": "not {0} < {1}",
    "num": "({0} == {0} and {1} == {1})",
    "nan": "({0} != {0} or {1} != {1})",
}
_COMBINE = {"and": "&", "or": "|", "xor": "^"}


def _set_predicate(w: Writer, i: Instruction) -> None:
    comparison, *modifiers, kind = i.modifiers
    combine = [m for m in modifiers if m in _COMBINE]
    _only(modifiers, [*combine, "ftz"] if kind in _FLOATS else combine)
    operands = i.operands
    two = isinstance(operands[1], Register) and w.dtype(operands[1]) == "b1"
    destinations, inputs = operands[: 1 + two], operands[1 + two :]
    if kind in _FLOATS:
        a, b = _read_floats(w, i, inputs[:2])
        result = _FLOAT_COMPARISONS[comparison].format(a, b)
    else:
        _require(kind in _BITS)
        bits = _BITS[kind]
        if kind[0] == "s" and comparison not in ("eq", "ne"):
            # Flipping the sign bits makes an unsigned comparison of it.
            a, b = (w.flipped(o, bits) for o in inputs[:2])
        else:
            a, b = (w.u(o, bits) for o in inputs[:2])
        result = _COMPARISONS[comparison].format(a, b)
    if two or combine:
        result = w.named(result)
    results = [result, f"not {result}"]
    if combine:
        other = w.p(inputs[2])
        results = [w.named(f"({result}) {_COMBINE[combine[0]]} {other}") for result in results[: 1 + two]]
    for destination, value in zip(destinations, results, strict=False):
        w.define_p(destination, value)


def _select(w: Writer, i: Instruction) -> None:
    kind = i.modifiers[-1]
    _require(kind in _BITS or kind in _FLOATS)
    destination, a, b, p = i.operands
    form, bits = w.form(kind, destination, a, b), 8 * item_bytes(DTYPES[kind])
    condition = w.p(p)
    w.define(destination, form, f"{w.read(a, form, bits)} if {condition} else {w.read(b, form, bits)}")


def _move(w: Writer, i: Instruction) -> None:
    kind = i.modifiers[-1]
    destination, source = i.operands
    if isinstance(destination, Vector) or isinstance(source, Vector):
        return _repack(w, i, _BITS[kind])
    if kind == "pred":
        return w.define_p(destination, w.p(source))
    _require(kind in _BITS or kind in _FLOATS)
    if isinstance(source, Symbol):
        return w.define_u(destination, w.address_of(source), _BITS[kind])
    form = w.form(kind, destination, source)
    return w.define(destination, form, w.read(source, form, 8 * item_bytes(DTYPES[kind])))


def _repack(w: Writer, i: Instruction, bits: int) -> None:
    destination, source = (items_of(o) for o in i.operands)
    wide, parts = (i.operands[1], destination) if len(destination) > 1 else (i.operands[0], source)
    each = bits // len(parts)
    if len(destination) > 1:
        value = w.named(w.u(wide, bits))
        for k, part in enumerate(parts):
            w.define_u(part, f"{value} >> {k * each} & {mask(each)}", each)
    else:
        terms = [f"{w.u(part, each)} << {k * each}" if k else w.u(part, each) for k, part in enumerate(parts)]
        w.define_u(wide, " | ".join(terms), bits)


def _argument(w: Writer, i: Instruction) -> None:
    """Moves into and out of the registers that hold the parameters of a call."""
    kind = i.modifiers[-1]
    _require(kind in _BITS or kind in _FLOATS)
    for destination, source in zip(items_of(i.operands[0]), items_of(i.operands[1]), strict=True):
        form = w.form(kind, destination, source)
        w.define(destination, form, w.read(source, form, 8 * item_bytes(DTYPES[kind])))


def _nothing(w: Writer, i: Instruction) -> None:
    """Instructions that change nothing that the simulator computes."""


# -- conversions ---------------------------------------------------------------------------------------------------

_INTEGRAL = {"rzi": "int({})", "rni": "round({})", "rmi": "floor({})", "rpi": "ceil({})"}


def _convert(w: Writer, i: Instruction) -> None:
    *modifiers, to, have = i.modifiers
    _require(len(i.operands) == 2)
    if to in _BITS and have in _BITS:
        return _between_integers(w, i)
    if to in _FLOATS and have in _BITS:
        _only(modifiers, ("rn", "ftz"))
        _require(_BITS[have] <= 32 or to == "f64")
        value = (w.s if have[0] == "s" else w.u)(i.operands[1], _BITS[have])
        return w.define_rounded(i, f"float({value})", FORMS[to], nan=False)
    if to in _BITS and have in _FLOATS:
        roundings = [m for m in modifiers if m != "ftz"]
        _require(len(roundings) == 1 and roundings[0] in _INTEGRAL)
        value, result = w.named(*_read_floats(w, i, i.operands[1:])), w.fresh()
        bits = _BITS[to]
        low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if to[0] == "s" else (0, 1 << bits)
        # The arrays' code gives the register's bits, which are the result's only if they are as many.
        _require(w.dtype(i.operands[0])[1:] == str(bits // 8))
        by_arrays = w.by_arrays(i, "u")
        w.line(f"if {low + 1 if low else 0}.0 <= {value} <= {high - 1 if bits < 64 else high - 4096}.0:")
        w.line(f"    {result} = {_INTEGRAL[roundings[0]].format(value)} & {mask(bits)}")
        w.line("else:")
        w.line(f"    {result} = {by_arrays}")
        return w.define_u(i.operands[0], result, bits)
    if to in _FLOATS and have in _FLOATS and to != have:
        _only(modifiers, ("rn", "ftz"))
        if to == "f64":
            value = w.named(*_read_floats(w, i, i.operands[1:]))
            result = w.named(value)
            w.line(f"if {value} != {value}: {result} = {w.by_arrays(i, 'd')}")
            return w.define(i.operands[0], "d", result)
        value, result = w.named(w.f(i.operands[1], 8)), w.fresh()
        w.line(f"F[0] = {value}")
        w.line(f"{result} = F[0] if {value} == {value} else {w.by_arrays(i, 'f')}")
        if "ftz" in modifiers:
            w.line(f"if {value} == {value}:")
            w.indent += "    "
            w.flush_result(i, result)
            w.indent = w.indent[:-4]
        return w.define_flushed(i, result)
    raise NotSerial


def _between_integers(w: Writer, i: Instruction) -> None:
    *modifiers, to, have = i.modifiers
    _only(modifiers, ())
    bits, source = _BITS[to], i.operands[1]
    value = (w.s if have[0] == "s" and bits > _BITS[have] else w.u)(source, _BITS[have])
    if bits < _BITS[have] or (have[0] == "s" and bits > _BITS[have]):
        value = f"{value} & {mask(bits)}"
    w.define_u(i.operands[0], value, bits, signed=to[0] == "s")


def _convert_address(w: Writer, i: Instruction) -> None:
    space, bits = space_of(i), _BITS[i.modifiers[-1]]
    destination, source = i.operands
    value = w.u(source, bits)
    if space in ("global", "const", "param"):
        return w.define_u(destination, value, bits)
    _require(space in ("shared", "local"))
    sign = "-" if "to" in i.modifiers else "+"
    return w.define_u(destination, f"({value} {sign} m.window_{space}) & {mask(bits)}", bits)


# -- memory --------------------------------------------------------------------------------------------------------


def _load(w: Writer, i: Instruction) -> None:
    destinations, address = items_of(i.operands[0]), as_address(i.operands[1])
    kind = i.modifiers[-1]
    dtype = DTYPES[kind]
    _require(dtype != "V16" and dtype != "f2")
    if space_of(i) == "param" and isinstance(address.base, Symbol):
        for k, destination in enumerate(destinations):
            form = w.form(kind, destination)
            w.define(destination, form, w.parameter(address, k, dtype, form))
        return
    forms = [w.form(kind, *destinations)] * len(destinations)
    for destination, form, name in zip(destinations, forms, w.load(i, forms), strict=True):
        if form == "u":
            w.define_u(destination, name, 8 * item_bytes(dtype), signed=dtype[0] == "i")
        else:
            w.define(destination, form, name)


def _store(w: Writer, i: Instruction) -> None:
    kind = i.modifiers[-1]
    _require(DTYPES[kind] not in ("V16", "f2") and space_of(i) != "param")
    sources = items_of(i.operands[1])
    forms = [w.form(kind, *sources)] * len(sources)
    bits = 8 * item_bytes(DTYPES[kind])
    values = [w.read(s, form, bits) for s, form in zip(sources, forms, strict=True)]
    w.store(i, forms, values)


TABLE = {
    **dict.fromkeys(("add", "sub"), _sum),
    **dict.fromkeys(("mul", "mad"), _product),
    **dict.fromkeys(("div", "rem"), _quotient),
    **dict.fromkeys(("min", "max"), _least),
    **dict.fromkeys(("neg", "abs"), _sign),
    **dict.fromkeys(("and", "or", "xor", "not"), _logic),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("popc", "clz"), _count),
    **dict.fromkeys(("fma", "sqrt", "rcp"), _float),
    **dict.fromkeys(("inlined", "prefetch", "prefetchu", "discard", "applypriority"), _nothing),
    **dict.fromkeys(("ld", "ldu"), _load),
    "argument": _argument,
    "bfe": _extract,
    "cvt": _convert,
    "cvta": _convert_address,
    "lop3": _logic3,
    "mov": _move,
    "selp": _select,
    "setp": _set_predicate,
    "shf": _funnel,
    "st": _store,
}
