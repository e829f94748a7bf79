"""Integer arithmetic as PTX defines it, on whole arrays of one dtype, each of the same length or of length 1."""

import numpy as np

_LOW32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def divide(a, b):
    """Return truncating division. Division by zero gives all ones, as recorded (undefined in PTX)."""
    if b.all():
        return _quotient(a, b)
    zero = b == 0
    return np.where(zero, _all_ones(a.dtype), _quotient(a, np.where(zero, b.dtype.type(1), b)))


def remainder(a, b):
    """Return the remainder with the sign of the dividend. Division by zero gives all ones, as on an H100 (recorded)."""
    if b.all():
        return a - _quotient(a, b) * b
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    return np.where(zero, _all_ones(a.dtype), a - _quotient(a, safe) * safe)


def _all_ones(dtype: np.dtype):
    return np.array(-1).astype(dtype)[()]


def _quotient(a, b):
    if a.dtype.itemsize < 8:
        # Exact: a quotient that is not an integer is at least 1 / b, over 2**-32 of its size, away from one, and a
        # float64 resolves 2**-53.
        return np.trunc(np.divide(a, b, dtype=np.float64)).astype(np.int64).astype(a.dtype)
    quotient = a // b
    if a.dtype.kind == "u":
        return quotient
    return quotient + ((quotient * b != a) & ((a < 0) != (b < 0)))


def mul_hi(a, b):
    """Return the upper half of the double-width product."""
    if a.dtype.itemsize < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        return (np.multiply(a, b, dtype=wide) >> (8 * a.dtype.itemsize)).astype(a.dtype)
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    a0, a1, b0, b1 = ua & _LOW32, ua >> _32, ub & _LOW32, ub >> _32
    a1b0, a0b1 = a1 * b0, a0 * b1
    middle = (a0 * b0 >> _32) + (a1b0 & _LOW32) + (a0b1 & _LOW32)
    high = a1 * b1 + (a1b0 >> _32) + (a0b1 >> _32) + (middle >> _32)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, ub, np.uint64(0)) - np.where(b < 0, ua, np.uint64(0))
    return high.view(a.dtype)


def mul24(a, b, high: bool):
    """Return the product of the low 24 bits: its low 32 bits, or bits 16 to 47."""
    if a.dtype.kind == "i":
        a, b = ((x << 8 >> 8).astype(np.int64) for x in (a, b))
    else:
        a, b = ((x & 0xFFFFFF).astype(np.uint64) for x in (a, b))
    product = a * b
    return (product >> 16 if high else product).astype(f"{product.dtype.kind}4")


def add_saturated(a, b, sign: int = 1):
    """Return a + b or a - b of int32, clamped to int32."""
    wide = a.astype(np.int64) + sign * b.astype(np.int64)
    return np.clip(wide, -(2**31), 2**31 - 1).astype(np.int32)


def saturate_integer(a, dtype):
    """Compute cvt.sat between integers: clamp to the range of `dtype`."""
    to, have = np.iinfo(dtype), np.iinfo(a.dtype)
    return np.clip(a, a.dtype.type(max(to.min, have.min)), a.dtype.type(min(to.max, have.max))).astype(dtype)


def carry(a, b, flag=None):
    """Return the sum of unsigned a and b and the carry flag, and the carry out of it."""
    total = a + b
    out = total < a
    if flag is not None:
        total = total + flag
        out = out | (total < flag)
    return total, out


def borrow(a, b, flag=None):
    """Return the difference of unsigned a and b, less one where the flag is not set, and the flag: set where nothing
    was borrowed.

    So the flag is the carry of a + ~b + 1. PTX calls it a borrow; an H100 keeps the carry, as an addition that reads
    the flag of a subtraction shows (recorded).
    """
    total = a - b
    out = a >= b
    if flag is not None:
        out = out & (flag | (total != 0))
        total = total - ~flag
    return total, out


def in_parts(function, dtype, *operands):
    """Apply `function` to the parts of registers that hold several numbers of `dtype`; the operands' type."""
    n = max(operand.shape[0] for operand in operands)
    parts = (np.ascontiguousarray(np.broadcast_to(operand, n)).view(dtype) for operand in operands)
    return function(*parts).view(operands[0].dtype)


def absolute_difference(a, b):
    """Return |a - b|, modulo the width."""
    return np.where(a < b, b - a, a - b)


def shift_left(a, amount):
    """Compute shl: amounts beyond the width give 0. `amount`: uint32."""
    bits = 8 * a.dtype.itemsize
    return np.where(amount < bits, a << np.minimum(amount, bits - 1).astype(a.dtype), a.dtype.type(0))


def shift_right(a, amount):
    """Compute shr: amounts beyond the width give 0, or the sign. `amount`: uint32."""
    bits = 8 * a.dtype.itemsize
    shifted = a >> np.minimum(amount, bits - 1).astype(a.dtype)
    return shifted if a.dtype.kind == "i" else np.where(amount < bits, shifted, a.dtype.type(0))


def dot_product(a, b, c, a_dtype, b_dtype, start: int = 0):
    """Compute dp4a and dp2a: c plus the products of a's parts with b's bytes from `start` on; uint32."""
    parts = 4 // np.dtype(a_dtype).itemsize
    a = np.ascontiguousarray(a).view(a_dtype).reshape(-1, parts).astype(np.int64)
    b = np.ascontiguousarray(b).view(b_dtype).reshape(-1, 4)[:, start : start + parts].astype(np.int64)
    return ((a * b).sum(axis=1) + c).astype(np.uint32)


def packed_absolute_difference(a, b, c, dtype, add: bool):
    """Compute vabsdiff2 and vabsdiff4: |a - b| of each part of `dtype`, or with `add` their sum and c; uint32."""
    parts = 4 // np.dtype(dtype).itemsize
    a, b = (np.ascontiguousarray(x).view(dtype).reshape(-1, parts).astype(np.int64) for x in (a, b))
    difference = np.abs(a - b)
    if add:
        return (difference.sum(axis=1) + c).astype(np.uint32)
    return difference.astype(f"u{4 // parts}").reshape(-1).view(np.uint32)
