"""cvt between integers, float16, float32 and float64, on whole arrays. Modes: rn rz rm rp, and rni rzi rmi rpi."""

import numpy as np

from warplab.simulator.numerics.rounding import canonical, narrow, step, to_odd

_LARGEST_TF32 = np.uint32(0x7F7FE000).view(np.float32)
_INTEGRAL = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}


def round_to_integral(a, rounding: str):
    """Compute cvt.rni.f32.f32 and the like: a float with an integral value."""
    result = _INTEGRAL[rounding](a)
    return canonical(result) if a.dtype == np.float32 else result


def float_to_int(a, dtype, rounding: str):
    """Convert float32 or float64 to an integer: rounded and clamped to its range.

    NaN gives 0 if a is float32 and the integer has at most 32 bits, else only the top bit set (PTX ISA, "cvt"). A
    float16 is given as float32.
    """
    dtype = np.dtype(dtype)
    info = np.iinfo(dtype)
    rounded = _INTEGRAL[rounding](a)
    if rounded.dtype.itemsize < 8:
        rounded = rounded.astype(np.float64)
    if dtype.itemsize < 8:
        result = np.fmin(np.fmax(rounded, info.min), info.max).astype(np.int64).astype(dtype)
    else:  # the highest integer is not a float64
        inside = (rounded > info.min) & (rounded < info.max)
        clamped = np.where(rounded >= info.max, dtype.type(info.max), dtype.type(info.min))
        result = np.where(inside, np.where(inside, rounded, 0).astype(dtype), clamped)
    square = rounded.dot(rounded)
    if square == square:
        return result
    top = a.dtype.itemsize == 8 or dtype.itemsize == 8
    nan = np.array(1 << (8 * dtype.itemsize - 1) if top else 0, np.uint64).astype(dtype)
    return np.where(rounded != rounded, nan, result)


def to_exact_f64(a):
    """Return an integer as float64, rounded to odd where it has more than 53 bits."""
    nearest = a.astype(np.float64)
    if a.dtype.itemsize < 8:
        return nearest
    top = 2.0**63 if a.dtype.kind == "i" else 2.0**64
    fits = nearest < top  # otherwise the integer was rounded up beyond its type
    error = a - np.where(fits, nearest, 0).astype(a.dtype)
    signed = error.view(np.int64)  # below 2**11 in size
    return to_odd(nearest, np.where(fits, signed, -1).astype(np.float64))


def int_to_float(a, dtype, rounding: str):
    """Compute cvt.rX.f32 and .f64 from integers."""
    dtype = np.dtype(dtype)
    nearest = a.astype(dtype)
    if rounding == "rn":
        return nearest
    exact = to_exact_f64(a)
    if dtype.itemsize < 8:
        return narrow(exact, nearest, rounding)
    if a.dtype.itemsize < 8:
        return nearest
    # Rounding to odd only shows that it is inexact: compare the integers.
    top = 2.0**63 if a.dtype.kind == "i" else 2.0**64
    fits = nearest < top
    back = np.where(fits, nearest, 0).astype(a.dtype)
    return step(nearest, np.where(~fits | (back > a), -1, back < a), rounding)


def tf32(a, rounding: str, relu: bool, saturates: bool = False):
    """Return float32 with 10 fraction bits (rna: nearest, ties away from zero). The 13 low bits are zero.

    `saturates`: what is beyond the largest number becomes it (.satfinite)."""
    if relu:
        a = np.where(a <= 0, np.float32(0), a)
    if saturates:
        a = np.clip(a, -_LARGEST_TF32, _LARGEST_TF32)
    bits = a.view(np.uint32)
    falling = np.uint32(0x1FFF)
    if rounding == "rna":
        rounded = np.where(np.isfinite(a), bits + np.uint32(0x1000), bits) & ~falling
        return rounded
    if rounding == "rn":
        bits = np.where(np.isfinite(a), bits + np.uint32(0xFFF) + ((bits >> 13) & 1), bits)
    return np.where(a != a, np.uint32(0x7FFFE000), bits & ~falling)


def pack_saturated(a, b, c, low, high, bits: int):
    """Compute cvt.pack: a, b clamped to low…high in the lowest parts of `bits` bits, a above b; c shifted above."""
    mask = (1 << bits) - 1
    a, b = (np.clip(x, low, high).astype(np.int64) & mask for x in (a, b))
    return ((c.astype(np.int64) << (2 * bits)) | (a << bits) | b).astype(np.uint32)
