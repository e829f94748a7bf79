"""Launches of histogram.cu: counts of bytes, in six steps."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.warp_divergence.kernel_table import BLOCK, blocks, kernel
from warpcourse.bench.device_arguments import check_array
from warplab import cuda

BINS = 256
STEPS = ("global", "matched", "partition", "shared", "vector", "columns")
LARGE_BLOCK = 1024  # for kernels that loop: the fewer blocks, the fewer copies of the bins to add up


def plan(x: Any, bins: Any, name: str) -> Callable[[], None]:
    """Return a function that computes bins[v] = number of bytes v in x and returns before that has finished.

    `x`: CuPy array, uint8, of one axis and fewer than 2^32 elements. `bins`: the same, uint32 of shape (256,).
    `name`: "cuda_histogram_" and one of STEPS, or "numba_histogram_" and global, matched or shared.
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    chosen = kernel(name)
    check_array("x", x, (None,), dtype=np.uint8)
    check_array("bins", bins, (BINS,), dtype=np.uint32)
    if x.size >= 2**32:
        raise ValueError(f"x has {x.size} elements; counts of 32 bits hold fewer than 2^32")
    grid, block = shape(name, x.size)
    # Numba converts a CuPy array at every launch and waits for its stream; converting once avoids that.
    numba = chosen.language == "Numba"
    arguments = tuple(map(cuda.as_cuda_array, (x, bins))) if numba else (x, bins, np.uint64(x.size))

    def run() -> None:
        bins.fill(0)
        if x.size:
            chosen.launch(grid, block, arguments)

    return run


def shape(name: str, n: int) -> tuple[int, int]:
    """Return grid and block of a kernel for n elements: all elements at once, or as many blocks as run at a time."""
    chosen = kernel(name)
    if name.endswith(("global", "matched", "partition")):
        return blocks(n), BLOCK
    if chosen.language == "Numba":
        return min(blocks(n), 1056), BLOCK
    of_16 = blocks(n, 16) if name.endswith(("vector", "columns")) else n
    return max(1, min(blocks(of_16, LARGE_BLOCK), chosen.resident_blocks(LARGE_BLOCK))), LARGE_BLOCK
