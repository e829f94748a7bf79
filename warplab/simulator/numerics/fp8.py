"""Pairs of eight-bit floats (e4m3, e5m2), which only cvt supports."""

import numpy as np

from warplab.simulator.numerics.halves import half_from_f32

# Fraction bits, exponent bias, largest number. e4m3 has no infinity and one NaN per sign; e5m2 is a short float16.
_FORMATS = {"e4m3": (3, 7, 448.0), "e5m2": (2, 15, 57344.0)}


def _values(kind: str) -> np.ndarray:
    """Return all 256 numbers, float32."""
    fraction_bits, bias, largest = _FORMATS[kind]
    codes = np.arange(256)
    exponent = codes >> fraction_bits & (0x7F >> fraction_bits)
    fraction = (codes & ((1 << fraction_bits) - 1)) / 2.0**fraction_bits
    size = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    special = np.inf if kind == "e5m2" else np.nan
    size = np.where(size > largest, np.where(fraction == 0, special, np.nan), size)
    return np.where(codes >= 128, -size, size).astype(np.float32)


_VALUES = {kind: _values(kind) for kind in _FORMATS}


def fp8_to_halves(bits, kind: str, relu: bool):
    """Compute cvt.rn.f16x2.e4m3x2 and .e5m2x2: two bytes to two float16; uint32."""
    values = _VALUES[kind].take(np.ascontiguousarray(bits).view(np.uint8))
    if relu:
        values = np.where(values <= 0, np.float32(0), values)
    return half_from_f32(values, "f16").view(np.uint32)


def fp8_pack(a, b, kind: str, relu: bool):
    """Compute cvt.rn.satfinite: float32 a and b to two bytes, a the upper; uint16. Saturates to the largest number."""
    a, b = np.broadcast_arrays(a, b)
    return (_code(a, kind, relu).astype(np.uint16) << 8) | _code(b, kind, relu)


def _code(a, kind: str, relu: bool):
    """Encode the nearest number, ties to even: divide by the unit of its binade and round to an integer."""
    fraction_bits, bias, largest = _FORMATS[kind]
    a = a.astype(np.float64)
    if relu:
        a = np.where(a <= 0, 0.0, a)
    size = np.minimum(np.abs(a), largest)
    exponent = np.where(size == 0, 1 - bias, np.maximum(np.frexp(size)[1] - 1, 1 - bias))
    steps = np.rint(np.ldexp(size, fraction_bits - exponent))
    # Codes are consecutive across binades, so a carry out of the fraction needs no care.
    code = np.where(a != a, 0, steps + (exponent - (1 - bias)) * 2.0**fraction_bits).astype(np.int64)
    code = code | np.where(np.signbit(a), 0x80, 0)
    return np.where(a != a, 0x7F, code).astype(np.uint8)
