"""The simulator's integer functions against Python integers of all sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warplab.simulator import numerics
from warplab.simulator.translate.operations.bits import lop3

LANES = 8


def numbers(bits: int, signed: bool = False) -> st.SearchStrategy[list[int]]:
    """Arbitrary numbers, and those near powers of two."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    near = st.builds(lambda e, d: min(max((1 << e) + d, low), high), st.integers(0, bits), st.integers(-2, 2))
    return st.lists(st.integers(low, high) | near | st.integers(low, low + 3), min_size=LANES, max_size=LANES)


def array(values: list[int], bits: int, signed: bool = False) -> np.ndarray:
    return np.array(values, f"{'i' if signed else 'u'}{bits // 8}")


def wrap(value: int, bits: int, signed: bool = False) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


WIDTHS = pytest.mark.parametrize(
    ("bits", "signed"), [(b, s) for b in (16, 32, 64) for s in (False, True)], ids=lambda x: str(x)
)


@WIDTHS
@settings(max_examples=60)
@given(data=st.data())
def test_division(bits, signed, data):
    a, b = data.draw(numbers(bits, signed)), data.draw(numbers(bits, signed))
    with np.errstate(all="ignore"):
        quotient = numerics.divide(array(a, bits, signed), array(b, bits, signed)).tolist()
        remainder = numerics.remainder(array(a, bits, signed), array(b, bits, signed)).tolist()
    for x, y, q, r in zip(a, b, quotient, remainder, strict=True):
        if y == 0:
            assert q == r == wrap(-1, bits, signed)
        else:
            exact = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            assert (q, r) == (wrap(exact, bits, signed), x - exact * y)


@WIDTHS
@settings(max_examples=60)
@given(data=st.data())
def test_products_and_differences(bits, signed, data):
    a, b = data.draw(numbers(bits, signed)), data.draw(numbers(bits, signed))
    x, y = array(a, bits, signed), array(b, bits, signed)
    with np.errstate(all="ignore"):
        assert numerics.mul_hi(x, y).tolist() == [(p * q) >> bits for p, q in zip(a, b, strict=True)]
        difference = numerics.absolute_difference(x, y).tolist()
    assert difference == [wrap(abs(p - q), bits, signed) for p, q in zip(a, b, strict=True)]


@pytest.mark.parametrize("signed", [False, True])
@settings(max_examples=60)
@given(data=st.data())
def test_products_of_24_bits(signed, data):
    a, b = data.draw(numbers(32, signed)), data.draw(numbers(32, signed))
    exact = [wrap(p, 24, signed) * wrap(q, 24, signed) for p, q in zip(a, b, strict=True)]
    for high in (False, True):
        seen = numerics.mul24(array(a, 32, signed), array(b, 32, signed), high).tolist()
        assert seen == [wrap(p >> 16 if high else p, 32, signed) for p in exact]


@pytest.mark.parametrize("bits", [32, 64])
@settings(max_examples=60)
@given(data=st.data())
def test_carry_chain_adds_and_subtracts_long_numbers(bits, data):
    """Three words: the flag of one goes into the next."""
    words = [[data.draw(numbers(bits)) for _ in range(3)] for _ in range(2)]
    for function, sign in ((numerics.carry, 1), (numerics.borrow, -1)):
        flag, total = None, []
        for a, b in zip(*words, strict=True):
            part, flag = function(array(a, bits), array(b, bits), flag)
            total.append(part.tolist())
        for k in range(LANES):
            a, b = (sum(word[k] << (bits * place) for place, word in enumerate(number)) for number in words)
            exact = a + sign * b
            assert sum(word[k] << (bits * place) for place, word in enumerate(total)) == wrap(exact, 3 * bits)
            assert flag[k] == (exact >> (3 * bits) != 0 if sign == 1 else exact >= 0)


@settings(max_examples=60)
@given(data=st.data())
def test_sums_that_saturate(data):
    a, b = data.draw(numbers(32, True)), data.draw(numbers(32, True))
    for sign in (1, -1):
        seen = numerics.add_saturated(array(a, 32, True), array(b, 32, True), sign).tolist()
        assert seen == [min(max(x + sign * y, -(2**31)), 2**31 - 1) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("bits", [32, 64])
@settings(max_examples=60)
@given(data=st.data())
def test_bit_counting(bits, data):
    a = data.draw(numbers(bits))
    x = array(a, bits)
    assert numerics.popc(x).tolist() == [v.bit_count() for v in a]
    assert numerics.clz(x).tolist() == [bits - v.bit_length() for v in a]
    assert numerics.brev(x).tolist() == [int(f"{v:0{bits}b}"[::-1], 2) for v in a]
    highest = [v.bit_length() - 1 for v in a]
    assert numerics.find_leading(x, False).tolist() == [wrap(h, 32) for h in highest]
    assert numerics.find_leading(x, True).tolist() == [wrap(bits - 1 - h if h >= 0 else -1, 32) for h in highest]
    signed = [wrap(v, bits, True) for v in a]
    highest = [(v if v >= 0 else ~v).bit_length() - 1 for v in signed]
    assert numerics.find_leading(array(signed, bits, True), False).tolist() == [wrap(h, 32) for h in highest]


@pytest.mark.parametrize("bits", [32, 64])
@settings(max_examples=60)
@given(data=st.data())
def test_bit_fields(bits, data):
    a, b = data.draw(numbers(bits)), data.draw(numbers(bits))
    place, length = (data.draw(st.lists(st.integers(0, 80), min_size=LANES, max_size=LANES)) for _ in range(2))
    at, long = array(place, 32), array(length, 32)
    seen = numerics.extract_field(array(a, bits), at, long).tolist()
    assert seen == [(v >> p) & ((1 << n) - 1) for v, p, n in zip(a, place, length, strict=True)]
    signed = [wrap(v, bits, True) for v in a]
    seen = numerics.extract_field(array(signed, bits, True), at, long).tolist()
    # Beyond the top bit a signed number goes on with its sign.
    assert seen == [wrap(v >> p, n, True) if n else 0 for v, p, n in zip(signed, place, length, strict=True)]
    seen = numerics.insert_field(array(a, bits), array(b, bits), at, long).tolist()
    for v, w, p, n, result in zip(a, b, place, length, seen, strict=True):
        mask = ((1 << n) - 1) << p
        assert result == wrap((w & ~mask) | (v << p & mask), bits)


@settings(max_examples=60)
@given(data=st.data())
def test_funnel_shift_and_masks(data):
    low, high = data.draw(numbers(32)), data.draw(numbers(32))
    amounts = data.draw(st.lists(st.integers(0, 70) | st.just(2**32 - 1), min_size=LANES, max_size=LANES))
    x, y, n = array(low, 32), array(high, 32), array(amounts, 32)
    for wrapped in (False, True):
        shifts = [k & 31 if wrapped else min(k, 32) for k in amounts]
        both = [b << 32 | a for a, b in zip(low, high, strict=True)]
        left = numerics.funnel_shift(x, y, n, True, wrapped).tolist()
        assert left == [wrap(v << k >> 32, 32) for v, k in zip(both, shifts, strict=True)]
        right = numerics.funnel_shift(x, y, n, False, wrapped).tolist()
        assert right == [wrap(v >> k, 32) for v, k in zip(both, shifts, strict=True)]
        mask = numerics.bit_mask(n, n[::-1].copy(), wrapped).tolist()
        sizes = [k & 31 for k in amounts[::-1]] if wrapped else amounts[::-1]
        places = [k & 31 if wrapped else k for k in amounts]
        assert mask == [wrap(((1 << min(s, 99)) - 1) << min(p, 99), 32) for s, p in zip(sizes, places, strict=True)]


@settings(max_examples=60)
@given(data=st.data())
def test_permutation_of_bytes(data):
    a, b, selectors = (data.draw(numbers(32)) for _ in range(3))
    seen = numerics.permute(array(a, 32), array(b, 32), array(selectors, 32)).tolist()
    one = numerics.permute(array(a, 32), array(b, 32), array(selectors[:1], 32)).tolist()

    def expected(x, y, selector):
        pool = x.to_bytes(4, "little") + y.to_bytes(4, "little")
        picked = []
        for nibble in (selector >> (4 * k) & 15 for k in range(4)):
            byte = pool[nibble & 7]
            picked.append((255 if byte >> 7 else 0) if nibble & 8 else byte)
        return int.from_bytes(bytes(picked), "little")

    assert seen == [expected(*t) for t in zip(a, b, selectors, strict=True)]
    assert one == [expected(x, y, selectors[0]) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize(("parts", "kind"), [(4, "u1"), (4, "i1"), (2, "u2"), (2, "i2")])
@settings(max_examples=60)
@given(data=st.data())
def test_dot_products_and_packed_differences(parts, kind, data):
    a, b, c = (data.draw(numbers(32)) for _ in range(3))
    x, y, z = (array(v, 32) for v in (a, b, c))

    def split(value, bits, signed):
        return [wrap(value >> (bits * k), bits, signed) for k in range(32 // bits)]

    bits, signed = 8 * int(kind[1]), kind[0] == "i"
    for start in (0,) if parts == 4 else (0, 2):
        seen = numerics.dot_product(x, y, z, np.dtype(kind), np.dtype("i1"), start).tolist()
        for p, q, r, value in zip(a, b, c, seen, strict=True):
            pairs = zip(split(p, bits, signed), split(q, 8, True)[start:], strict=False)
            assert value == wrap(r + sum(u * v for u, v in pairs), 32)
    sums = numerics.packed_absolute_difference(x, y, z, np.dtype(kind), True).tolist()
    for p, q, r, value in zip(a, b, c, sums, strict=True):
        pairs = zip(split(p, bits, signed), split(q, bits, signed), strict=True)
        assert value == wrap(r + sum(abs(u - v) for u, v in pairs), 32)


def test_every_logic_function_of_three_bits():
    a, b, c = (np.array([v], np.uint32) for v in (0xF0, 0xCC, 0xAA))
    for table in range(256):
        seen = eval(lop3(table).format("a", "b", "c"), {"a": a, "b": b, "c": c})
        assert int(seen[0]) & 0xFF == table, lop3(table)
        assert seen.dtype == np.uint32


def test_integer_conversions_that_saturate():
    values = [-(2**63), -129, -128, -1, 0, 1, 127, 128, 255, 256, 2**31, 2**63 - 1]
    for dtype in ("i1", "u1", "i2", "u4", "i8", "u8"):
        info = np.iinfo(dtype)
        seen = numerics.saturate_integer(np.array(values, np.int64), dtype).tolist()
        assert seen == [min(max(v, info.min), info.max) for v in values]
    seen = numerics.saturate_integer(np.array([0, 127, 2**64 - 1], np.uint64), "i8").tolist()
    assert seen == [0, 127, 2**63 - 1]


def nth_one(mask: int, base: int, offset: int) -> int:
    """fns, as the PTX ISA writes it; for the lowest offset as an H100 does."""
    if offset == -(1 << 31):
        return 0
    if offset == 0:
        return base if base < 32 and mask >> base & 1 else 0xFFFFFFFF
    place, left = base, abs(offset) - 1
    while 0 <= place < 32:
        if mask >> place & 1:
            if left == 0:
                return place
            left -= 1
        place += 1 if offset > 0 else -1
    return 0xFFFFFFFF


@settings(max_examples=60)
@given(data=st.data())
def test_find_the_nth_one(data):
    masks = data.draw(numbers(32))
    bases = data.draw(st.lists(st.integers(0, 40), min_size=LANES, max_size=LANES))
    offsets = data.draw(st.lists(st.integers(-34, 34) | st.just(-(1 << 31)), min_size=LANES, max_size=LANES))
    seen = numerics.find_nth(array(masks, 32), array(bases, 32), array(offsets, 32, True))
    assert seen.tolist() == [nth_one(*args) for args in zip(masks, bases, offsets, strict=True)]
