"""Arithmetic that NumPy does not have as PTX defines it, on whole arrays."""

from __future__ import annotations

import numpy as np

__all__ = [
    "absolute",
    "brev",
    "clz",
    "divide_signed",
    "float_to_int",
    "flush_f32",
    "fma_f32",
    "fma_f64",
    "mul_hi",
    "popc",
    "remainder_signed",
    "saturate",
    "shift_left",
    "shift_right",
]


def fma_f32(a, b, c):
    """a·b + c rounded once. The product of two float32 is exact in float64; only the last rounding needs care.

    The float64 sum rounds before the float32 one does. That matters only where the float64 sum lies exactly between
    two float32 (or is subnormal in float32): there the sum is first rounded to odd (Boldo and Melquiond, "Emulation of
    FMA and correctly rounded sums", 2008).
    """
    product = np.multiply(a, b, dtype=np.float64)
    total = product + c
    bits = total.view(np.int64)
    # 29 bits of the float64 significand fall away; halfway is 1 followed by 28 zeros. Normal float32 start at 2**-126.
    doubtful = (bits & 0x1FFFFFFF) == 0x10000000
    doubtful |= (bits & 0x7FFFFFFFFFFFFFFF) < 0x3810000000000000
    if doubtful.any():
        total = _round_to_odd(product, np.asarray(c, np.float64), total)
    return total.astype(np.float32)


def _two_sum_error(a, b, total):
    """The exact error of the float64 sum `total` of a and b (Knuth)."""
    virtual = total - a
    return (a - (total - virtual)) + (b - virtual)


def _round_to_odd(a, b, total):
    error = _two_sum_error(a, b, total)
    bits = total.view(np.int64).copy()
    fix = (error != 0) & np.isfinite(error) & ((bits & 1) == 0) & (total != 0)
    away = (error > 0) == (total > 0)
    bits += np.where(fix, np.where(away, 1, -1), 0)
    return bits.view(np.float64)


def fma_f64(a, b, c):
    """a·b + c rounded once, by exact product and round-to-odd sum (Boldo and Melquiond, 2008).

    Exact while no intermediate over- or underflows; beyond that, the rounded product is used.
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    high = a * b
    split = 134217729.0  # 2**27 + 1 (Veltkamp)
    a1 = a * split
    a1 = a1 - (a1 - a)
    b1 = b * split
    b1 = b1 - (b1 - b)
    a2, b2 = a - a1, b - b1
    low = ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2
    total = high + c
    error = _two_sum_error(high, c, total)
    rest = error + low
    result = total + _round_to_odd(error, low, rest)
    plain = high + c
    size = np.abs(high)
    safe = np.isfinite(result) & (np.abs(a) < 2.0**990) & (np.abs(b) < 2.0**990) & ((size > 2.0**-900) | (size == 0))
    return np.where(safe, result, plain)


def float_to_int(value, dtype, rounding="rzi"):
    """cvt.rXi: rounded, clamped to the integer's range, NaN to 0."""
    dtype = np.dtype(dtype)
    rounded = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}[rounding](value.astype(np.float64))
    info = np.iinfo(dtype)
    inside = np.where((rounded > info.min) & (rounded < info.max), rounded, 0).astype(dtype)
    return np.where(
        rounded >= info.max, dtype.type(info.max), np.where(rounded <= info.min, dtype.type(info.min), inside)
    )


def divide_signed(a, b):
    """Truncating division; by zero gives all ones, as the hardware does."""
    a, b = np.broadcast_arrays(a, b)
    zero = b == 0
    b = np.where(zero, b.dtype.type(1), b)
    quotient = a // b
    quotient = quotient + ((a % b != 0) & ((a < 0) != (b < 0))).astype(a.dtype)
    return np.where(zero, a.dtype.type(-1) if a.dtype.kind == "i" else np.iinfo(a.dtype).max, quotient)


def remainder_signed(a, b):
    a, b = np.broadcast_arrays(a, b)
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    return np.where(zero, a, np.fmod(a, safe))


def mul_hi(a, b):
    """The upper half of the double-width product."""
    a, b = np.broadcast_arrays(a, b)
    if a.dtype.itemsize < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        return (a.astype(wide) * b.astype(wide) >> wide.type(8 * a.dtype.itemsize)).astype(a.dtype)
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = ua & mask, ua >> half, ub & mask, ub >> half
    middle = (a0 * b0 >> half) + (a1 * b0 & mask) + (a0 * b1 & mask)
    high = a1 * b1 + (a1 * b0 >> half) + (a0 * b1 >> half) + (middle >> half)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, ub, np.uint64(0)) - np.where(b < 0, ua, np.uint64(0))
    return high.view(a.dtype)


def shift_left(a, amount):
    """shl: amounts beyond the width give 0."""
    bits = 8 * a.dtype.itemsize
    amount = np.asarray(amount, dtype=np.uint32)
    return np.where(amount < bits, a << np.minimum(amount, bits - 1).astype(a.dtype), a.dtype.type(0))


def shift_right(a, amount):
    """shr: amounts beyond the width give 0, or the sign."""
    bits = 8 * a.dtype.itemsize
    amount = np.asarray(amount, dtype=np.uint32)
    shifted = a >> np.minimum(amount, bits - 1).astype(a.dtype)
    return shifted if a.dtype.kind == "i" else np.where(amount < bits, shifted, a.dtype.type(0))


def absolute(a):
    return np.abs(a)


def popc(a):
    return np.bitwise_count(a).astype(np.uint32)


def clz(a):
    """Leading zeros, as uint32."""
    bits = 8 * a.dtype.itemsize
    a = a.copy()
    count = np.zeros(a.shape, np.uint32)
    step = bits // 2
    while step:
        empty = (a >> a.dtype.type(bits - step)) == 0
        count += np.where(empty, np.uint32(step), np.uint32(0))
        a = np.where(empty, a << a.dtype.type(step), a)
        step //= 2
    return count + (a == 0).astype(np.uint32)


def brev(a):
    """Bits in reverse order."""
    bits = 8 * a.dtype.itemsize
    result = np.zeros_like(a)
    for i in range(bits):
        result |= ((a >> a.dtype.type(i)) & a.dtype.type(1)) << a.dtype.type(bits - 1 - i)
    return result


def flush_f32(a):
    """Subnormal float32 become zero of the same sign (.ftz)."""
    a = np.asarray(a, np.float32)
    return np.where(np.abs(a) < np.float32(2.0**-126), np.copysign(np.float32(0), a), a)


def saturate(a):
    """Clamped to 0…1, NaN to 0 (.sat)."""
    return np.where(np.isnan(a), a.dtype.type(0), np.clip(a, 0, 1))
