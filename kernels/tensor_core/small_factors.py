"""Numbers of bfloat16 and e4m3, which NumPy has not, as their bits: uint16 and uint8. For arrays of NumPy and CuPy."""

from __future__ import annotations

from typing import Any

import numpy as np


def values_of_e4m3() -> np.ndarray:
    """Return the numbers that 0 to 127 are bits of, float32, NaN for 127; 128 more are the same with a minus."""
    bits = np.arange(128)
    exponent, fraction = bits // 8, bits % 8 / 8
    values = np.where(exponent > 0, 1 + fraction, fraction) * 2.0 ** (np.maximum(exponent, 1) - 7)
    return np.where(bits == 127, np.nan, values).astype(np.float32)


def decoded(bits: Any, xp: Any = np) -> Any:
    """Return float32 of bits; floating-point numbers as they are. `xp`: NumPy or CuPy, whose array it is."""
    if bits.dtype == np.uint16:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if bits.dtype == np.uint8:
        values = values_of_e4m3()
        return xp.asarray(np.concatenate([values, -values]))[bits]
    return bits


def encoded(values: Any, kind: str, xp: Any = np) -> Any:
    """Return the bits of the nearest numbers of "bfloat16" or "e4m3", the largest for what is beyond; float16 numbers
    for "float16"."""
    if kind == "float16":
        return values.astype(np.float16)
    if kind == "bfloat16":
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    known = values_of_e4m3()[:127]
    nearest = xp.searchsorted(xp.asarray((known[1:] + known[:-1]) / 2), xp.abs(values).ravel()).reshape(values.shape)
    return (nearest + 128 * (values < 0)).astype(np.uint8)
