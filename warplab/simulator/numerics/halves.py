"""float16 and bfloat16, on whole arrays of their bits (uint16); behind them pairs of floats of 8, 6 and 4 bits and of
the scales ue8m0, which only cvt supports: a pair lies in two bytes, one of e2m1 in the halves of one byte.

Both are computed in float32 or float64 and narrowed. That rounds twice, which is harmless where the wider type has at
least 2p + 2 bits for a sum, product or quotient of p-bit numbers (Figueroa, "When is double rounding innocuous?",
1995): float32 has 24 for the 11 of float16 and the 8 of bfloat16. A product of two bfloat16 may be too small for
float32 and is taken in float64, where it is exact, and so is that of an fma, whose sum is rounded to odd first.
"""

import ml_dtypes
import numpy as np
from ml_dtypes import bfloat16

from warplab.simulator.numerics.rounding import (
    canonical,
    flush_f32,
    maximum,
    maximum_nan,
    minimum,
    minimum_nan,
    narrow,
    odd_sum,
    saturate,
    xor_sign,
)

OUTSIDE = np.uint16(0x7FF7)  # what TMA puts outside a tensor whose map asks for NaN, as seen on an H100
_NAN = np.uint16(0x7FFF)  # what every instruction on halves returns for NaN (recorded)


def half_to_f32(bits, kind: str, ftz: bool = False):
    """Convert uint16 bits to float32, exactly; `ftz` turns subnormal float16 into zeros."""
    if kind == "bf16":  # also of NaN
        return (bits.astype(np.uint32) << 16).view(np.float32)
    a = canonical(bits.view(np.float16).astype(np.float32))
    return _flushed(a) if ftz else a


def half_from_f32(a, kind: str, rounding: str = "rn"):
    """Convert float32 to uint16 bits."""
    bits = narrow(a, a.astype(np.float16 if kind == "f16" else bfloat16), rounding).view(np.uint16)
    return np.where(a != a, _NAN, bits) if np.isnan(a).any() else bits


def half_from_f64(a, kind: str, rounding: str = "rn"):
    """Convert float64 to uint16 bits, rounded once."""
    return half_from_f32(_odd_f32(a), kind, rounding)


def half_of_f64(a, kind: str, rounding: str):
    """Compute cvt from f64: NaN keeps its sign and the top of its payload (recorded)."""
    bits = half_from_f64(a, kind, rounding)
    nan = a != a
    if not nan.any():
        return bits
    wide = a.view(np.uint64)
    quiet, shift = (0x7E00, 42) if kind == "f16" else (0x7FC0, 45)
    kept = (wide >> np.uint64(48) & 0x8000) | (wide >> np.uint64(shift) & (quiet & -quiet) - 1) | quiet
    return np.where(nan, kept.astype(np.uint16), bits)


def _odd_f32(a):
    """Convert float64 to float32, rounded to odd."""
    near = a.astype(np.float32)
    back = near.astype(np.float64)
    inexact = (back != a) & (a == a)
    if not inexact.any():
        return near
    bits = near.view(np.int32)
    bits = bits - (np.abs(back) > np.abs(a))  # towards zero
    return (bits.astype(np.int32) | inexact).view(np.float32)


def _flushed(a, exact: bool = False):
    """Return float16 values in a wider type with float16's subnormals as zero (.ftz).

    `exact`: not rounded yet. What 11 bits with any exponent would round up to 2**-14 is not flushed (recorded).
    """
    smallest = 2.0**-14 * (1 - 2.0**-12) if exact else 2.0**-14
    return np.where(np.abs(a) < smallest, np.copysign(a.dtype.type(0), a), a)


def half_clamped(bits, kind: str, clamp: str, ftz: bool = False):
    """Apply .ftz, .sat (to 0…1, NaN to 0) or .relu (negative to 0) to a result."""
    if not (clamp or ftz):
        return bits
    a = half_to_f32(bits, kind, ftz)
    if clamp == "sat":
        a = saturate(a)
    elif clamp == "relu":
        a = np.where(a <= 0, np.float32(0), a)
    return half_from_f32(a, kind)


def half_arithmetic(operation: str, kind: str, ftz: bool, clamp: str, *operands):
    """Compute add, sub, mul, neg and abs, rounded to nearest."""
    wide = [half_to_f32(o, kind, ftz) for o in operands]
    if operation == "mul":
        exact = np.multiply(*wide, dtype=np.float64)
        return half_clamped(half_from_f64(_flushed(exact, True) if ftz else exact, kind), kind, clamp)
    function = {"add": np.add, "sub": np.subtract, "neg": np.negative, "abs": np.abs}[operation]
    return half_clamped(half_from_f32(function(*wide), kind), kind, clamp, ftz)


def half_fma(kind: str, ftz: bool, clamp: str, a, b, c):
    """Return a·b + c, rounded to nearest once."""
    a, b, c = (half_to_f32(x, kind, ftz) for x in (a, b, c))
    exact = odd_sum(np.multiply(a, b, dtype=np.float64), c.astype(np.float64))
    return half_clamped(half_from_f64(_flushed(exact, True) if ftz else exact, kind), kind, clamp)


def half_fma_oob(kind: str, ftz: bool, clamp: str, a, b, c):
    """Return a·b + c, 0 where an operand is the NaN that TMA puts outside a tensor (.oob)."""
    outside = (a == OUTSIDE) | (b == OUTSIDE) | (c == OUTSIDE)
    return np.where(outside, np.uint16(0), half_fma(kind, ftz, clamp, a, b, c))


def half_least(operation: str, kind: str, ftz: bool, nan: bool, xorsign: bool, a, b):
    """Compute min, max. `nan`: NaN if either is NaN. `xorsign`: of the magnitudes, with the product of the signs."""
    a, b = (half_to_f32(x, kind, ftz) for x in (a, b))
    function = {
        ("min", False): minimum,
        ("max", False): maximum,
        ("min", True): minimum_nan,
        ("max", True): maximum_nan,
    }[operation, nan]
    result = function(np.abs(a), np.abs(b)) if xorsign else function(a, b)
    return half_from_f32(xor_sign(a, b, result) if xorsign else result, kind)


def half_special(operation: str, kind: str, ftz: bool, a):
    """Compute ex2.approx, tanh.approx: the float32 result, cut to a half, as on an H100 for all but a few inputs."""
    x = half_to_f32(a, kind, ftz)
    if operation == "tanh":
        result = np.tanh(x.astype(np.float64)).astype(np.float32)
        size = np.abs(x)
        result = np.where(size < 2.0**-8, x, np.where(size >= 8, np.sign(x), result))
    else:
        result = np.exp2(x.astype(np.float64)).astype(np.float32)
        result = np.where(np.abs(x) < 2.0**-23, np.float32(1), result)
        result = flush_f32(result) if ftz else result
    if kind == "f16":
        result = np.where(result >= 2.0**16, np.float32(np.inf), result)
        return half_clamped(half_from_f32(result, kind, "rz"), kind, "", ftz)
    return half_from_f32(result, kind, "rz")


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
