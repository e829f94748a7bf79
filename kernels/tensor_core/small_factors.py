"""Numbers of bfloat16 and e4m3 as their bits, uint16 and uint8, for arrays of NumPy and CuPy."""

from typing import Any

import ml_dtypes
import numpy as np

# The number of each byte, NaN for 127 and 255.
E4M3 = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)


def decoded(bits: Any, xp: Any = np) -> Any:
    """Return float32 of bits; floating-point numbers as they are. `xp`: NumPy or CuPy, whose array it is."""
    if bits.dtype == np.uint16:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if bits.dtype == np.uint8:
        return xp.asarray(E4M3)[bits]
    return bits


def encoded(values: Any, kind: str, xp: Any = np) -> Any:
    """Return the bits of the nearest numbers of "bfloat16" or "e4m3", the largest for what is beyond; float16 numbers
    for "float16"."""
    if kind == "float16":
        return values.astype(np.float16)
    if kind == "bfloat16":
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    known = E4M3[:127]
    nearest = xp.searchsorted(xp.asarray((known[1:] + known[:-1]) / 2), xp.abs(values).ravel()).reshape(values.shape)
    return (nearest + 128 * (values < 0)).astype(np.uint8)
