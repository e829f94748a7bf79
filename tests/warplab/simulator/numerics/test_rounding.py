"""The simulator's floating-point arithmetic rounds once: against exact fractions, in every rounding mode."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warplab.simulator import numerics

MODES = ["rn", "rz", "rm", "rp"]
# Significand bits, exponent of the lowest subnormal, largest number.
FORMATS = {
    "f16": (11, -24, Fraction(65504)),
    "bf16": (8, -133, Fraction(2) ** 128 - Fraction(2) ** 120),
    "f32": (24, -149, Fraction(2) ** 128 - Fraction(2) ** 104),
    "f64": (53, -1074, Fraction(2) ** 1024 - Fraction(2) ** 971),
}
LANES = 6


def rounded(value: Fraction, kind: str, mode: str = "rn") -> float:
    """A fraction rounded to a format, from the definition. Zero comes back as +0."""
    bits, lowest, largest = FORMATS[kind]
    size = abs(value)
    if size == 0:
        return 0.0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - bits + 1, lowest)
    whole = {"rn": round, "rz": math.trunc, "rm": math.floor, "rp": math.ceil}[mode](value / unit)
    result = whole * unit
    if abs(result) > largest:
        sign = 1 if value > 0 else -1
        outwards = mode == "rn" or mode == {1: "rp", -1: "rm"}[sign]
        return sign * (math.inf if outwards else float(largest))
    return float(result)


def numbers(width: int) -> st.SearchStrategy[float]:
    """Finite floats of all sizes, subnormal ones and those of nearby sizes among them."""
    dtype = {32: np.float32, 64: np.float64}[width]
    any_bits = st.integers(0, 2**width - 1).map(lambda bits: float(np.array(bits, f"u{width // 8}").view(dtype)))
    near_one = st.floats(0.25, 4, width=width)
    finite = st.floats(width=width, allow_nan=False, allow_infinity=False)
    return st.one_of(finite, any_bits.filter(math.isfinite), near_one, near_one.map(lambda x: -x))


def arrays(width: int) -> st.SearchStrategy[np.ndarray]:
    dtype = {32: np.float32, 64: np.float64}[width]
    return st.lists(numbers(width), min_size=LANES, max_size=LANES).map(lambda values: np.array(values, dtype))


KINDS = {"f32": 32, "f64": 64}
EXACT = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operation", EXACT)
@settings(max_examples=60)
@given(data=st.data())
def test_sum_product_and_quotient_round_once(operation, kind, data):
    a, b = data.draw(arrays(KINDS[kind])), data.draw(arrays(KINDS[kind]))
    if operation == "divide":
        b[b == 0] = 3
    for mode in MODES[1:]:
        with np.errstate(all="ignore"):
            seen = getattr(numerics, f"{operation}_{kind}")(a, b, mode)
        for x, y, value in zip(a.tolist(), b.tolist(), seen.tolist(), strict=True):
            want = rounded(EXACT[operation](Fraction(x), Fraction(y)), kind, mode)
            assert value == want, (x, y, mode)


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("kind", KINDS)
def test_sign_of_an_exact_zero(kind, mode):
    dtype = {"f32": np.float32, "f64": np.float64}[kind]
    a = np.array([1.5, -2.0, 0.0, -0.0, 0.0, -0.0], dtype)
    b = np.array([-1.5, 2.0, 0.0, -0.0, -0.0, 0.0], dtype)
    one = np.ones(1, dtype)
    down = mode == "rm"
    want = [down, down, False, True, down, down]
    assert np.signbit(getattr(numerics, f"add_{kind}")(a, b, mode)).tolist() == want
    assert np.signbit(getattr(numerics, f"fma_{kind}_rounded")(a, one, b, mode)).tolist() == want


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(data=st.data())
def test_square_root_rounds_once(kind, mode, data):
    a = np.abs(data.draw(arrays(KINDS[kind])))
    with np.errstate(all="ignore"):
        seen = getattr(numerics, f"square_root_{kind}")(a, mode)
    above, below = np.nextafter(seen, seen.dtype.type(np.inf)), np.nextafter(seen, -seen.dtype.type(np.inf))
    for x, root, next_, previous in zip(a.tolist(), seen.tolist(), above.tolist(), below.tolist(), strict=True):
        if mode == "rp":
            assert Fraction(root) ** 2 >= Fraction(x)
            assert root == 0 or Fraction(previous) ** 2 < Fraction(x)
        else:
            assert Fraction(root) ** 2 <= Fraction(x) < Fraction(next_) ** 2


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150)
@given(data=st.data())
def test_fma_rounds_once(kind, data):
    a, b, c = (data.draw(arrays(KINDS[kind])) for _ in range(3))
    if data.draw(st.booleans()):  # cancellation, and sums that lie between two floats
        with np.errstate(all="ignore"):
            c = -(a * b) * a.dtype.type(data.draw(st.sampled_from([1.0, 0.5, 2.0**-24, 2.0**-53, 2.0**-60])))
        c[~np.isfinite(c)] = 1
    for mode in MODES:
        with np.errstate(all="ignore"):
            if mode == "rn":
                seen = getattr(numerics, f"fma_{kind}")(a, b, c)
            else:
                seen = getattr(numerics, f"fma_{kind}_rounded")(a, b, c, mode)
        for x, y, z, value in zip(a.tolist(), b.tolist(), c.tolist(), seen.tolist(), strict=True):
            want = rounded(Fraction(x) * Fraction(y) + Fraction(z), kind, mode)
            assert value == want, (x, y, z, mode)


def test_fma_f32_where_two_roundings_differ():
    """a·b lies exactly between two float32 and c only tips it: rounding to float64 first would lose c."""
    a = np.array([1 + 2**-12], np.float32)  # a·a = 1 + 2**-11 + 2**-24
    for c in (2.0**-80, -(2.0**-80), 0.0):
        want = rounded(Fraction(float(a[0])) ** 2 + Fraction(c), "f32")
        assert float(numerics.fma_f32(a, a, np.array([c], np.float32))[0]) == want
    tiny = np.array([2.0**-75], np.float32)  # the product is a subnormal float32 at a tie
    seen = numerics.fma_f32(tiny, tiny, np.array([2.0**-149], np.float32))
    assert float(seen[0]) == rounded(Fraction(2) ** -150 + Fraction(2) ** -149, "f32")


def test_fma_where_the_product_alone_overflows_or_underflows():
    big, small = np.array([2.0**600]), np.array([2.0**-600])
    with np.errstate(all="ignore"):
        assert numerics.fma_f64(big, big, np.array([-np.inf]))[0] == -np.inf
        assert numerics.fma_f64(big, -big, np.array([1.0]))[0] == -np.inf
        assert numerics.fma_f64(big * 2.0**400, np.array([2.0**30]), np.array([-(2.0**1023)]))[0] == np.inf
        almost = numerics.fma_f64(np.array([2.0**1000]), np.array([2.0**24]), np.array([-(2.0**1023)]))
        assert almost[0] == 2.0**1023
        assert numerics.fma_f64(small, small, np.array([2.0**-1074]))[0] == 2.0**-1074
        assert numerics.fma_f64(small, small, np.array([1.0]))[0] == 1.0
        assert np.isnan(numerics.fma_f64(np.array([np.inf]), np.zeros(1), np.ones(1))[0])


@pytest.mark.parametrize("mode", MODES[1:])
def test_sign_of_fma_where_the_product_underflows(mode):
    a, b, c = (np.array(v) for v in ([1e-200, 1e-200, 1.0], [1e-200, -1e-200, 1.0], [-0.0, 0.0, -1.0]))
    got = numerics.fma_f64_rounded(a, b, c, mode)
    least = 5e-324
    want = {"rz": [0.0, -0.0, 0.0], "rm": [0.0, -least, -0.0], "rp": [least, -0.0, 0.0]}[mode]
    assert got.view(np.uint64).tolist() == np.array(want).view(np.uint64).tolist()


@pytest.mark.parametrize("function", [numerics.fma_f32, numerics.fma_f64])
def test_fma_in_pieces_and_with_single_entries(function):
    """Long arrays go through in pieces, and each operand may be one number for all lanes."""
    dtype = np.float32 if function is numerics.fma_f32 else np.float64
    n = 2 * numerics.fma.PIECE + 5
    a, b, c = ((np.arange(n) % m).astype(dtype) for m in (97, 89, 83))
    for operands in ((a, b, c), (a[5:6], b, c), (a, b[5:6], c), (a, b, c[5:6]), (a[5:6], b[5:6], c)):
        np.testing.assert_array_equal(function(*operands), operands[0] * operands[1] + operands[2])
    matrix = function(a[:6].reshape(6, 1), b[:4].reshape(1, 4), c[:24].reshape(6, 4))
    np.testing.assert_array_equal(matrix, np.outer(a[:6], b[:4]) + c[:24].reshape(6, 4))


# -- conversions -------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(arrays(64), st.sampled_from(MODES))
@example(np.array([65519.999, 65520.0, 2.0**-25, 2.0**-149 * 1.5, 3.4e38, 1 + 2.0**-53]), "rn")
def test_narrowing_rounds_once(a, mode):
    with np.errstate(all="ignore"):
        single = a.astype(np.float32)
        seen = {
            "f32": (a, numerics.narrow_f32(a, mode).tolist()),
            "f16": (a, numerics.half_from_f64(a, "f16", mode).view(np.float16).tolist()),
            "bf16": (a, numerics.half_to_f32(numerics.half_from_f64(a, "bf16", mode), "bf16").tolist()),
        }
        finite = single[np.isfinite(single)]
        from_single = {
            "f16": numerics.half_from_f32(finite, "f16", mode).view(np.float16).tolist(),
            "bf16": numerics.half_to_f32(numerics.half_from_f32(finite, "bf16", mode), "bf16").tolist(),
        }
    for kind, (values, results) in seen.items():
        for x, value in zip(values.tolist(), results, strict=True):
            assert value == rounded(Fraction(x), kind, mode), (kind, x)
    for kind, results in from_single.items():
        for x, value in zip(finite.tolist(), results, strict=True):
            assert value == rounded(Fraction(x), kind, mode), (kind, x)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("signed", [False, True])
@settings(max_examples=60)
@given(data=st.data())
def test_integers_to_floats_round_once(bits, signed, data):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    near_a_power = st.builds(
        lambda e, d: min(max((1 << e) + d, low), high), st.integers(0, bits - 1), st.integers(-3, 3)
    )
    values = data.draw(st.lists(st.integers(low, high) | near_a_power, min_size=LANES, max_size=LANES))
    a = np.array(values, f"{'i' if signed else 'u'}{bits // 8}")
    for mode in MODES:
        with np.errstate(all="ignore"):
            results = {
                "f32": numerics.int_to_float(a, np.float32, mode).tolist(),
                "f64": numerics.int_to_float(a, np.float64, mode).tolist(),
                "f16": numerics.half_from_f64(numerics.to_exact_f64(a), "f16", mode).view(np.float16).tolist(),
            }
        for kind, seen in results.items():
            assert seen == [rounded(Fraction(x), kind, mode) for x in values], (kind, mode)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
@settings(max_examples=60)
@given(data=st.data())
def test_floats_to_integers_round_and_clamp(dtype, data):
    a = data.draw(arrays(data.draw(st.sampled_from([32, 64]))))
    info = np.iinfo(dtype)
    functions = {"rzi": math.trunc, "rni": round, "rmi": math.floor, "rpi": math.ceil}
    for mode, function in functions.items():
        with np.errstate(all="ignore"):
            seen = numerics.float_to_int(a, dtype, mode)
        assert seen.tolist() == [min(max(function(x), info.min), info.max) for x in a.tolist()], mode


@settings(max_examples=100)
@given(arrays(32), st.sampled_from(["rn", "rz", "rna"]))
def test_tf32_keeps_ten_fraction_bits(a, mode):
    with np.errstate(all="ignore"):
        seen = numerics.tf32(a, mode, False).view(np.float32)
    for x, value in zip(a.tolist(), seen.tolist(), strict=True):
        unit = 2.0 ** (max(math.frexp(x)[1], -125) - 11)
        steps = Fraction(x) / Fraction(unit)
        away = math.copysign(math.floor(abs(steps) + Fraction(1, 2)), x)
        want = {"rn": round(steps), "rz": math.trunc(steps), "rna": int(away)}[mode] * Fraction(unit)
        assert value == (float(want) if abs(want) < 2**128 else math.copysign(math.inf, x))


# -- float16 and bfloat16 ----------------------------------------------------------------------------------


def halves(kind: str) -> st.SearchStrategy[np.ndarray]:
    """Bits of finite numbers."""
    exponent = 0x7C00 if kind == "f16" else 0x7F80
    finite = st.integers(0, 0xFFFF).filter(lambda bits: bits & exponent != exponent)
    return st.lists(finite, min_size=LANES, max_size=LANES).map(lambda bits: np.array(bits, np.uint16))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@settings(max_examples=150)
@given(data=st.data())
def test_arithmetic_on_halves_rounds_once(kind, data):
    bits = [data.draw(halves(kind)) for _ in range(3)]
    values = [list(map(Fraction, numerics.half_to_f32(b, kind).tolist())) for b in bits]

    def check(seen, exact):
        seen = numerics.half_to_f32(seen, kind).tolist()
        for k, value in enumerate(seen):
            assert value == rounded(exact(*(v[k] for v in values)), kind)

    with np.errstate(all="ignore"):
        for operation, exact in (("add", Fraction.__add__), ("sub", Fraction.__sub__), ("mul", Fraction.__mul__)):
            seen = numerics.half_arithmetic(operation, kind, False, "", *bits[:2])
            check(seen, lambda a, b, c, exact=exact: exact(a, b))
        check(numerics.half_fma(kind, False, "", *bits), lambda a, b, c: a * b + c)


# -- small things ------------------------------------------------------------------------------------------


def test_nan_of_an_instruction_is_canonical():
    a = np.array([0.0, np.inf, np.nan, 1.0], np.float32)
    with np.errstate(all="ignore"):
        results = (numerics.fma_f32(a, np.array([np.inf], np.float32), -a), numerics.canonical(a - a))
    assert results[0].view(np.uint32).tolist() == [0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7F800000]
    assert results[1].view(np.uint32).tolist() == [0, 0x7FFFFFFF, 0x7FFFFFFF, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_minimum_and_maximum_order_zeros(dtype):
    """In all places of long and short arrays: NumPy's vector and scalar loops may differ."""
    for n in (1, 3, 8, 67):
        minus, plus = np.full(n, -0.0, dtype), np.full(n, 0.0, dtype)
        for a, b in ((minus, plus), (plus, minus)):
            assert np.signbit(numerics.minimum(a, b)).all()
            assert not np.signbit(numerics.maximum(a, b)).any()
        assert np.signbit(numerics.maximum(minus, minus)).all()


def test_flush_to_zero_counts_what_24_bits_round_up():
    """The product 2**-126 · (1 - 2**-24) rounds to 2**-126 as a subnormal, but not if it had 24 bits (recorded)."""
    smallest, below_one = np.array([2.0**-126], np.float32), np.array([1 - 2.0**-24], np.float32)
    assert numerics.flush_tiny(smallest, lambda: numerics.multiply_f32(smallest * 2**24, below_one, "rn"))[0] == 0
    assert numerics.flush_tiny(smallest, lambda: smallest * np.float32(2**24))[0] == smallest[0]


@pytest.mark.parametrize("small", [0x00000001, 0x007FFFFF, 0x80000001, 0x807FFFFF, None])
def test_subnormal_float32_are_flushed_and_nothing_else(small):
    kept = [0x00000000, 0x80000000, 0x00800000, 0x80800000, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00000]
    bits = np.array(kept + ([] if small is None else [small]), np.uint32)
    expected = kept + ([] if small is None else [small & 0x80000000])
    assert numerics.flush_f32(bits.view(np.float32)).view(np.uint32).tolist() == expected
    zeros = np.zeros(4, np.float32)
    assert numerics.flush_f32(zeros) is zeros  # nothing is copied where zeros are all that is small
