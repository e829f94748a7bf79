"""Arguments of the layers beside the convolution: checks, results, and the vectors that kernels load."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from warplab import cp
from warplab.bench.device_arguments import check_apart, check_array

TYPES = {"float16": "half", "float32": "float"}  # of elements, in CUDA C++
VECTOR_BYTES = 16
MOST_ELEMENTS = 2**31 - 2**12  # of an array: kernels count with 32 bits, also the threads beyond the last element


def check_inputs(**arrays: Any) -> Any:
    """The type of arrays that are on the device, without gaps, all float16 or all float32; raise for others."""
    (first, one), *others = arrays.items()
    check_array(first, one, dtype=tuple(TYPES))
    for name, array in others:
        check_array(name, array, dtype=tuple(TYPES))
        if array.dtype != one.dtype:
            raise ValueError(f"{first} is {one.dtype} and {name} {array.dtype}; all must be of one type: convert one")
    for name, array in arrays.items():
        if array.size > MOST_ELEMENTS:
            raise ValueError(f"{name} has {array.size:,} elements; the kernels count up to {MOST_ELEMENTS:,}")
    return np.dtype(one.dtype)


def result(out: Any, shape: tuple[int, ...], dtype: Any, name: str = "out", /, **inputs: Any) -> Any:
    """`out` if it can take the result and overlaps none of the inputs, a new array if it is None; raise otherwise."""
    if math.prod(shape) > MOST_ELEMENTS:
        raise ValueError(f"the result, of shape {shape}, has more than {MOST_ELEMENTS:,} elements; take fewer images")
    if out is None:
        return cp.empty(shape, dtype)
    check_array(name, out, tuple(shape), dtype=dtype)
    for given, array in inputs.items():
        check_apart(given, array, out)
    return out


def address(*arrays: Any) -> int:
    """The bitwise or of the addresses of device arrays; None has none, and NumPy's arrays are yet to be copied."""
    found = 0
    for array in arrays:
        interface = getattr(array, "__cuda_array_interface__", None)
        found |= interface["data"][0] if interface else 0
    return found


def vector(dtype: Any, length: int, *arrays: Any) -> int:
    """Elements that a load of 16 bytes brings, if they divide `length` and all arrays begin at multiples; else 1."""
    wide = VECTOR_BYTES // np.dtype(dtype).itemsize
    return wide if length % wide == 0 and address(*arrays) % VECTOR_BYTES == 0 else 1


def instance(kernel: str, dtype: Any, *parameters: Any) -> str:
    """A template's instance as CUDA C++ writes it: of "f", np.float16, True and 8 "f<half, true, 8>"."""
    written = (str(p).lower() if isinstance(p, bool) else str(p) for p in parameters)
    return f"{kernel}<{', '.join((TYPES[np.dtype(dtype).name], *written))}>"
