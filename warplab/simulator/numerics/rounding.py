"""Floating point with one rounding: directed rounding, flushing, saturation, minimum and maximum, NaN.

float32 is computed in float64 and narrowed once. Where float64 itself is inexact it is first *rounded to odd*: to the
neighbour whose last bit is 1, which keeps enough of the exact value for any later rounding to fewer bits to be right
(Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). float64 in a directed mode is the nearest
float64, moved by one step where the exact error, found by error-free transformations, says so.

Rounding modes are PTX's: "rn" nearest, ties to even; "rz" to zero; "rm" down; "rp" up.
"""

from fractions import Fraction

import numpy as np

NAN_F32 = np.uint32(0x7FFFFFFF).view(np.float32)  # what every float32 instruction returns for NaN (PTX ISA, recorded)
_SMALLEST_F32 = np.float32(2.0**-126)
SPLIT = 134217729.0  # 2**27 + 1 (Veltkamp)


# -- NaN, flushing, saturation -----------------------------------------------------------------------------


def canonical(a):
    """Replace every NaN of float32 by the one that the GPU returns."""
    square = a.dot(a)  # NaN exactly if an entry is; by far the cheapest test
    if square == square:
        return a
    return np.where(a != a, NAN_F32, a)


def flush_f32(a):
    """Turn subnormal float32 into zeros of the same sign (.ftz)."""
    small = np.abs(a) < _SMALLEST_F32
    if not small.any() or _only_zeros(a):
        return a
    return np.where(small, np.copysign(np.float32(0), a), a)


def _only_zeros(a) -> bool:
    """Return whether no float32 is subnormal: 0, the least pattern without its sign, becomes the largest."""
    return bool((((a.view(np.uint32) << np.uint32(1)) - np.uint32(1)) >= np.uint32(0xFFFFFF)).all())


def flush_tiny(a, scaled):
    """Return a float32 result with .ftz: zero if subnormal when rounded to 24 bits with any exponent.

    That is so for some values that a subnormal's fewer bits round up to 2**-126 (recorded). `scaled()` gives the
    result times 2**24, whose rounding has all the bits.
    """
    size = np.abs(a)
    small = size <= _SMALLEST_F32
    if not small.any() or not a.any():
        return a
    small = np.abs(scaled()) < np.float32(2.0**-102) if (size == _SMALLEST_F32).any() else size < _SMALLEST_F32
    return np.where(small, np.copysign(np.float32(0), a), a)


def saturate(a):
    """Clamp to 0…1, NaN and -0 to +0 (.sat)."""
    return np.fmin(np.fmax(a, a.dtype.type(0)), a.dtype.type(1)) + a.dtype.type(0)


def _keep_nan(a, result):
    """Make NaN quiet but keep it, as float64 instructions do."""
    nan = a != a
    return np.where(nan, a + 0.0, result) if nan.any() else result


def absolute_f64(a):
    return _keep_nan(a, np.abs(a))


def negative_f64(a):
    return _keep_nan(a, -a)


def has_property(a, what: str):
    """Compute testp."""
    size = np.abs(a)
    smallest = a.dtype.type(2.0**-126 if a.dtype.itemsize == 4 else 2.0**-1022)
    return {
        "finite": lambda: np.isfinite(a),
        "infinite": lambda: np.isinf(a),
        "number": lambda: a == a,
        "notanumber": lambda: a != a,
        "normal": lambda: np.isfinite(a) & ((size >= smallest) | (size == 0)),  # zeros count as normal
        "subnormal": lambda: (size < smallest) & (size > 0),
    }[what]()


# -- minimum and maximum -----------------------------------------------------------------------------------


def minimum(a, b):
    """Return the smaller number. Of a number and NaN, the number; -0 is smaller than +0."""
    # NumPy may return either of two zeros. Both orders together yield both signs, of which `|` keeps the minus.
    return _both(np.fmin, np.bitwise_or, a, b)


def maximum(a, b):
    """Return the greater number. Of a number and NaN, the number; +0 is greater than -0."""
    return _both(np.fmax, np.bitwise_and, a, b)


def _both(function, combine, a, b):
    bits = f"u{a.dtype.itemsize}"
    one, other = function(a, b), function(b, a)
    result = combine(one.view(bits), other.view(bits)).view(a.dtype)
    square = one.dot(one)
    if square == square:
        return result
    # Of a signalling NaN and a number NumPy returns either, depending on the length of the arrays.
    one_nan = np.where(a != a, b, a)
    return np.where(
        one_nan != one_nan, NAN_F32 if a.dtype.itemsize == 4 else one, np.where(one != one, one_nan, result)
    )


def minimum_nan(a, b):
    """Compute min.NaN: NaN if either is NaN."""
    return _nan_if_any(a, b, minimum(a, b))


def maximum_nan(a, b):
    return _nan_if_any(a, b, maximum(a, b))


def _nan_if_any(a, b, result):
    return np.where((a != a) | (b != b), NAN_F32, result)


def xor_sign(a, b, result):
    """Apply .xorsign: the result, a magnitude or NaN, gets the product of the signs of a and b."""
    signed = np.where(np.signbit(a) ^ np.signbit(b), -result, result)
    return np.where(result != result, NAN_F32, signed)


# -- narrowing ---------------------------------------------------------------------------------------------


def narrow(exact, nearest, rounding: str):
    """Move `nearest`, the float nearest to `exact`, to the neighbour that `rounding` asks for.

    `exact`: float64, or float32 for a float16 `nearest`.
    """
    if rounding == "rn":
        return nearest
    back = nearest.astype(exact.dtype)
    minus = np.signbit(nearest)
    if rounding == "rz":
        steps = np.where(np.abs(back) > np.abs(exact), -1, 0)
    elif rounding == "rm":
        steps = np.where(back > exact, np.where(minus, 1, -1), 0)
    else:
        steps = np.where(back < exact, np.where(minus, -1, 1), 0)
    # In sign and magnitude, one step of the bits is one float further from zero, even from zero and to infinity.
    bits = f"i{nearest.dtype.itemsize}"
    return (nearest.view(bits) + steps.astype(bits)).view(nearest.dtype)


def narrow_f32(exact, rounding: str):
    """Convert float64 (exact, or rounded to odd) to float32."""
    return narrow(exact, exact.astype(np.float32), rounding)


def two_sum_error(a, b, total):
    """Return the exact error of the float64 sum `total` of a and b (Knuth)."""
    virtual = total - a
    return (a - (total - virtual)) + (b - virtual)


def to_odd(total, error):
    """Round to odd instead of to nearest: `total` is the exact value less `error`."""
    bits = total.view(np.int64)
    fix = (error != 0) & (error == error) & ((bits & 1) == 0) & (total != 0)
    if not fix.any():
        return total
    away = (error > 0) == (total > 0)
    return (bits + np.where(fix, np.where(away, 1, -1), 0)).view(np.float64)


def odd_sum(a, b):
    """Return a + b of float64, rounded to odd."""
    total = a + b
    return to_odd(total, two_sum_error(a, b, total))


# -- float32, any rounding ---------------------------------------------------------------------------------


def add_f32(a, b, rounding: str):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return canonical(zero_sum(a, b, narrow_f32(odd_sum(a, b), rounding), rounding))


def zero_sum(a, b, total, rounding: str):
    """Make an exact sum of zero -0 when rounding down, unless both are +0."""
    if rounding != "rm":
        return total
    minus = (total == 0) & ((a != 0) | (np.signbit(a) | np.signbit(b))) & (a == -b)
    return np.where(minus, -np.abs(total), total)


def multiply_f32(a, b, rounding: str):
    return canonical(narrow_f32(np.multiply(a, b, dtype=np.float64), rounding))  # the product is exact


def divide_f32(a, b, rounding: str):
    # A quotient of two 24-bit numbers is a float32, or over 2**-50 of its size away from one, which float64 resolves.
    return canonical(narrow_f32(np.divide(a, b, dtype=np.float64), rounding))


def square_root_f32(a, rounding: str):
    return canonical(narrow_f32(np.sqrt(a, dtype=np.float64), rounding))


# -- float64, directed rounding ----------------------------------------------------------------------------


def step(result, error, rounding: str):
    """Move `result`, the nearest float64, where the sign of (exact - result) and the rounding ask for it."""
    if rounding == "rz":
        down, up = (error < 0) & (result > 0), (error > 0) & (result < 0)
    elif rounding == "rm":
        down, up = error < 0, False
    else:
        down, up = False, error > 0
    result = np.where(down, np.nextafter(result, -np.inf), result)
    return np.where(up, np.nextafter(result, np.inf), result)


def two_product_error(a, b, product):
    """Return the exact error of the float64 `product` of a and b (Dekker). Wrong where a part over- or underflows."""
    a1 = a * SPLIT
    a1 = a1 - (a1 - a)
    b1 = b * SPLIT
    b1 = b1 - (b1 - b)
    a2, b2 = a - a1, b - b1
    return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def exact_error(sign, lanes, result, *operands):
    """Return signs of (exact - result) for some lanes, in exact arithmetic; 0 where one is no number.

    `sign(result, *operands)` gets fractions and returns a number of the right sign.
    """
    arrays = np.broadcast_arrays(result, *operands)
    errors = np.zeros(lanes.shape[0])
    for k, lane in enumerate(lanes):
        value, *numbers = (float(array[lane]) for array in arrays)
        if not all(map(np.isfinite, numbers)) or value != value:
            continue
        if np.isinf(value):
            errors[k] = -value
        else:
            exact = sign(Fraction(value), *map(Fraction, numbers))
            errors[k] = (exact > 0) - (exact < 0)
    return errors


def _corrected(result, error, doubtful, sign, operands, rounding):
    """Do `step` with the errors of the doubtful lanes computed exactly."""
    lanes = np.flatnonzero(np.broadcast_to(doubtful, result.shape))
    if lanes.shape[0]:
        error = np.array(np.broadcast_to(error, result.shape))
        error[lanes] = exact_error(sign, lanes, result, *operands)
    return step(result, error, rounding)


def add_f64(a, b, rounding: str):
    total = a + b
    error = two_sum_error(a, b, total)
    huge = np.abs(total) > 2.0**1022
    total_ = _corrected(total, error, huge, lambda s, x, y: x + y - s, (a, b), rounding)
    return zero_sum(a, b, total_, rounding)


def _extreme(*values):
    """Return where products of parts may over- or underflow."""
    extreme = False
    for value in values:
        size = np.abs(value)
        extreme = extreme | ~(size < 2.0**960) | ((size < 2.0**-900) & (size != 0))
    return extreme


def multiply_f64(a, b, rounding: str):
    product = a * b
    error = two_product_error(a, b, product)
    underflow = (product == 0) & (a != 0) & (b != 0)
    doubtful = _extreme(a, b, product) | underflow
    return _corrected(product, error, doubtful, lambda p, x, y: x * y - p, (a, b), rounding)


def divide_f64(a, b, rounding: str):
    quotient = a / b
    product = quotient * b
    rest = (a - product) - two_product_error(quotient, b, product)
    error = np.where(b < 0, -rest, rest)
    doubtful = (_extreme(a, b, quotient) | ((quotient == 0) & (a != 0))) & (b != 0)
    return _corrected(quotient, error, doubtful, lambda q, x, y: x / y - q, (a, b), rounding)


def square_root_f64(a, rounding: str):
    root = np.sqrt(a)
    square = root * root
    error = (a - square) - two_product_error(root, root, square)
    return _corrected(root, error, _extreme(a), lambda r, x: x - r * r, (a,), rounding)
