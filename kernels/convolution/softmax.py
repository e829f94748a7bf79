"""Softmax over the last axis, forward and backward, by softmax.cu; as cuDNN's accurate algorithm computes it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernels.convolution.queued import Queued
from kernels.convolution.results import check_inputs, instance, result, vector

FILE = "softmax.cu"
ROWS = 4  # of a block of the warp's kernels
BLOCK = 256  # threads of the kernels for a row of any length
WIDE = 1024  # threads of a block that keeps a row in registers
OF_WARP = 1024  # columns that a warp keeps in registers
OF_THREAD = 8  # vectors of a row that a thread of such a block keeps


def softmax(x: Any, *, out: Any = None) -> Any:
    """exp(x − max) / Σ exp(x − max) along the last axis; return it at once, before the kernel has finished.

    `x`: device array, C-contiguous, float16 or float32, of one axis or more. `out`: of its shape and type; None
    allocates it. A row whose elements are all −∞, or with a NaN or +∞, is NaN.
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    dtype = check_inputs(x=x)
    _check_axes("x", x)
    out = result(out, tuple(x.shape), dtype, x=x)
    if x.size:  # a grid of no blocks is an invalid launch
        queued("softmax", dtype, (x, out)).launch()
    return out


def softmax_backward(y: Any, dy: Any, *, out: Any = None) -> Any:
    """The gradient of x, y · (dy − Σ dy · y), given y = softmax(x) and its gradient; otherwise like `softmax`."""
    dtype = check_inputs(y=y, dy=dy)
    _check_axes("y", y)
    result(dy, tuple(y.shape), dtype, "dy")
    out = result(out, tuple(y.shape), dtype, y=y, dy=dy)
    if y.size:
        queued("softmax_backward", dtype, (y, dy, out)).launch()
    return out


def _check_axes(name: str, array: Any) -> None:
    if not array.shape:
        raise ValueError(f"{name} is a single number; softmax is taken along an axis: give it one, with reshape(1)")


def per_lane(columns: int, vec: int) -> int:
    """Vectors of a row for each lane of a warp: the least power of two that is enough."""
    return _power_of_two(math.ceil(columns / (32 * vec)))


def _power_of_two(least: int) -> int:
    return 2 ** math.ceil(math.log2(least))


def queued(kernel: str, dtype: Any, arrays: tuple) -> Queued:
    """The launch of "softmax" or "softmax_backward" on arrays that are not empty."""
    columns = arrays[0].shape[-1]
    rows, vec = arrays[0].size // columns, vector(dtype, columns, *arrays)
    if columns <= OF_WARP:
        entry = instance(f"{kernel}_warp", dtype, vec, per_lane(columns, vec))
        numbers = np.int32(rows), np.int32(columns)
        return Queued(FILE, entry, math.ceil(rows / ROWS), 32 * ROWS, (*arrays, *numbers))
    entry, block = f"{kernel}_block" if kernel == "softmax_backward" else "softmax_any", BLOCK
    sizes: tuple[int, ...] = (vec,)
    if kernel == "softmax" and columns <= WIDE * vec * OF_THREAD:
        entry, block, sizes = "softmax_block", WIDE, (vec, _power_of_two(math.ceil(columns / (WIDE * vec))))
    return Queued(FILE, instance(entry, dtype, *sizes), rows, block, (*arrays, np.int32(columns)))
