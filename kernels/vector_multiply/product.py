"""The vector product's kernels by name, each with its grid."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpcourse.bench.lab_kernels import Kernel, Sources, by_name

SOURCES = Sources(__package__)
CUDA, NUMBA = "vector_multiply.cu", "numba_kernels.py"
BLOCK = 256  # threads per block
FLOAT4_BYTES = 16


@dataclass(frozen=True)
class ProductKernel(Kernel):
    """A kernel and its grid. `blocks(n, block)`: blocks that n elements need, with `block` threads each."""

    blocks: Callable[[int, int], int] = lambda n, block: math.ceil(n / block)

    def arguments(self, a: Any, b: Any, out: Any) -> tuple:
        """Return what the kernel takes: Numba's arrays know their size, CUDA C++ needs the count as `size_t`."""
        return (a, b, out) if self.language == "Numba" else (a, b, out, np.uint64(out.size))


def _one_thread_per_float4(n: int, block: int) -> int:
    return math.ceil((n // 4 + n % 4) / block)


def _limited(n: int, block: int) -> int:
    return min(math.ceil(n / block), GRID_STRIDE_BLOCKS)


GRID_STRIDE_BLOCKS = 132 * 128  # the fastest of grid_sizes() in measurements.py on the H100's 132 multiprocessors
KERNELS = by_name(
    ProductKernel("numba_scalar", SOURCES, NUMBA, "multiply_scalar"),
    ProductKernel("numba_grid_stride", SOURCES, NUMBA, "multiply_grid_stride", blocks=_limited),
    ProductKernel("cuda_scalar", SOURCES, CUDA, "multiply_scalar"),
    ProductKernel("cuda_grid_stride", SOURCES, CUDA, "multiply_grid_stride", blocks=_limited),
    ProductKernel("cuda_float4", SOURCES, CUDA, "multiply_float4", FLOAT4_BYTES, blocks=_one_thread_per_float4),
)
