"""PTX instructions in kernels, against Python integers or NumPy: forms of operands, widths, NaN, predicates.

`test_simulator_instructions.py` holds all of them to a GPU's results.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.ptx_harness import run
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator import (
    DivergentWarp,
    IllegalAddress,
    MisalignedAddress,
    SimulatorError,
    UnsupportedInstruction,
)

EDGES = [0, 1, 2, 3, 7, 31, 32, 33, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
EDGES64 = [*EDGES, 0x123456789ABCDEF, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 2]


def wrap(value: int, bits: int, signed: bool) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def pairs(kind: str) -> tuple[list[int], list[int]]:
    bits, signed = int(kind[1:]), kind[0] == "s"
    values = [wrap(v, bits, signed) for v in (EDGES64 if bits == 64 else EDGES)]
    return [a for a in values for _ in values], [b for _ in values for b in values]


def truncated_quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGER_OPS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
    "div": truncated_quotient,
    "rem": lambda a, b: a - b * truncated_quotient(a, b),
}


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("opcode", INTEGER_OPS)
def test_integer_arithmetic(opcode, kind):
    a, b = pairs(kind)
    if opcode in ("div", "rem"):
        a, b = zip(*((x, y) for x, y in zip(a, b, strict=True) if y), strict=True)
    bits, signed = int(kind[1:]), kind[0] == "s"
    seen = run(f"{opcode}.{kind} %d, %a, %b;", [(kind, a), (kind, b)], kind)
    want = [wrap(INTEGER_OPS[opcode](x, y), bits, signed) for x, y in zip(a, b, strict=True)]
    assert seen.tolist() == want


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_high_half_of_a_product(kind):
    a, b = pairs(kind)
    bits, signed = int(kind[1:]), kind[0] == "s"
    seen = run(f"mul.hi.{kind} %d, %a, %b;", [(kind, a), (kind, b)], kind)
    assert seen.tolist() == [wrap((x * y) >> bits, bits, signed) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize(("kind", "wide"), [("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")])
def test_wide_product_and_sum(kind, wide):
    a, b = pairs(kind)
    c = np.arange(len(a)) * 3
    inputs = [(kind, a), (kind, b), (wide, c)]
    seen = run(f"mad.wide.{kind} %d, %a, %b, %c;", inputs, wide)
    bits, signed = int(wide[1:]), wide[0] == "s"
    assert seen.tolist() == [wrap(x * y + int(z), bits, signed) for x, y, z in zip(a, b, c, strict=True)]
    seen = run(f"mul.wide.{kind} %d, %a, 3;", inputs[:1], wide)
    assert seen.tolist() == [wrap(x * 3, bits, signed) for x in a]


@pytest.mark.parametrize(("opcode", "python"), [("and", int.__and__), ("or", int.__or__), ("xor", int.__xor__)])
def test_bitwise(opcode, python):
    a, b = pairs("u32")
    seen = run(f"{opcode}.b32 %d, %a, %b;", [("b32", a), ("b32", b)], "b32")
    assert seen.tolist() == [python(x, y) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("kind", ["b32", "b64"])
@pytest.mark.parametrize("amount", [0, 1, 31, 32, 63, 64, 1000])
def test_shifts_beyond_the_width(kind, amount):
    bits = int(kind[1:])
    values = [wrap(v, bits, False) for v in EDGES64]
    for operand in (str(amount), "%t"):
        body = f"mov.u32 %t, {amount}; shl.{kind} %d, %a, {operand};"
        seen = run(body, [(kind, values)], kind)
        assert seen.tolist() == [wrap(v << amount, bits, False) if amount < bits else 0 for v in values]
        body = f"mov.u32 %t, {amount}; shr.u{bits} %d, %a, {operand};"
        assert run(body, [(kind, values)], kind).tolist() == [v >> amount for v in values]
        body = f"mov.u32 %t, {amount}; shr.s{bits} %d, %a, {operand};"
        seen = run(body, [(kind, values)], f"s{bits}")
        assert seen.tolist() == [wrap(v, bits, True) >> amount for v in values]


@pytest.mark.parametrize("bits", [32, 64])
def test_bit_counting(bits):
    values = [wrap(v, bits, False) for v in EDGES64]
    inputs = [(f"b{bits}", values)]
    assert run(f"popc.b{bits} %d, %a;", inputs, "u32").tolist() == [v.bit_count() for v in values]
    assert run(f"clz.b{bits} %d, %a;", inputs, "u32").tolist() == [bits - v.bit_length() for v in values]
    reverse = [int(f"{v:0{bits}b}"[::-1], 2) for v in values]
    assert run(f"brev.b{bits} %d, %a;", inputs, f"b{bits}").tolist() == reverse
    assert run(f"not.b{bits} %d, %a;", inputs, f"b{bits}").tolist() == [v ^ ((1 << bits) - 1) for v in values]


def test_negation_and_absolute_value():
    values = np.array([0, 1, -1, 2**31 - 1, -(2**31)], np.int32)
    assert run("neg.s32 %d, %a;", [("s32", values)], "s32").tolist() == [0, -1, 1, -(2**31 - 1), -(2**31)]
    assert run("abs.s32 %d, %a;", [("s32", values)], "s32").tolist() == [0, 1, 1, 2**31 - 1, -(2**31)]


FLOATS = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 1e-45, 3e38, 1e-38, 0.1, -7.25, 16777217.0]
COMPARE = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b and not (math.isnan(a) or math.isnan(b)),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "num": lambda a, b: not (math.isnan(a) or math.isnan(b)),
    "nan": lambda a, b: math.isnan(a) or math.isnan(b),
}


@pytest.mark.parametrize("comparison", [*COMPARE, "equ", "neu", "ltu", "leu", "gtu", "geu"])
def test_float_comparison_with_nan(comparison):
    a = [np.float32(x) for x in FLOATS for _ in FLOATS]
    b = [np.float32(y) for _ in FLOATS for y in FLOATS]
    body = f"setp.{comparison}.f32 %q, %a, %b; selp.u32 %d, 1, 0, %q;"
    seen = run(body, [("f32", np.array(a)), ("f32", np.array(b))], "u32")
    ordered = comparison if comparison in COMPARE else comparison[:-1]
    either_nan = COMPARE["nan"]
    want = [
        bool(COMPARE[ordered](x, y)) or (comparison not in COMPARE and either_nan(x, y))
        for x, y in zip(a, b, strict=True)
    ]
    assert seen.astype(bool).tolist() == want


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_integer_comparison(kind):
    a, b = pairs(kind)
    for name, python in list(COMPARE.items())[:6]:
        body = f"setp.{name}.{kind} %q, %a, %b; selp.u32 %d, 1, 0, %q;"
        seen = run(body, [(kind, a), (kind, b)], "u32")
        assert seen.astype(bool).tolist() == [python(x, y) for x, y in zip(a, b, strict=True)], name


def test_two_predicates_and_combination():
    a = np.arange(8)
    body = "setp.lt.u32 %p|%q, %a, 4; setp.ge.and.u32 %p, %a, 2, %p; selp.u32 %d, 10, 20, %p; @%q add.u32 %d, %d, 1;"
    seen = run(body, [("u32", a)], "u32")
    assert seen.tolist() == [20, 20, 10, 10, 21, 21, 21, 21]


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_float_arithmetic_is_ieee(kind):
    dtype = {"f32": np.float32, "f64": np.float64}[kind]
    a = np.array([x for x in FLOATS for _ in FLOATS], dtype)
    b = np.array([y for _ in FLOATS for y in FLOATS], dtype)
    inputs = [(kind, a), (kind, b)]
    with np.errstate(all="ignore"):
        for opcode, want in (("add", a + b), ("sub", a - b), ("mul", a * b), ("div.rn", a / b)):
            np.testing.assert_array_equal(run(f"{opcode}.{kind} %d, %a, %b;", inputs, kind), want)
        np.testing.assert_array_equal(run(f"sqrt.rn.{kind} %d, %a;", inputs[:1], kind), np.sqrt(a))
        np.testing.assert_array_equal(run(f"rcp.rn.{kind} %d, %a;", inputs[:1], kind), 1 / a)
    # min and max return the other operand where one is NaN
    seen = run(f"min.{kind} %d, %a, %b;", inputs, kind)
    np.testing.assert_array_equal(seen, np.fmin(a, b))
    np.testing.assert_array_equal(run(f"max.{kind} %d, %a, %b;", inputs, kind), np.fmax(a, b))
    np.testing.assert_array_equal(run(f"neg.{kind} %d, %a;", inputs[:1], kind), -a)
    np.testing.assert_array_equal(run(f"abs.{kind} %d, %a;", inputs[:1], kind), np.abs(a))


APPROXIMATE = {"ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "rsqrt": lambda x: 1 / np.sqrt(x)}


@pytest.mark.parametrize("opcode", [*APPROXIMATE, "tanh", "sqrt", "rcp"])
def test_approximate_functions(opcode):
    x = np.linspace(0.01, 3.1, 100, dtype=np.float32)
    reference = {**APPROXIMATE, "tanh": np.tanh, "sqrt": np.sqrt, "rcp": np.reciprocal}[opcode](x.astype(np.float64))
    seen = run(f"{opcode}.approx.f32 %d, %a;", [("f32", x)], "f32")
    np.testing.assert_allclose(seen, reference, rtol=1e-6, atol=1e-6)


def test_flush_to_zero_and_saturation():
    tiny = np.array([1e-40, -1e-40, 1.0, 2e-38], np.float32)
    assert run("add.ftz.f32 %d, %a, 0f00000000;", [("f32", tiny)], "f32").tolist() == [0, 0, 1, np.float32(2e-38)]
    assert run("mul.ftz.f32 %d, %a, 0f3F000000;", [("f32", tiny)], "f32").tolist() == [0, 0, 0.5, 0]
    x = np.array([-1, 0.25, 7, np.nan], np.float32)
    assert run("add.sat.f32 %d, %a, 0f00000000;", [("f32", x)], "f32").tolist() == [0, 0.25, 1, 0]


def test_conversions():
    x = np.array([1.5, 2.5, -1.5, -2.5, 1e20, -1e20, np.nan, 0.49], np.float32)
    top, bottom = 2**31 - 1, -(2**31)
    for rounding, want in (
        ("rzi", [1, 2, -1, -2, top, bottom, 0, 0]),
        ("rni", [2, 2, -2, -2, top, bottom, 0, 0]),
        ("rmi", [1, 2, -2, -3, top, bottom, 0, 0]),
        ("rpi", [2, 3, -1, -2, top, bottom, 0, 1]),
    ):
        assert run(f"cvt.{rounding}.s32.f32 %d, %a;", [("f32", x)], "s32").tolist() == want
    assert run("cvt.rzi.u32.f32 %d, %a;", [("f32", x)], "u32").tolist() == [1, 2, 0, 0, 2**32 - 1, 0, 0, 0]
    i = np.array([-1, 2**24 + 1, 2**31 - 1, -(2**31)], np.int32)
    assert run("cvt.rn.f32.s32 %d, %a;", [("s32", i)], "f32").tolist() == [-1, 2**24, 2**31, -(2**31)]
    assert run("cvt.s64.s32 %d, %a;", [("s32", i)], "s64").tolist() == i.tolist()
    assert run("cvt.u64.u32 %d, %a;", [("s32", i)], "u64").tolist() == [v & 0xFFFFFFFF for v in i.tolist()]
    assert run("cvt.u16.u32 %d, %a;", [("s32", i)], "u16").tolist() == [v & 0xFFFF for v in i.tolist()]
    assert run("cvt.s8.s32 %d, %a;", [("s32", np.array([127, 128, 255, 256]))], "s32").tolist() == [127, -128, -1, 0]
    assert run("cvt.u8.u32 %d, %a;", [("s32", np.array([127, 128, 255, 256]))], "s32").tolist() == [127, 128, 255, 0]
    half = np.array([1.0, 65504, 1e-7, 0.1], np.float32)
    np.testing.assert_array_equal(run("cvt.rn.f16.f32 %d, %a;", [("f32", half)], "f16"), half.astype(np.float16))
    np.testing.assert_array_equal(run("cvt.rni.f32.f32 %d, %a;", [("f32", x[:4])], "f32"), np.rint(x[:4]))


def test_packing_and_unpacking():
    x = np.array([0x1122334455667788], np.uint64)
    body = ".reg .b32 %lo, %hi; mov.b64 {%lo, %hi}, %a; mov.b64 %d, {%hi, %lo};"
    assert run(body, [("b64", x)], "b64").tolist() == [0x5566778811223344]


def test_128_bits_side_by_side():
    x = np.array([0x1122334455667788, 2**64 - 1], np.uint64)
    body = """
        .reg .b128 %w, %x; .reg .b64 %lo, %hi;
        mov.b128 %w, {%a, 5};
        mov.b128 %x, %w;
        mov.b128 {%lo, %hi}, %x;
        add.u64 %d, %lo, %hi;
    """
    assert run(body, [("b64", x)], "b64").tolist() == [0x112233445566778D, 4]
    body = """
        .reg .b128 %w; .reg .b64 %lo, %hi; .shared .align 16 .b8 s[1024];
        mov.u32 %t, %tid.x; shl.b32 %t, %t, 4; mov.u32 %n, s; add.u32 %n, %n, %t;
        mov.b128 %w, {7, %a};
        st.shared.b128 [%n], %w;
        ld.shared.b128 %w, [%n];
        mov.b128 {_, %d}, %w;
    """
    assert run(body, [("b64", x)], "b64").tolist() == x.tolist()
    with pytest.raises(UnsupportedInstruction, match="a 128-bit register used as a number"):
        run(".reg .b128 %w; mov.b128 %w, {%a, %a}; add.u64 %d, %w, 1;", [("b64", x)], "b64")


def test_find_the_nth_one():
    masks = [0b1011_0000, 1, 0, 0xFFFFFFFF]
    assert run("fns.b32 %d, %a, 4, 2;", [("b32", masks)], "b32").tolist() == [5, 2**32 - 1, 2**32 - 1, 5]
    body = "mov.b32 %t, -1; fns.b32 %d, %a, 6, %t;"
    assert run(body, [("b32", masks)], "b32").tolist() == [5, 0, 2**32 - 1, 6]


def test_registers_hold_bits():
    x = np.array([1.0, -2.0], np.float32)
    assert run("mov.b32 %d, %a;", [("f32", x)], "b32").tolist() == [0x3F800000, 0xC0000000]
    assert run("add.u32 %d, %a, 0x800000;", [("f32", x)], "f32").tolist() == [2.0, -4.0]


def float_pairs(rng) -> np.ndarray:
    """Pairs of float32, some subnormal."""
    values = rng.standard_normal((64, 2)).astype(np.float32) * np.float32(2.0) ** rng.integers(-70, 60, (64, 2))
    values[:4] *= np.float32(2**-70)
    return values.astype(np.float32)


@pytest.mark.parametrize("ending", ["", ".ftz", ".rz"])
@pytest.mark.parametrize("opcode", ["add", "sub", "mul", "fma"])
def test_pairs_of_float32_are_two_of_them(opcode, ending):
    """Of sm_100. Seed 35."""
    rng = np.random.default_rng(35)
    given = [float_pairs(rng) for _ in range(3 if opcode == "fma" else 2)]
    names = ", ".join(("%a", "%b", "%c")[: len(given)])
    rounding = ending if ending == ".rz" else ".rn" + ending
    together = run(f"{opcode}{rounding}.f32x2 %d, {names};", [("b64", x.view(np.uint64)[:, 0]) for x in given], "b64")
    for half in (0, 1):
        each = [("f32", np.ascontiguousarray(x[:, half])) for x in given]
        alone = run(f"{opcode}{rounding}.f32 %d, {names};", each, "f32")
        np.testing.assert_array_equal(together.view(np.uint32).reshape(-1, 2)[:, half], alone.view(np.uint32))


@pytest.mark.parametrize("opcode", ["min", "max"])
def test_the_least_and_the_most_of_three(opcode):
    """Of sm_100. Seed 35."""
    a, b, c = (np.random.default_rng(35 + k).standard_normal(64).astype(np.float32) for k in range(3))
    a[0] = b[1] = c[2] = np.nan
    three = [("f32", a), ("f32", b), ("f32", c)]
    least = np.fmin if opcode == "min" else np.fmax
    np.testing.assert_array_equal(run(f"{opcode}.f32 %d, %a, %b, %c;", three, "f32"), least(least(a, b), c))
    sized = least(least(np.abs(a), np.abs(b)), np.abs(c))
    np.testing.assert_array_equal(run(f"{opcode}.abs.f32 %d, %a, %b, %c;", three, "f32"), sized)
    for kind, x in (("u32", np.arange(4, dtype=np.uint32)), ("f64", np.arange(4.0))):
        with pytest.raises(UnsupportedInstruction, match=rf"{opcode}\.{kind}"):
            run(f"{opcode}.{kind} %d, %a, %a, %a;", [(kind, x)], kind)


@pytest.mark.parametrize("combine", ["or", "and"])
def test_logic_of_three_with_a_predicate(combine):
    """d and p = (d != 0) combined with q. Seed 35."""
    rng = np.random.default_rng(35)
    a, b, c = (rng.integers(0, 4, 64, np.uint32) for _ in range(3))
    body = f"setp.gt.u32 %q, %c, 1; lop3.{combine}.b32 %t|%p, %a, %b, %c, 0x80, %q; selp.u32 %n, 16, 0, %p;"
    seen = run(f"{body} or.b32 %d, %t, %n;", [("b32", a), ("b32", b), ("b32", c)], "b32")
    bits = a & b & c
    holds = (bits != 0) | (c > 1) if combine == "or" else (bits != 0) & (c > 1)
    assert seen.tolist() == (bits | 16 * holds).tolist()
    assert 0 < holds.sum() < 64


@pytest.mark.parametrize("operation", ["min", "max"])
@pytest.mark.parametrize("options", ["", ".abs", ".NaN", ".abs.NaN"])
def test_the_least_of_a_warps_floats(operation, options):
    """Of sm_100. Without .NaN one counts only if there is nothing else. Seed 35."""
    a = np.random.default_rng(35).standard_normal((4, 32)).astype(np.float32)
    a[1, 7], a[2] = np.nan, np.nan
    a[3] = [0.0, -0.0] * 16
    seen = run(f"redux.sync.{operation}{options}.f32 %d, %a, -1;", [("f32", a.reshape(-1))], "f32").reshape(4, 32)
    sized = np.abs(a) if "abs" in options else a
    function = {"min": (np.fmin, np.minimum), "max": (np.fmax, np.maximum)}[operation]["NaN" in options]
    np.testing.assert_array_equal(seen, np.repeat(function.reduce(sized, axis=1)[:, None], 32, axis=1))
    assert (np.signbit(seen[3]) == (operation == "min" and "abs" not in options)).all()


def test_movmatrix_transposes():
    """Lane l holds row l / 4, columns 2 (l % 4) and the next (PTX ISA, "movmatrix")."""
    matrices = np.arange(128, dtype=np.uint16).reshape(2, 8, 8)
    seen = run("movmatrix.sync.aligned.m8n8.trans.b16 %d, %a;", [("b32", matrices.view(np.uint32).reshape(-1))], "b32")
    np.testing.assert_array_equal(seen.view(np.uint16).reshape(2, 8, 8), matrices.transpose(0, 2, 1))
    with pytest.raises(DivergentWarp, match="movmatrix"):
        run("movmatrix.sync.aligned.m8n8.trans.b16 %d, %a;", [("b32", np.arange(40))], "b32")


@pytest.mark.parametrize("half", ["f16", "bf16"])
@pytest.mark.parametrize("opcode", ["add", "sub", "fma"])
@pytest.mark.parametrize("ending", ["", ".rz", ".sat"])
def test_halves_added_to_a_float(half, opcode, ending):
    """Of sm_100: as if the halves had been converted first. Seed 35."""
    if opcode == "fma":
        ending = ending if ending == ".rz" else ".rn" + ending
    rng = np.random.default_rng(35)
    halves = [("b16", rng.integers(0, 2**16, 256, np.uint16)) for _ in range(1 + (opcode == "fma"))]
    floats = ("f32", (rng.standard_normal(256) * 2.0 ** rng.integers(-9, 9, 256)).astype(np.float32))
    names, last = ("%a, %b", "%c") if opcode == "fma" else ("%a", "%b")
    mixed = run(f"{opcode}{ending}.f32.{half} %d, {names}, {last};", [*halves, floats], "f32")
    wide = ".reg .f32 %x, %y;" + f"cvt.f32.{half} %x, %a;" + (f"cvt.f32.{half} %y, %b;" if opcode == "fma" else "")
    names = "%x, %y" if opcode == "fma" else "%x"
    want = run(f"{wide} {opcode}{ending}.f32 %d, {names}, {last};", [*halves, floats], "f32")
    np.testing.assert_array_equal(mixed.view(np.uint32), want.view(np.uint32))


def test_a_number_outside_the_tensor_makes_a_product_zero():
    """0x7FF7 is what TMA puts there, if its map asks for NaN."""
    a = np.array([0x3C00, 0x7FF7, 0x3C00, 0x7E00, 0xBC00], np.uint16)
    b = np.array([0x4000, 0x4000, 0x7FF7, 0x4000, 0x4000], np.uint16)
    one = "mov.b16 %rs1, 0x3C00;"
    for relu, last in (("", 0xBC00), (".relu", 0)):
        body = f".reg .b16 %rs1; {one} fma.rn.oob{relu}.f16 %d, %a, %b, %rs1;"
        assert run(body, [("b16", a), ("b16", b)], "b16").tolist() == [0x4200, 0, 0, 0x7FFF, last]


def test_spaces_before_types_and_options_behind_them():
    """As CUTLASS and cuRAND write them."""
    a = np.array([1.0, 1e-40, 0.25], np.float32)
    assert run("rcp.approx.f32.ftz %d, %a;", [("f32", a)], "f32").tolist() == [1, np.inf, 4]
    assert run("prmt .b32 %d, %a, %a, 0x0123;", [("b32", [0x11223344])], "b32").tolist() == [0x44332211]
    body = "mov.b32 %t, 0; fma.rn.f16x2.relu %d, %a, 0x3C003C00, %t;"
    assert run(body, [("b32", [0xBC003C00])], "b32").tolist() == [0x3C00]
    assert (
        run("setp.eq.u32 %q, %a, 1; vote.ballot.sync.b32 %d, %q, -1;", [("b32", [1, 0] * 16)], "b32")[0] == 0x55555555
    )


def test_saturated_integers():
    a, b, c = [2**23 - 1, -(2**23), 5], [2**23 - 1, 2**23 - 1, -7], [2**31 - 1, -(2**31), 9]
    inputs = [("s32", a), ("s32", b), ("s32", c)]
    seen = run("mad24.hi.sat.s32 %d, %a, %b, %c;", inputs, "s32").tolist()
    assert seen == [max(-(2**31), min(2**31 - 1, (x * y >> 16) + z)) for x, y, z in zip(a, b, c, strict=True)]
    for text in ("max.relu.s32", "max.s32.relu"):
        assert run(f"{text} %d, %a, %b;", [("s32", [-3, 4]), ("s32", [-2, -5])], "s32").tolist() == [0, 4]


def test_tf32_saturates_to_its_largest():
    a = np.array([np.inf, -np.inf, 3.4028e38, 1.0], np.float32)
    largest = np.uint32(0x7F7FE000).view(np.float32)
    seen = run("cvt.rna.satfinite.tf32.f32 %d, %a;", [("f32", a)], "f32")
    assert seen.tolist() == [largest, -largest, largest, 1]
    assert np.isinf(run("cvt.rna.tf32.f32 %d, %a;", [("f32", a)], "f32")[:2]).all()


EIGHT = """
extern "C" __global__ void eight(unsigned* x, int skip) {
    unsigned v[8], *place = x + 8 * (blockIdx.x * blockDim.x + threadIdx.x) + skip;
    asm volatile("ld.global.v8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7])
                 : "l"(place));
    asm volatile("st.global.v8.b32 [%8], {%7, %6, %5, %4, %3, %2, %1, %0};"
                 :: "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]), "l"(place)
                 : "memory");
}
"""


@pytest.mark.parametrize(("blocks", "threads"), [(1, 3), (32, 128)])
def test_eight_words_at_once(blocks, threads):
    """Of sm_100: 32 bytes, one sector for each thread."""
    x = np.arange(8 * blocks * threads + 8, dtype=np.uint32)
    want = np.concatenate([x[:-8].reshape(-1, 8)[:, ::-1].reshape(-1), x[-8:]])
    kernel = CudaSource(EIGHT, "eight", options=("-arch=sm_100a",))
    counted = simulate(kernel, blocks, threads, (x, np.int32(0)))
    np.testing.assert_array_equal(x, want)
    assert counted.counts.global_load_sectors == blocks * threads
    with pytest.raises(MisalignedAddress, match="32 bytes"):
        simulate(kernel, blocks, threads, (x, np.int32(4)))


def test_zeros_over_shared_memory():
    """st.bulk, of sm_100."""
    body = """.shared .align 16 .b8 s[512]; .reg .b64 %to;
        mov.u32 %n, s; shl.b32 %t, %i, 3; add.u32 %n, %n, %t; st.shared.v2.u32 [%n], {%a, %a};
        bar.sync 0; mov.u64 %to, s; setp.eq.u32 %q, %i, 0; @%q st.bulk.weak.shared::cta [%to+16], SIZE, 0;
        bar.sync 0; ld.shared.u32 %d, [%n];"""
    a = np.arange(1, 65)
    seen = run(body.replace("SIZE", "64"), [("b32", a)], "b32")
    np.testing.assert_array_equal(seen, np.where((a > 2) & (a <= 10), 0, a))
    for size, error, what in (("65", SimulatorError, "multiple of 8"), ("504", IllegalAddress, "shared memory")):
        with pytest.raises(error, match=what):
            run(body.replace("SIZE", size), [("b32", a)], "b32")


def test_vector_atomics_with_the_operation_last():
    x = np.zeros(2, np.float32)
    body = ".reg .b64 %to; ld.param.u64 %to, [in_b]; red.global.v2.f32.add [%to], {%a, %a}; ld.global.f32 %d, [%to];"
    assert run(body, [("f32", np.ones(2)), ("f32", x)], "f32", checks=False).max() == 2


def test_unknown_instruction_names_itself():
    with pytest.raises(UnsupportedInstruction, match=r"`sured\.b\.add\.1d\.u32\.trap"):
        run(".reg .b64 %x; sured.b.add.1d.u32.trap [%x, {%a}], %a;", [("u32", np.arange(4))], "u32")
    with pytest.raises(UnsupportedInstruction, match=r"`add\.rs\.f32 %d, %a, %a`: modifier \.rs"):
        run("add.rs.f32 %d, %a, %a;", [("f32", np.arange(4))], "f32")
    for text in ("red.global.exch.b32 [%x], %a;", "red.global.cas.b32 [%x], %a, %a;"):  # atom has them, red has not
        with pytest.raises(UnsupportedInstruction, match=r"red\.global"):
            run(f".reg .b64 %x; mov.b64 %x, 0; {text}", [("b32", np.arange(4))], "b32")
