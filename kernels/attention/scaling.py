"""The skeleton's kernels by name, and `scale`, which checks the arrays, chooses the grid and launches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from warpcourse.bench.device_arguments import check_array
from warpcourse.bench.lab_kernels import Kernel, Sources, by_name, choose

SOURCES = Sources(__package__)
KERNELS = by_name(
    Kernel("numba_scale", SOURCES, "numba_kernels.py", "scale"),
    Kernel("cuda_scale", SOURCES, "scale.cu", "scale"),
)
BLOCK = 256  # threads per block


def arguments(kernel: Kernel, x: Any, factor: float, out: Any) -> tuple:
    """Return what a kernel takes: Numba's arrays know their size, CUDA C++ needs the count as `size_t`."""
    given = (x, np.float32(factor), out)
    return given if kernel.language == "Numba" else (*given, np.uint64(out.size))


def blocks(n: int) -> int:
    """Return the blocks for n elements."""
    return math.ceil(n / BLOCK)


def scale(x: Any, factor: float, out: Any, kernel: str = "cuda_scale") -> Any:
    """out[i] = factor * x[i] on the GPU; return `out` at once, before the kernel has finished.

    `x`, `out`: device arrays (CuPy or Numba), float32, of one shape, C-contiguous. `kernel`: a name in KERNELS.
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    chosen = choose(KERNELS, kernel)
    check_array("x", x)
    check_array("out", out, tuple(x.shape))
    if out.size:  # a grid of no blocks is an invalid launch
        chosen.launch(blocks(out.size), BLOCK, arguments(chosen, x, factor, out))
    return out
