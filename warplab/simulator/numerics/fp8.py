"""Pairs of eight-bit floats (e4m3, e5m2), which only cvt supports."""

import ml_dtypes
import numpy as np

_TYPES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def fp8_to_halves(bits, kind: str, relu: bool):
    """Compute cvt.rn.f16x2.e4m3x2 and .e5m2x2: two bytes to two float16; uint32."""
    values = np.ascontiguousarray(bits).view(_TYPES[kind]).astype(np.float16)
    if relu:
        values = np.where(values <= 0, np.float16(0), values)
    return np.where(np.isnan(values), np.uint16(0x7FFF), values.view(np.uint16)).view(np.uint32)


def fp8_pack(a, b, kind: str, relu: bool):
    """Compute cvt.rn.satfinite: float32 a and b to two bytes, a the upper; uint16. Saturates to the largest number."""
    a, b = np.broadcast_arrays(a, b)
    return (_code(a, kind, relu).astype(np.uint16) << 8) | _code(b, kind, relu)


def _code(a, kind: str, relu: bool):
    largest = np.float32(ml_dtypes.finfo(_TYPES[kind]).max)
    code = np.clip(np.where(a <= 0, np.float32(0), a) if relu else a, -largest, largest).astype(_TYPES[kind])
    return np.where(a != a, np.uint8(0x7F), code.view(np.uint8))
