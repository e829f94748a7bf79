"""Transpose of a float32 matrix of any shape: six steps in CUDA C++ and Numba, and `transpose`, which checks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.memory_access.sources import FLOAT4_BYTES, NUMBA, SOURCES, dimensions
from warpcourse.bench.device_arguments import check_apart, check_array
from warpcourse.bench.lab_kernels import Kernel, by_name, choose

MAX_GRID_Y = 65535


@dataclass(frozen=True)
class Transpose(Kernel):
    """A kernel, and how to launch it.

    `tile`: (columns, rows) of the input that a block moves. `block`: threads. `flat`: the grid has one dimension.
    `multiple`: what rows and columns must be multiples of.
    """

    tile: tuple[int, int] = (32, 32)
    block: tuple[int, ...] = (32, 8)
    flat: bool = False
    multiple: int = 1

    def grid(self, rows: int, columns: int) -> tuple[int, ...]:
        across, down = math.ceil(columns / self.tile[0]), math.ceil(rows / self.tile[1])
        return (across * down,) if self.flat else (across, down)

    def arguments(self, a: Any, out: Any) -> tuple:
        """Return what the kernel takes: Numba's arrays know their shape, CUDA C++ needs rows and columns as `int`."""
        return (a, out) if self.language == "Numba" else (a, out, *map(np.int32, a.shape))

    def queue(self, a: Any, out: Any) -> None:
        """Launch without any check."""
        self.launch(self.grid(*a.shape), self.block, self.arguments(a, out))


def _cuda(step: str, **how: Any) -> Transpose:
    return Transpose(f"cuda_{step}", SOURCES, "transpose.cu", f"transpose_{step}", **how)


def _numba(step: str, **how: Any) -> Transpose:
    return Transpose(f"numba_{step}", SOURCES, NUMBA, f"transpose_{step}", **how)


_LARGE = {"tile": (64, 64), "block": (256,), "flat": True}
TRANSPOSES = by_name(
    _numba("naive", tile=(32, 8)),
    _numba("tile"),
    _numba("padded"),
    _cuda("naive", tile=(32, 8)),
    _cuda("tile"),
    _cuda("padded"),
    _cuda("swizzled"),
    _cuda("large", **_LARGE),
    _cuda("float4", **_LARGE, multiple=4, alignment=FLOAT4_BYTES),
)


def fastest(a: Any, out: Any) -> str:
    """Return the name of the fastest kernel that can take these arrays."""
    kernel = TRANSPOSES["cuda_float4"]
    fits = all(n % kernel.multiple == 0 for n in a.shape) and all(
        x.__cuda_array_interface__["data"][0] % kernel.alignment == 0 for x in (a, out)
    )
    return kernel.name if fits else "cuda_large"


def transpose(a: Any, out: Any, kernel: str | None = None) -> Any:
    """Compute out[x, y] = a[y, x] on the GPU; return `out` at once, before the kernel has finished.

    `a`: device array (CuPy or Numba), float32, C-contiguous, of shape (rows, columns); `out`: likewise, of shape
    (columns, rows), without overlap with `a`. `kernel`: a name in TRANSPOSES; None takes the fastest that can.
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    rows, columns = dimensions(a, "a", 2)
    if kernel is None:
        check_array("a", a)
        check_array("out", out, (columns, rows))
        kernel = fastest(a, out)
    chosen = choose(TRANSPOSES, kernel)
    if rows % chosen.multiple or columns % chosen.multiple:
        raise ValueError(
            f"a has shape {(rows, columns)}; {kernel} needs multiples of {chosen.multiple}, cuda_large takes any"
        )
    check_array("a", a, alignment=chosen.alignment)
    check_array("out", out, (columns, rows), alignment=chosen.alignment)
    if rows == 0 or columns == 0:
        return out  # a grid of no blocks is an invalid launch
    check_apart("a", a, out)
    grid = chosen.grid(rows, columns)
    if len(grid) > 1 and grid[1] > MAX_GRID_Y:
        raise ValueError(
            f"a has {rows:,} rows; {kernel} needs a grid of {grid[1]:,} blocks in y, and {MAX_GRID_Y:,} is the most: "
            "take cuda_large"
        )
    chosen.queue(a, out)
    return out
