"""The vector product's kernels by name, and `multiply`, which checks the arrays, chooses the grid and launches."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpcourse.bench.device_arguments import check_array
from warpcourse.bench.lab_kernels import Kernel, Sources, by_name, choose

SOURCES = Sources(__package__)
CUDA, NUMBA = "vector_multiply.cu", "numba_kernels.py"
BLOCK = 256  # threads per block
MAX_BLOCK = 1024
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


def multiply(a: Any, b: Any, out: Any, kernel: str = "cuda_float4", *, block: int = BLOCK, blocks: int | None = None):
    """Compute out[i] = a[i] * b[i] on the GPU; return `out` at once, before the kernel has finished.

    `a`, `b`, `out`: device arrays (CuPy or Numba), float32, of one shape, C-contiguous. `out` may be `a` or
    `b`, but may not overlap them otherwise. The float4 kernel needs addresses that are multiples of 16.
    `kernel`: a name in KERNELS. `block`: threads per block, 1 to 1024. `blocks`: the grid; None takes the
    kernel's own choice (only the grid-stride kernels are right with fewer blocks than cover all elements).
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    chosen: ProductKernel = choose(KERNELS, kernel)
    if not 1 <= block <= MAX_BLOCK:
        raise ValueError(f"block is {block} threads; a block has 1 to {MAX_BLOCK}")
    check_arrays(a, b, out, chosen.alignment)
    if out.size == 0:
        return out  # a grid of no blocks is an invalid launch
    needed = chosen.blocks(out.size, block)
    if blocks is None:
        blocks = needed
    elif blocks < 1 or (blocks < needed and "grid_stride" not in chosen.name):
        raise ValueError(
            f"{blocks} blocks of {block} threads leave elements out: {kernel} needs {needed} for {out.size} "
            "elements; a grid-stride kernel works with any grid of one block or more"
        )
    chosen.launch(blocks, block, chosen.arguments(a, b, out))
    return out


def check_arrays(a: Any, b: Any, out: Any, alignment: int = 4) -> None:
    """Raise TypeError or ValueError, naming array and remedy, unless a kernel can take these arrays."""
    for name, array in (("a", a), ("b", b), ("out", out)):
        check_array(name, array, alignment=alignment)
        if tuple(array.shape) != tuple(out.shape):
            raise ValueError(f"{name} has shape {tuple(array.shape)} and out {tuple(out.shape)}; they must agree")
