"""Pairs of floats of 8, 6 and 4 bits, and of the scales ue8m0, which only cvt supports.

A pair lies in two bytes; one of e2m1 in the halves of one byte.
"""

import ml_dtypes
import numpy as np

_TYPES = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
_MASKS = {"e2m3": 0x3F, "e3m2": 0x3F, "e2m1": 0x0F}
_NAN_CODES = {"e4m3": 0x7F, "e5m2": 0x7F, "e2m3": 0x1F, "e3m2": 0x1F, "e2m1": 0x07}  # the largest where there is none


def small_to_halves(bits, kind: str, relu: bool):
    """Compute cvt.rn.f16x2.e4m3x2 and the like: two numbers to two float16; uint32."""
    if kind == "e2m1":
        bits = np.stack([bits, bits >> np.uint8(4)], axis=-1)
    codes = np.ascontiguousarray(bits).view(np.uint8).reshape(-1) & np.uint8(_MASKS.get(kind, 0xFF))
    values = codes.view(_TYPES[kind]).astype(np.float16)
    if relu:
        values = np.where(values <= 0, np.float16(0), values)
    return np.where(np.isnan(values), np.uint16(0x7FFF), values.view(np.uint16)).view(np.uint32)


def small_pack(a, b, kind: str, relu: bool):
    """Compute cvt.rn.satfinite: float32 a and b to two numbers, a the upper; uint16, of e2m1 uint8. Saturates to the
    largest number."""
    a, b = np.broadcast_arrays(a, b)
    upper, lower = _code(a, kind, relu), _code(b, kind, relu)
    return upper << np.uint8(4) | lower if kind == "e2m1" else upper.astype(np.uint16) << 8 | lower


def _code(a, kind: str, relu: bool):
    largest = np.float32(ml_dtypes.finfo(_TYPES[kind]).max)
    code = np.clip(np.where(a <= 0, np.float32(0), a) if relu else a, -largest, largest)
    code = np.where(a != a, np.float32(0), code).astype(_TYPES[kind])
    return np.where(a != a, np.uint8(_NAN_CODES[kind]), code.view(np.uint8))


def scale_pack(a, b, rounding: str, saturates: bool):
    """Compute cvt.rz and cvt.rp to ue8m0x2: the powers of two next to |a| and |b|, those of float32; uint16."""
    a, b = np.broadcast_arrays(a, b)
    return _scale(a, rounding, saturates).astype(np.uint16) << 8 | _scale(b, rounding, saturates)


def _scale(a, rounding: str, saturates: bool):
    size = a.view(np.uint32) & np.uint32(0x7FFFFFFF)
    code = size >> np.uint32(23)
    if rounding == "rp":
        code += (size & np.uint32(0x7FFFFF) != 0) & (size > 0x00400000) & (size < 0x7F800000)
    if saturates:
        code = np.where(size <= 0x7F800000, np.minimum(code, np.uint32(0xFE)), code)
    return code.astype(np.uint8)


def scales_to_halves(bits):
    """Compute cvt.rn.bf16x2.ue8m0x2: powers of two as bfloat16; uint32."""
    code = np.ascontiguousarray(bits).view(np.uint8)
    wide = np.where(code == 0xFF, np.uint16(0x7FFF), code.astype(np.uint16) << 7)
    return np.where(code == 0, np.uint16(0x0040), wide).view(np.uint32)
