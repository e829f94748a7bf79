"""Helpers for code that computes with plain numbers in place of arrays (`translate.serial_loops`).

A float32 is a Python float of the same value. A NaN of float32 other than the GPU's own is a `_Nan`, which keeps its
bits: Python's conversions would change them.
"""

from __future__ import annotations

from math import nextafter
from struct import pack, unpack

import numpy as np

__all__ = [
    "INF",
    "NAN",
    "array_d",
    "array_f",
    "array_p",
    "bits_of_nan",
    "fma_of_f64",
    "nan_at",
    "nan_of_bits",
    "off_halfway",
    "scalar_d",
    "scalar_f",
    "scalar_p",
    "scalar_u",
]

INF = float("inf")
_CANONICAL = 0x7FFFFFFF
NAN = float(np.uint32(_CANONICAL).view(np.float32))  # canonical as float32, too
_SPLIT = 134217729.0  # 2**27 + 1 (Veltkamp)
_MORE, _LESS = 1 + 2.0**-52, 1 - 2.0**-52


class _Nan(float):
    """A NaN of float32 with its `bits`."""

    bits = _CANONICAL


def nan_of_bits(bits: int) -> float:
    """The float for a NaN with these bits of float32."""
    if bits == _CANONICAL:
        return NAN
    nan = _Nan("nan")
    nan.bits = bits
    return nan


def bits_of_nan(value: float) -> int:
    return value.bits if isinstance(value, _Nan) else _CANONICAL


def nan_at(view: memoryview, place: int) -> float:
    """The NaN at `place` of a view of float32."""
    return nan_of_bits(view.cast("B")[4 * place : 4 * place + 4].cast("I")[0])


def array_f(value: float):
    if value == value:
        return np.array([value], np.float32)
    return np.array([bits_of_nan(value)], np.uint32).view(np.float32)


def array_d(value: float):
    return np.array([value], np.float64)


def array_p(value: bool):
    return np.array([value], bool)


def scalar_u(array) -> int:
    return int(array[0])


def scalar_f(array) -> float:
    value = float(array[0])
    return value if value == value else nan_of_bits(int(np.ascontiguousarray(array).view(np.uint32)[0]))


def scalar_d(array) -> float:
    return float(array[0])


def scalar_p(array) -> bool:
    return bool(array[0])


def off_halfway(product: float, c: float, total: float) -> float:
    """`total`, the float64 sum of product and c, or its neighbour on the side of the exact sum if it is not exact."""
    virtual = total - product
    error = (product - (total - virtual)) + (c - virtual)
    return nextafter(total, INF if error > 0 else -INF) if error else total


def fma_of_f64(a: float, b: float, c: float) -> float | None:
    """a·b + c rounded once, in the steps of `fma.fma_f64`; None where a part over- or underflows, or is a NaN."""
    product = a * b
    size = abs(product)
    if not 2.0**-900 < size < 2.0**990:
        return product + c if (a == 0.0 or b == 0.0) and c - c == size else None
    high = a * _SPLIT
    a1 = high - (high - a)
    a2 = a - a1
    high = b * _SPLIT
    b1 = high - (high - b)
    b2 = b - b1
    low = a1 * b1 - product + a1 * b2 + a2 * b1 + a2 * b2
    total = product + c
    virtual = total - product
    error = (product - (total - virtual)) + (c - virtual)
    rest = error + low
    result = total + rest * _LESS
    if result == total + rest * _MORE:
        return result
    virtual = rest - error
    beyond = (error - (rest - virtual)) + (low - virtual)
    if beyond and rest and not unpack("<q", pack("<d", rest))[0] & 1:
        rest = nextafter(rest, INF if beyond > 0 else -INF)  # rounded to odd
    result = total + rest
    return result if result - result == 0.0 else None
