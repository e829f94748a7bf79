"""`matmul`: C = A · B by any step of the ladder, with its arguments checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.matmul.steps import Step, step
from warplab import cp

MAX_GRID_Y = 65535
MAX_DEPTH = 2**24  # step 9 holds offsets within a tile in 32 bits


def matmul(a: Any, b: Any, out: Any = None, kernel: str = "tuned") -> Any:
    """A · B on the GPU; returns the result at once, before the kernel has finished.

    `a`: device array, float32, C-contiguous, of shape (m, k); `b`: likewise, of shape (k, n). `out`: likewise, of shape
    (m, n), without overlap with `a` or `b`; None allocates it. `kernel`: a name in STEPS. Products and sums are float32
    (fused multiply-add), so the error of an element grows with k.
    Raises TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    chosen = step(kernel)
    for name, array in (("a", a), ("b", b)):
        _check_array(name, array)
    (m, k), n = a.shape, b.shape[1]
    if b.shape[0] != k:
        raise ValueError(
            f"a has shape {tuple(a.shape)} and b {tuple(b.shape)}: the columns of a ({k}) must be as many as the rows "
            f"of b ({b.shape[0]})"
        )
    if out is None:
        out = cp.empty((m, n), np.float32)
    _check_array("out", out)
    if tuple(out.shape) != (m, n):
        raise ValueError(f"out has shape {tuple(out.shape)}; the product has {(m, n)}")
    for name, array in (("a", a), ("b", b)):
        _check_apart(name, array, out)
    if m == 0 or n == 0:
        return out  # a grid of no blocks is an invalid launch
    if k == 0:
        out.fill(0)
        return out
    _check_sizes(chosen, m, n, k)
    chosen.launch(a, b, out)
    return out


def _check_array(name: str, array: Any) -> None:
    """Raises TypeError or ValueError, naming array and remedy, unless a kernel can take this matrix."""
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"{name} is a {type(array).__name__} in host memory; copy it with cp.asarray({name})")
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    if dtype != np.float32:
        raise ValueError(f"{name} is {dtype}; the kernels take float32: {name}.astype(cp.float32)")
    if len(shape) != 2:
        raise ValueError(f"{name} has shape {shape}; it must be a matrix, of two axes")
    if max(shape) >= 2**31:
        raise ValueError(f"{name} has shape {shape}; the kernels count rows and columns with 32 bits")
    strides = interface.get("strides")
    if strides is not None:
        row, element = strides
        if (shape[1] > 1 and element != 4) or (shape[0] > 1 and row != 4 * shape[1]):
            raise ValueError(
                f"{name} is not in row-major order without gaps; copy it with cp.ascontiguousarray({name})"
            )


def _check_apart(name: str, array: Any, out: Any) -> None:
    """ValueError if out shares memory with an operand: blocks would read what others have written."""
    starts = [x.__cuda_array_interface__["data"][0] for x in (array, out)]
    if starts[0] < starts[1] + out.nbytes and starts[1] < starts[0] + array.nbytes:
        raise ValueError(f"{name} and out overlap; give out memory of its own")


def _check_sizes(chosen: Step, m: int, n: int, k: int) -> None:
    """ValueError for sizes that a kernel's grid or its 32-bit offsets do not reach."""
    if chosen.name == "tuned":
        if k >= MAX_DEPTH:
            raise ValueError(f"a has {k:,} columns; tuned takes fewer than {MAX_DEPTH:,}: take async_copies")
        return
    grid = chosen.grid(m, n)
    if grid[1] > MAX_GRID_Y:
        raise ValueError(
            f"a has {m:,} rows; {chosen.name} needs a grid of {grid[1]:,} blocks in y, and {MAX_GRID_Y:,} is the most: "
            "take tuned"
        )
