"""What a PTX instruction becomes in machine code, of loops and of blocks: code of `machine_compiler` for one lane.

`TABLE` maps an opcode to its emitter, `emit(writer, instruction)`. Registers are integers with their bits, zeros above.
`MachineWriter` reads operands (`u` unsigned, `s` signed, `p` predicates) and writes results (`define`). An emitter
raises `NoMachineCode` for a form that it leaves to the arrays' code. The results are those of `operations`, bit for
bit.
"""

from collections.abc import Iterable
from typing import Any

from warplab.simulator.ptx.program import Immediate, Instruction, Operand, Register, Symbol, Vector, integer, items_of
from warplab.simulator.translate.block_writer import DTYPES, item_bytes
from warplab.simulator.translate.operations.arithmetic import FLOATS
from warplab.simulator.translate.operations.bits import lop3
from warplab.simulator.translate.operations.memory import space_of

Writer = Any  # a MachineWriter, whose module imports this one


class NoMachineCode(Exception):
    """This form of an instruction has no code for single lanes."""


_BITS = {f"{letter}{bits}": bits for letter in "bus" for bits in (8, 16, 32, 64)}
_FLOATS = {"f32": 32, "f64": 64}
_NAN32 = "0x7FFFFFFF"
_SMALLEST, _TWO_TO_24 = 1 << 23, (127 + 24) << 23  # 2**-126, which .ftz leaves as it is, and 2**24 as float32


def mask(bits: int) -> str:
    return hex((1 << bits) - 1)


def _cut(expression: str, bits: int) -> str:
    """Return the low bits of a number."""
    return expression if bits == 64 else f"({expression}) & {mask(bits)}"


def _require(condition: object) -> None:
    if not condition:
        raise NoMachineCode


def _only(modifiers: Iterable[str], allowed: Iterable[str]) -> None:
    _require(set(modifiers) <= set(allowed))


def _read_floats(w: Writer, i: Instruction, operands: Iterable[Operand]) -> list[str]:
    """Read operands of an instruction's last type, the bits of floats after .ftz, into variables."""
    kind, ftz = i.modifiers[-1], "ftz" in i.modifiers
    _require(kind == "f32" or not ftz)
    values = [w.f(o, _FLOATS[kind]) for o in operands]
    return [w.flushed(value) if ftz else w.named(value) for value in values]


# -- integers ------------------------------------------------------------------------------------------------------


def _sum(w: Writer, i: Instruction) -> None:
    """Write add and sub."""
    *modifiers, kind = i.modifiers
    if kind in _FLOATS:
        return _float(w, i)
    _only(modifiers, ())
    bits, sign = _BITS[kind], {"add": "+", "sub": "-"}[i.opcode]
    a, b = (w.u(o, bits) for o in i.operands[1:])
    return w.define(i.operands[0], _cut(f"{a} {sign} {b}", bits), bits)


def _product(w: Writer, i: Instruction) -> None:
    """Write mul and mad."""
    *modifiers, kind = i.modifiers
    if kind in _FLOATS:
        return _float(w, i)
    _require(len(modifiers) == 1 and modifiers[0] in ("lo", "hi", "wide"))
    bits, (form,) = _BITS[kind], modifiers
    read = w.s if kind[0] == "s" and form != "lo" else w.u
    a, b = (read(o, bits) for o in i.operands[1:3])
    product = f"{a} * {b}"
    out = 2 * bits if form == "wide" else bits
    _require(out <= 64)
    if form == "hi":
        high = "umulh" if kind[0] == "u" else "smulh"
        product = f"{high}({a}, {b})" if bits == 64 else f"({product} >> {bits})"
    add = f" + {w.u(i.operands[3], out)}" if i.opcode == "mad" else ""
    return w.define(i.operands[0], _cut(product + add, out), out)


def _quotient(w: Writer, i: Instruction) -> None:
    """Write div and rem. Division by zero gives all ones."""
    *modifiers, kind = i.modifiers
    if kind in _FLOATS:
        return _float(w, i)
    _only(modifiers, ())
    bits, div = _BITS[kind], i.opcode == "div"
    if kind[0] == "u":
        a, b = (w.named(w.u(o, bits)) for o in i.operands[1:])
        result = f"{'udiv' if div else 'urem'}({a}, {b})"
    else:
        a, b = (w.named(w.s(o, bits)) for o in i.operands[1:])
        result = f"{'sdiv' if div else 'srem'}({a}, {b})"
        if bits == 64:  # the lowest number by -1
            result = f"({f'0 - {a}' if div else '0'} if {b} == -1 else {result})"
        result = _cut(result, bits)
    return w.define(i.operands[0], f"({result}) if {b} != 0 else {mask(bits)}", bits)


def _least(w: Writer, i: Instruction) -> None:
    """Write min and max."""
    *modifiers, kind = i.modifiers
    _only(modifiers, ("ftz",) if kind in _FLOATS else ())
    smaller = i.opcode == "min"
    if kind in _FLOATS:
        return _least_float(w, i, _FLOATS[kind])
    bits = _BITS[kind]
    if kind[0] == "s":
        a, b = (w.named(w.s(o, bits)) for o in i.operands[1:])
        result = f"({a} if {a} {'<' if smaller else '>'} {b} else {b})"
        return w.define(i.operands[0], _cut(result, bits), bits)
    a, b = (w.named(w.u(o, bits)) for o in i.operands[1:])
    test = f"ult({a}, {b})" if smaller else f"ult({b}, {a})"
    return w.define(i.operands[0], f"{a} if {test} else {b}", bits)


def _least_float(w: Writer, i: Instruction, bits: int) -> None:
    """Write, of a number and NaN, the number; of zeros the sign counts."""
    a, b = _read_floats(w, i, i.operands[1:])
    smaller = i.opcode == "min"
    name = w.named(f"{a} if f{bits}{'lt' if smaller else 'gt'}({a}, {b}) else {b}")
    w.line(f"if f{bits}eq({a}, {b}):")
    w.line(f"    {name} = {a} {'|' if smaller else '&'} {b}")
    w.line(f"if f{bits}nan({b}, {b}):")
    w.line(f"    {name} = {a}")
    _define_float(w, i, name, bits, [a, b])


def _sign(w: Writer, i: Instruction) -> None:
    """Write neg and abs."""
    *modifiers, kind = i.modifiers
    _only(modifiers, ("ftz",) if kind in _FLOATS else ())
    if kind in _FLOATS:
        bits = _FLOATS[kind]
        (a,), top = _read_floats(w, i, i.operands[1:]), 1 << (bits - 1)
        result = f"{a} ^ {hex(top)}" if i.opcode == "neg" else f"{a} & {hex(top - 1)}"
        return _define_float(w, i, result, bits, [a])
    bits = _BITS[kind]
    a = w.named(w.s(i.operands[1], bits))
    result = f"0 - {a}" if i.opcode == "neg" else f"(0 - {a} if {a} < 0 else {a})"
    return w.define(i.operands[0], _cut(result, bits), bits)


def _logic(w: Writer, i: Instruction) -> None:
    """Write and, or, xor, not."""
    (kind,) = i.modifiers
    sign = {"and": "&", "or": "|", "xor": "^", "not": None}[i.opcode]
    bits = 1 if kind == "pred" else _BITS[kind]
    read = w.p if kind == "pred" else lambda o: w.u(o, bits)
    if sign is None:
        return w.define(i.operands[0], f"{read(i.operands[1])} ^ {mask(bits)}", bits)
    return w.define(i.operands[0], f"{read(i.operands[1])} {sign} {read(i.operands[2])}", bits)


def _logic3(w: Writer, i: Instruction) -> None:
    _require(i.modifiers == ("b32",))
    a, b, c = (w.u(o, 32) for o in i.operands[1:4])
    w.define(i.operands[0], _cut(lop3(integer(i.operands[4]) & 0xFF).format(a, b, c), 32), 32)


def _shift(w: Writer, i: Instruction) -> None:
    (kind,) = i.modifiers
    bits, amount = _BITS[kind], i.operands[2]
    signed = i.opcode == "shr" and kind[0] == "s"
    a = (w.s if signed else w.u)(i.operands[1], bits)
    count = w.named(w.u(amount, 32))
    if i.opcode == "shl":
        result = f"({_cut(f'{a} << ({count} & 63)', bits)} if {count} < {bits} else 0)"
    elif signed:
        result = _cut(f"ashr({a}, {count} if {count} < {bits} else {bits - 1})", bits)
    else:
        result = f"({a} >> ({count} & 63) if {count} < {bits} else 0)"
    return w.define(i.operands[0], result, bits)


def _funnel(w: Writer, i: Instruction) -> None:
    direction, mode, kind = i.modifiers
    _require(kind == "b32" and mode in ("wrap", "clamp") and direction in "lr")
    low, high, amount = (w.u(o, 32) for o in i.operands[1:])
    count = w.named(f"{amount} & 31" if mode == "wrap" else f"{amount} if {amount} < 32 else 32")
    both = f"({high} << 32 | {low})"
    result = f"({both} << {count} >> 32)" if direction == "l" else f"({both} >> {count})"
    w.define(i.operands[0], _cut(result, 32), 32)


def _count(w: Writer, i: Instruction) -> None:
    bits = _BITS[i.modifiers[-1]]
    a = w.u(i.operands[1], bits)
    w.define(i.operands[0], f"popc({a})" if i.opcode == "popc" else f"clz({a}) - {64 - bits}", 32)


def _extract(w: Writer, i: Instruction) -> None:
    """Write bfe of unsigned fields at known places."""
    kind = i.modifiers[-1]
    position, length = (integer(o) if isinstance(o, Immediate) else -1 for o in i.operands[2:])
    _require(kind in ("u32", "u64") and 0 <= position < _BITS[kind] and 0 < length <= _BITS[kind] - position)
    w.define(i.operands[0], f"({w.u(i.operands[1], _BITS[kind])} >> {position}) & {mask(length)}", _BITS[kind])


# -- floating point ------------------------------------------------------------------------------------------------


def _float(w: Writer, i: Instruction) -> None:
    """Round to nearest."""
    *modifiers, kind = i.modifiers
    _only(modifiers, ("rn", "ftz"))
    bits = _FLOATS[kind]
    opcode = "fma" if i.opcode == "mad" else i.opcode
    values = _read_floats(w, i, i.operands[1:])
    if opcode == "rcp":
        one = 0x3F800000 if bits == 32 else 0x3FF0000000000000
        return _define_float(w, i, f"f{bits}div({one}, {values[0]})", bits, values)
    _require(opcode in ("add", "sub", "mul", "div", "sqrt", "fma"))
    result = w.named(f"f{bits}{opcode}({', '.join(values)})")
    if "ftz" in modifiers and opcode in ("mul", "div", "fma"):
        scaled = [value if k == 1 else f"f32mul({value}, {_TWO_TO_24})" for k, value in enumerate(values)]
        _flush_tiny(w, result, f"f32{opcode}({', '.join(scaled)})")
    return _define_float(w, i, result, bits, values)


def _flush_tiny(w: Writer, result: str, scaled: str) -> None:
    """Do as `numerics.flush_tiny`. `scaled`: the result times 2**24."""
    w.line(f"if ({result} & 0x7FFFFFFF) == {_SMALLEST}:")
    w.rarely(
        f"if f32lt(({scaled}) & 0x7FFFFFFF, {_SMALLEST + (24 << 23)}):",
        f"    {result} = {result} & 0x80000000",
    )


def _define_float(w: Writer, i: Instruction, expression: str, bits: int, values: list[str]) -> None:
    """Write a float. A NaN of float32 is made canonical, one of float64 is left to the arrays' code."""
    result = w.named(f"f32flush({expression})" if "ftz" in i.modifiers else expression)
    w.line(f"if f{bits}nan({result}, {result}):")
    if bits == 32:
        w.line(f"    {result} = {_NAN32}")
        if "ftz" in i.modifiers:
            w.flushes[result] = result
    else:
        opcode = "fma" if i.opcode == "mad" else i.opcode
        template = {"min": "minimum({0}, {1})", "max": "maximum({0}, {1})"}.get(opcode)
        template = template or FLOATS[opcode, "f8"][0]
        w.line(f"    {result} = {w.again(template, values)}")
    w.define(i.operands[0], result, bits)


# -- comparisons, selections ---------------------------------------------------------------------------------------

_SIGNED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED = {"lt": "ult({0}, {1})", "le": "ule({0}, {1})", "gt": "ult({1}, {0})", "ge": "ule({1}, {0})"}
_UNSIGNED |= {"lo": _UNSIGNED["lt"], "ls": _UNSIGNED["le"], "hi": _UNSIGNED["gt"], "hs": _UNSIGNED["ge"]}
_ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")
_UNORDERED = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}


def _compared(comparison: str, kind: str, a: str, b: str) -> str:
    if kind in _FLOATS:
        test = f"f{_FLOATS[kind]}"
        if comparison in ("num", "nan"):
            return f"({test}nan({a}, {b}) ^ {int(comparison == 'num')})"
        if comparison in _ORDERED:
            return f"{test}{comparison}({a}, {b})"
        return f"({test}{_UNORDERED[comparison]}({a}, {b}) ^ 1)"
    if comparison in ("eq", "ne"):
        return f"({a} {'==' if comparison == 'eq' else '!='} {b})"
    return f"({a} {_SIGNED[comparison]} {b})" if kind[0] == "s" else _UNSIGNED[comparison].format(a, b)


def _set_predicate(w: Writer, i: Instruction) -> None:
    comparison, *modifiers, kind = i.modifiers
    combine = [m for m in modifiers if m in ("and", "or", "xor")]
    _only(modifiers, [*combine, "ftz"] if kind in _FLOATS else combine)
    _require(kind in _BITS or kind in _FLOATS)
    operands = i.operands
    two = isinstance(operands[1], Register) and w.translator.dtypes.get(operands[1].name) == "b1"
    destinations, inputs = operands[: 1 + two], operands[1 + two :]
    if kind in _FLOATS:
        a, b = _read_floats(w, i, inputs[:2])
    else:
        read = w.s if kind[0] == "s" and comparison not in ("eq", "ne") else w.u
        a, b = (read(o, _BITS[kind]) for o in inputs[:2])
    result = w.named(_compared(comparison, kind, a, b))
    results = [result, f"{result} ^ 1"]
    if combine:
        other = w.named(w.p(inputs[2]))
        sign = {"and": "&", "or": "|", "xor": "^"}[combine[0]]
        results = [w.named(f"({result}) {sign} {other}") for result in results[: 1 + two]]
    for destination, value in zip(destinations, results, strict=False):
        w.define(destination, value, 1)


def _select(w: Writer, i: Instruction) -> None:
    kind = i.modifiers[-1]
    bits, read = (_FLOATS[kind], w.f) if kind in _FLOATS else (_BITS[kind], w.u)
    destination, a, b, p = i.operands
    w.define(destination, f"{read(a, bits)} if {w.p(p)} else {read(b, bits)}", bits)


def _move(w: Writer, i: Instruction) -> None:
    kind = i.modifiers[-1]
    destination, source = i.operands
    if isinstance(destination, Vector) or isinstance(source, Vector):
        return _repack(w, i, _BITS[kind])
    if kind == "pred":
        return w.define(destination, w.p(source), 1)
    bits, read = (_FLOATS[kind], w.f) if kind in _FLOATS else (_BITS[kind], w.u)
    if isinstance(source, Symbol):
        return w.define(destination, _cut(w.address_of(source), bits), bits)
    return w.define(destination, read(source, bits), bits)


def _repack(w: Writer, i: Instruction, bits: int) -> None:
    destination, source = (items_of(o) for o in i.operands)
    if len(destination) > 1:
        each = bits // len(destination)
        value = w.named(w.u(i.operands[1], bits))
        for k, part in enumerate(destination):
            w.define(part, f"({value} >> {k * each}) & {mask(each)}", each)
    else:
        each = bits // len(source)
        w.define(i.operands[0], " | ".join(f"({w.u(part, each)} << {k * each})" for k, part in enumerate(source)), bits)


def _argument(w: Writer, i: Instruction) -> None:
    """Translate moves into and out of the registers that hold the parameters of a call."""
    kind = i.modifiers[-1]
    bits, read = (_FLOATS[kind], w.f) if kind in _FLOATS else (_BITS[kind], w.u)
    for destination, source in zip(items_of(i.operands[0]), items_of(i.operands[1]), strict=True):
        w.define(destination, read(source, bits), bits)


def _nothing(w: Writer, i: Instruction) -> None:
    """Write nothing for instructions that change nothing that the simulator computes."""


# -- conversions ---------------------------------------------------------------------------------------------------

_INTEGRAL = {"rzi": "trunc", "rni": "rint", "rmi": "floor", "rpi": "ceil"}


def _convert(w: Writer, i: Instruction) -> None:
    *modifiers, to, have = i.modifiers
    _require(len(i.operands) == 2)
    if to in _BITS and have in _BITS:
        _only(modifiers, ())
        wider = _BITS[to] > _BITS[have]
        value = (w.s if have[0] == "s" and wider else w.u)(i.operands[1], _BITS[have])
        return w.define(i.operands[0], _cut(value, _BITS[to]), _BITS[to], to[0] == "s")
    if to in _FLOATS and have in _BITS:
        _only(modifiers, ("rn", "ftz"))
        signed = have[0] == "s"
        value = (w.s if signed else w.u)(i.operands[1], _BITS[have])
        return w.define(i.operands[0], f"f{_FLOATS[to]}of_{'signed' if signed else 'unsigned'}({value})", _FLOATS[to])
    if to in _BITS and have in _FLOATS:
        roundings = [m for m in modifiers if m != "ftz"]
        _require(len(roundings) == 1 and roundings[0] in _INTEGRAL and _BITS[to] in (32, 64))
        return _to_integer(w, i, roundings[0], to, have)
    if to in _FLOATS and have in _FLOATS and to != have:
        _only(modifiers, ("rn", "ftz"))
        ftz = "ftz" in modifiers
        value = w.named(w.f(i.operands[1], 64)) if have == "f64" else _read_floats(w, i, i.operands[1:])[0]
        result = w.named(f"f{_FLOATS[to]}from_other({value})")
        if ftz and to == "f32":
            _flush_tiny(w, result, f"f32from_other(f64mul({value}, {w.float_bits(2.0**24)}))")
            w.line(f"{result} = f32flush({result})")
        w.line(f"if f{_FLOATS[have]}nan({value}, {value}):")
        template = "narrow_f32({0}, 'rn')" if to == "f32" else "{0}.astype(f8, copy=False)"
        w.line(f"    {result} = {w.again(template, [value], _FLOATS[have], _FLOATS[to])}")
        return w.define(i.operands[0], result, _FLOATS[to])
    raise NoMachineCode


def _to_integer(w: Writer, i: Instruction, rounding: str, to: str, have: str) -> None:
    """Write an integer, clamped to its range."""
    bits, signed = _BITS[to], to[0] == "s"
    (value,) = _read_floats(w, i, i.operands[1:])
    result = w.named("0")
    wide = w.named(f"f64from_other({value})") if have == "f32" else value  # it holds all 32-bit integers
    wide = w.named(f"f64{_INTEGRAL[rounding]}({wide})")
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    bits_of = w.float_bits
    top = have == "f64" or bits == 64
    w.line(f"if f64nan({wide}, {wide}):")
    w.line(f"    {result} = {hex(1 << (bits - 1)) if top else 0}")
    w.line(f"elif f64ge({wide}, {bits_of(float(high))}):")
    w.line(f"    {result} = {hex(high - 1)}")
    w.line(f"elif f64le({wide}, {bits_of(float(low))}):")
    w.line(f"    {result} = {hex(low & ((1 << bits) - 1))}")
    w.line("else:")
    convert = "to_signed" if signed else "to_unsigned"
    w.line(f"    {result} = {_cut(f'f64{convert}({wide})', bits)}")
    w.define(i.operands[0], result, bits, signed)


def _convert_address(w: Writer, i: Instruction) -> None:
    space, bits = space_of(i), _BITS[i.modifiers[-1]]
    destination, source = i.operands
    value = w.u(source, bits)
    if space in ("global", "const"):
        return w.define(destination, value, bits)
    _require(space in ("shared", "local"))
    sign = "-" if "to" in i.modifiers else "+"
    return w.define(destination, _cut(f"{value} {sign} {w.window(space)}", bits), bits)


# -- memory --------------------------------------------------------------------------------------------------------


def _load(w: Writer, i: Instruction) -> None:
    kind = i.modifiers[-1]
    dtype = DTYPES[kind]
    _require(dtype not in ("V16", "f2"))
    if space_of(i) == "param":
        w.load_parameter(i, dtype)
    else:
        w.load(i, dtype)


def _store(w: Writer, i: Instruction) -> None:
    dtype = DTYPES[i.modifiers[-1]]
    _require(dtype not in ("V16", "f2") and space_of(i) != "param")
    w.store(i, 8 * item_bytes(dtype))


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
