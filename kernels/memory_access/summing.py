"""Sum of a float32 vector of any length: six steps in CUDA C++ and Numba, and `total`, which checks."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.memory_access.sources import BLOCK, FLOAT4_BYTES, NUMBA, SOURCES
from warpcourse.bench.device_arguments import check_array
from warpcourse.bench.lab_kernels import Kernel, by_name, choose
from warplab import cp

WIDE = 512  # threads per block of sum_float4
WIDE_TILE = WIDE * 8 * 4  # elements that its blocks take at a time
MOST_BLOCKS = 132 * 64  # of a grid-stride loop; 64 a multiprocessor of an H100, the fastest of 4 to 64 for sum_float4


@dataclass(frozen=True)
class Sum(Kernel):
    """A kernel, and how to launch it. `blocks(n)`: the grid for n elements. `atomic`: one launch gives the sum."""

    blocks: Callable[[int], int] = lambda n: math.ceil(n / BLOCK)
    block: int = BLOCK
    atomic: bool = False

    def arguments(self, a: Any, out: Any) -> tuple:
        """Return what the kernel takes: Numba's arrays know their size, CUDA C++ needs the count as `size_t`."""
        return (a, out) if self.language == "Numba" else (a, out, np.uint64(a.size))

    def passes(self, a: Any, out: Any, convert: Callable[[Any], Any] = lambda x: x) -> list[tuple[Any, Any, int]]:
        """Return (from, to, blocks) of every launch; with one sum per block, arrays for these are allocated.

        `convert` is applied to them. `a` has at least one element.
        """
        result = []
        while True:
            blocks = self.blocks(a.size)
            last = self.atomic or blocks == 1
            to = out if last else convert(cp.empty(blocks, np.float32))
            result.append((a, to, blocks))
            if last:
                return result
            a = to

    def queue(self, passes: list[tuple[Any, Any, int]], zero: Callable[[], Any]) -> None:
        """Launch without any check. `zero()` sets the result to zero, for kernels that add to it."""
        if self.atomic:
            zero()
        for a, out, blocks in passes:
            self.launch((blocks,), (self.block,), self.arguments(a, out))


def _grid_stride(n: int) -> int:
    return min(math.ceil(n / BLOCK), MOST_BLOCKS)


def _float4(n: int) -> int:
    return max(1, min(n // WIDE_TILE, MOST_BLOCKS))


def _cuda(step: str, **how: Any) -> Sum:
    return Sum(f"cuda_{step}", SOURCES, "reduction.cu", f"sum_{step}", **how)


def _numba(step: str, **how: Any) -> Sum:
    return Sum(f"numba_{step}", SOURCES, NUMBA, f"sum_{step}", **how)


SUMS = by_name(
    _numba("interleaved"),
    _numba("sequential"),
    _numba("shuffle"),
    _numba("grid_stride", blocks=_grid_stride, atomic=True),
    _cuda("interleaved"),
    _cuda("sequential"),
    _cuda("shuffle"),
    _cuda("atomic", atomic=True),
    _cuda("grid_stride", blocks=_grid_stride, atomic=True),
    _cuda("float4", blocks=_float4, block=WIDE, atomic=True, alignment=FLOAT4_BYTES),
)


def total(a: Any, kernel: str = "cuda_float4") -> Any:
    """Return the sum of `a` on the GPU, as a device array of shape (1,); returns before the kernel has finished.

    `a`: device array (CuPy or Numba) of one dimension, float32, C-contiguous; for cuda_float4 its address is a multiple
    of 16. `kernel`: a name in SUMS. The rounding of the kernels that end in atomics differs from run to run.
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    chosen = choose(SUMS, kernel)
    check_array("a", a, alignment=chosen.alignment)
    if len(a.shape) != 1:
        raise ValueError(f"a has {len(a.shape)} dimensions; it must have one: a.ravel()")
    out = cp.empty(1, np.float32)
    if a.size == 0:
        out.fill(0)  # a grid of no blocks is an invalid launch
        return out
    chosen.queue(chosen.passes(a, out), lambda: out.fill(0))
    return out
