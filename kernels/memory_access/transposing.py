"""Transpose of a float32 matrix of any shape: eight steps in CUDA C++ and Numba, and which is `fastest`."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.memory_access.sources import FLOAT4_BYTES, NUMBA, SOURCES
from warpcourse.bench.lab_kernels import Kernel, by_name

SECTOR = 8  # floats
HIGH, WIDE = 128, 61  # rows, and most columns, of a tile of `Sectors`: 64 words, of which up to 3 are before it
STRIP = 32  # rows that a warp stores of a column in one go


@dataclass(frozen=True)
class Transpose(Kernel):
    """A kernel, and how to launch it.

    `tile`: (columns, rows) of the input that a block moves. `block`: threads. `flat`: the grid has one dimension.
    `multiple`: what rows and columns must be multiples of. `most_rows`, `most_columns`: of the input.
    """

    tile: tuple[int, int] = (32, 32)
    block: tuple[int, ...] = (32, 8)
    flat: bool = False
    multiple: int = 1
    most_rows: int = 2**31 - 1
    most_columns: int = 2**31 - 1

    def takes(self, rows: int, columns: int) -> bool:
        """Return whether it is for a shape."""
        fits = rows <= self.most_rows and columns <= self.most_columns
        return fits and rows % self.multiple == columns % self.multiple == 0

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
        across = math.ceil(columns / WIDE)
        return (math.ceil((rows + SECTOR - 1) / HIGH) * across,), (math.ceil(columns / across),), 0


class FewColumns(Transpose):
    """The kernel whose tiles have all columns."""

    def plan(self, rows: int, columns: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        elements = 1024 if rows * columns < 2**19 else 2048 if rows * columns < 2**25 else 4096  # of a tile
        high = max(STRIP, elements // columns // STRIP * STRIP)
        words = (high + SECTOR - 1) * columns + 3  # the first chunk may begin before the tile
        return (math.ceil((rows + SECTOR - 1) / high),), (high,), 16 * math.ceil(words / 32) * 8


class FewRows(Transpose):
    """The kernel whose tiles have all rows."""

    def plan(self, rows: int, columns: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        area = 11 if rows * columns < 2**22 else 13  # log2 of a tile's elements
        log_wide = max(5, area - (rows - 1).bit_length())
        words, log_pad = rows << log_wide, 31 if rows % 2 else 5
        return (math.ceil(columns / (1 << log_wide)),), (log_wide, log_pad), 4 * (words + (words >> log_pad))


def _cuda(step: str, **how: Any) -> Transpose:
    return Transpose(f"cuda_{step}", SOURCES, "transpose.cu", f"transpose_{step}", **how)


def _numba(step: str, **how: Any) -> Transpose:
    return Transpose(f"numba_{step}", SOURCES, NUMBA, f"transpose_{step}", **how)


_STEP = SOURCES, "transpose.cu"
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
    Sectors("cuda_sectors", *_STEP, "transpose_sectors", FLOAT4_BYTES, block=(256,)),
    FewColumns("cuda_few_columns", *_STEP, "transpose_few_columns", FLOAT4_BYTES, block=(256,), most_columns=24),
    FewRows("cuda_few_rows", *_STEP, "transpose_few_rows", FLOAT4_BYTES, block=(256,), most_rows=256),
)


def fastest(rows: int, columns: int, aligned: bool = True) -> str:
    """Return the name of the fastest kernel for a shape, by what was measured. `aligned`: both at multiples of 16."""
    size = rows * columns
    if min(rows, columns) > 64 and size < 2**20:  # tiles of 64 × 64 leave multiprocessors without one
        return "cuda_padded"
    if aligned and rows <= TRANSPOSES["cuda_few_rows"].most_rows:
        return "cuda_few_rows"
    whole = rows % (4 if size < 2**23 else SECTOR) == columns % 4 == 0  # the L2 cache puts sectors together in time
    if aligned and whole and (columns >= 64 or size < 2**18):
        return "cuda_float4"
    if not aligned or (columns >= (25 if size < 2**18 else 40) and size < 2**20):
        return "cuda_large"
    return "cuda_few_columns" if columns <= TRANSPOSES["cuda_few_columns"].most_columns else "cuda_sectors"
