"""a·b + c with one rounding, in float32 and float64. The inner loops of most kernels spend their time here.

Arrays go through in pieces of `PIECE` lanes, with intermediates in arrays made once, so that all stay in the cache.
"""

import threading
from fractions import Fraction

import numpy as np

from warplab.simulator.numerics.rounding import (
    NAN_F32,
    SPLIT,
    canonical,
    exact_error,
    narrow_f32,
    odd_sum,
    step,
    two_product_error,
    two_sum_error,
    zero_sum,
)

PIECE = 16384
_SMALLEST_F32 = 2.0**-126
# A float32 drops 29 bits of a float64's significand; halfway is 1 followed by 28 zeros.
_FALLING, _HALFWAY = np.int64(0x1FFFFFFF), np.int64(0x10000000)
_1, _TWICE_SMALLEST = np.uint64(1), np.uint64(2 * 0x3810000000000000 - 1)
_MORE, _LESS = 1 + 2.0**-52, 1 - 2.0**-52


class _Scratch(threading.local):
    """Arrays for intermediates, one set per thread: eight of float64, one each of float32, int64 and bool."""

    def __init__(self) -> None:
        self.arrays = (*np.empty((8, PIECE)), *(np.empty(PIECE, dtype) for dtype in (np.float32, np.int64, bool)))
        self.views: dict[int, tuple[np.ndarray, ...]] = {}

    def of(self, n: int) -> tuple[np.ndarray, ...]:
        """Return the first n entries of the arrays."""
        if n not in self.views:
            if len(self.views) > 64:
                self.views.clear()
            self.views[n] = tuple(array[:n] for array in self.arrays)
        return self.views[n]


_scratch = _Scratch()


def _in_pieces(function, dtype, a, b, c):
    """Return the result of `function(a, b, c, out)`, which takes arrays of length n or 1."""
    if not a.ndim == b.ndim == c.ndim == 1:
        a, b, c = np.broadcast_arrays(a, b, c)
        return _in_pieces(function, dtype, *(x.reshape(-1) for x in (a, b, c))).reshape(a.shape)
    n = max(a.shape[0], b.shape[0], c.shape[0])
    out = np.empty(n, dtype)
    if n <= PIECE:
        function(a, b, c, out)
        return out
    for start in range(0, n, PIECE):
        piece = slice(start, start + PIECE)
        function(*(x if x.shape[0] == 1 else x[piece] for x in (a, b, c)), out[piece])
    return out


# -- float32 -----------------------------------------------------------------------------------------------


def fma_f32(a, b, c):
    """Return a·b + c rounded to nearest once.

    The product of two float32 is exact in float64. The float64 sum rounds before the float32 one does, which matters
    only where it lies exactly between two float32, or is subnormal as a float32: there it is rounded to odd first.
    """
    return _in_pieces(_fma_f32, np.float32, a, b, c)


def _fma_f32(a, b, c, out) -> None:
    n = out.shape[0]
    product, total, *_, sizes, bits, doubtful = _scratch.of(n)
    np.multiply(a, b, out=product, dtype=np.float64)
    np.add(product, c, out=total)
    np.copyto(out, total, casting="same_kind")
    np.bitwise_and(total.view(np.int64), _FALLING, out=bits)
    np.equal(bits, _HALFWAY, out=doubtful)
    lowest = np.minimum.reduce(np.abs(out, out=sizes))
    if not lowest >= _SMALLEST_F32:  # subnormal, zero or NaN
        # Twice the bits drop the sign; less one, 0 becomes the largest number of all.
        twice = np.left_shift(total.view(np.uint64), _1, out=bits.view(np.uint64))
        twice -= _1
        doubtful |= twice < _TWICE_SMALLEST
        if lowest != lowest:
            np.copyto(out, NAN_F32, where=out != out)
    if np.count_nonzero(doubtful):
        lanes = np.flatnonzero(doubtful)
        addend = np.broadcast_to(c, n)[lanes].astype(np.float64)
        out[lanes] = odd_sum(product[lanes], addend)


def fma_f32_rounded(a, b, c, rounding: str):
    """Return a·b + c rounded once, in any rounding mode."""
    product, c = np.multiply(a, b, dtype=np.float64), c.astype(np.float64)
    return canonical(zero_sum(product, c, narrow_f32(odd_sum(product, c), rounding), rounding))


# -- float64 -----------------------------------------------------------------------------------------------


def fma_f64(a, b, c):
    """Return a·b + c rounded to nearest once.

    Exact product (Dekker) and exact sum (Knuth), then one rounding of all their parts. Lanes where that rounding is
    not certain are rounded to odd first; those where a part over- or underflows are computed in fractions.
    """
    return _in_pieces(_fma_f64, np.float64, a, b, c)


def _split(a, high, low) -> None:
    """Split a into high + low, each of at most 26 bits (Veltkamp)."""
    np.multiply(a, SPLIT, out=high)
    np.subtract(high, a, out=low)
    np.subtract(high, low, out=high)
    np.subtract(a, high, out=low)


def _fma_f64(a, b, c, out) -> None:
    n = out.shape[0]
    product, a1, a2, b1, b2, low, part, total, _, _, flags = _scratch.of(n)
    virtual, error = a1, a2
    if a.shape[0] == 1:
        a1, a2 = a1[:1], a2[:1]
    if b.shape[0] == 1:
        b1, b2 = b1[:1], b2[:1]
    np.multiply(a, b, out=product)
    _split(a, a1, a2)
    _split(b, b1, b2)
    np.multiply(a1, b1, out=low)
    low -= product
    np.multiply(a1, b2, out=part)
    low += part
    np.multiply(a2, b1, out=part)
    low += part
    np.multiply(a2, b2, out=part)
    low += part
    # total + error = product + c, exactly (Knuth's sum; the parts of a and b are no longer needed)
    np.add(product, c, out=total)
    np.subtract(total, product, out=virtual)
    np.subtract(total, virtual, out=part)
    np.subtract(product, part, out=error)
    np.subtract(c, virtual, out=part)
    error += part
    error += low  # the rest, with a relative error of at most 2**-53
    np.multiply(error, _MORE, out=part)
    np.add(total, part, out=part)
    error *= _LESS
    np.add(total, error, out=out)
    np.equal(out, part, out=flags)  # not where one is NaN
    size = np.abs(product, out=part)
    extreme = None
    if not (np.minimum.reduce(size) > 2.0**-900 and np.maximum.reduce(size) < 2.0**990):
        extreme = ~((size < 2.0**990) & ((size > 2.0**-900) | (a == 0) | (b == 0)))
        np.copyto(out, total, where=size == 0)  # a zero keeps its sign
        flags &= ~extreme
    if np.count_nonzero(flags) < n:
        lanes = np.flatnonzero(~flags)
        operands = [np.broadcast_to(x, n)[lanes] for x in (a, b, c)]
        out[lanes] = _odd_fma(*operands)
        huge = ~np.isfinite(out[lanes])
        exact = huge if extreme is None else huge | extreme[lanes]
        if exact.any():
            out[lanes[exact]] = _exact_fma(*(x[exact] for x in operands))


def _odd_fma(a, b, c):
    """Compute Boldo and Melquiond's fma. Wrong where a part over- or underflows."""
    product = a * b
    low = two_product_error(a, b, product)
    total = product + c
    error = two_sum_error(product, c, total)
    return total + odd_sum(error, low)


def _exact_fma(a, b, c):
    result = np.where(np.isfinite(a) & np.isfinite(b) & np.isinf(c), c, a * b + c)
    for k in np.flatnonzero(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)):
        exact = Fraction(float(a[k])) * Fraction(float(b[k])) + Fraction(float(c[k]))
        if exact:
            try:
                result[k] = float(exact)
            except OverflowError:
                result[k] = np.inf if exact > 0 else -np.inf
            if result[k] == 0:
                result[k] = 0.0 if exact > 0 else -0.0
    return result


def fma_f64_rounded(a, b, c, rounding: str):
    """Return a·b + c rounded once, in any rounding mode."""
    result = fma_f64(a, b, c)
    product = a * b
    total = product + c
    parts = (total - result, two_sum_error(product, c, total), two_product_error(a, b, product))
    error = parts[0] + parts[1] + parts[2]
    size = np.abs(product)
    certain = np.abs(error) > 2.0**-40 * (np.abs(parts[0]) + np.abs(parts[1]) + np.abs(parts[2]))
    certain &= (size > 2.0**-900) & (size < 2.0**960) & (np.abs(total) < 2.0**960)
    certain &= (np.abs(a) < 2.0**960) & (np.abs(b) < 2.0**960)
    lanes = np.flatnonzero(~certain)
    if lanes.shape[0]:
        error[lanes] = exact_error(lambda r, x, y, z: x * y + z - r, lanes, result, a, b, c)
    stepped = step(result, error, rounding)
    # If the product underflows, product + c is zero although the exact sum is not.
    return np.where(error == 0, zero_sum(product, np.broadcast_to(c, result.shape), stepped, rounding), stepped)
