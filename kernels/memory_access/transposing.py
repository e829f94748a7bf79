"""Transpose of a float32 matrix of any shape: eight steps in CUDA C++ and Numba, and which is `fastest`."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.memory_access.sources import FLOAT4_BYTES, NUMBA, SOURCES
from warpcourse.bench.lab_kernels import Kernel, by_name

SECTOR = 8  # floats


@dataclass(frozen=True)
class Transpose(Kernel):
    """A kernel, and how to launch it.

    `tile`: (columns, rows) of the input that a block moves. `block`: threads. `flat`: the grid has one dimension.
    `multiple`: what rows and columns must be multiples of. `most_rows`: of the input.
    """

    tile: tuple[int, int] = (32, 32)
    block: tuple[int, ...] = (32, 8)
    flat: bool = False
    multiple: int = 1
    most_rows: int = 2**31 - 1

    def plan(self, rows: int, columns: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """Return the grid, sizes that the kernel takes beside rows and columns, and bytes of dynamic shared memory."""
        across, down = math.ceil(columns / self.tile[0]), math.ceil(rows / self.tile[1])
        return (across * down,) if self.flat else (across, down), (), 0

    def grid(self, rows: int, columns: int) -> tuple[int, ...]:
        return self.plan(rows, columns)[0]

    def arguments(self, a: Any, out: Any) -> tuple:
        """Return what the kernel takes: Numba's arrays know their shape, CUDA C++ needs rows and columns as `int`."""
        sizes = self.plan(*a.shape)[1]
        numbers = map(np.uint32 if sizes else np.int32, (*a.shape, *sizes))
        return (a, out) if self.language == "Numba" else (a, out, *numbers)

    def queue(self, a: Any, out: Any) -> None:
        """Launch without any check."""
        grid, _, shared_bytes = self.plan(*a.shape)
        self.launch(grid, self.block, self.arguments(a, out), shared_bytes)


class Sectors(Transpose):
    """The kernel for any shape."""

    def plan(self, rows: int, columns: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        high, most = _tile(rows, columns)
        wide = math.ceil(columns / math.ceil(columns / most))
        pitch, lines = wide | 1, high + SECTOR - 1
        grid = math.ceil((rows + SECTOR - 1) / high) * math.ceil(columns / wide)
        return (grid,), (high, wide, pitch), 4 * (lines * pitch + lines // 32)


def _tile(rows: int, columns: int) -> tuple[int, int]:
    """Return rows, a power of two, and at most how many columns a tile of `Sectors` has, by what was measured: few of
    a small matrix, so that it has many tiles."""
    elements = rows * columns
    if columns > 128:
        return (32, 32) if elements < 2**19 else (64, 64) if elements < 2**25 else (128, 64)
    most = 2200 if elements < 2**19 else 4400 if elements < 2**22 else 11000  # elements
    return 1 << max(5, (most // columns).bit_length() - 1), columns


class FewRows(Transpose):
    """The kernel whose tiles have all rows."""

    def plan(self, rows: int, columns: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        area = 10 if rows * columns < 2**18 else 11 if rows * columns < 2**22 else 13  # log2 of a tile's elements
        log_wide = max(5, area - (rows - 1).bit_length())
        words, log_pad = rows << log_wide, 31 if rows % 2 else 5
        return (math.ceil(columns / (1 << log_wide)),), (log_wide, log_pad), 4 * (words + (words >> log_pad))


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
    Sectors("cuda_sectors", SOURCES, "transpose.cu", "transpose_sectors", block=(256,)),
    FewRows("cuda_few_rows", SOURCES, "transpose.cu", "transpose_few_rows", FLOAT4_BYTES, block=(256,), most_rows=256),
)


def fastest(rows: int, columns: int, aligned: bool = True) -> str:
    """Return the name of the fastest kernel for a shape, by what was measured. `aligned`: both at multiples of 16."""
    if aligned and rows <= TRANSPOSES["cuda_few_rows"].most_rows:
        return "cuda_few_rows"
    cached = rows * columns < 2**23  # by the L2 cache, which puts sectors together in time
    whole = rows % (4 if cached else SECTOR) == columns % 4 == 0
    if aligned and whole and (columns >= 64 or rows * columns < 2**18):
        return "cuda_float4"
    if columns >= (12 if rows * columns < 2**18 else 40) and cached:
        return "cuda_large"
    return "cuda_sectors"
