"""Host code of vector multiply: loads the kernels, checks the arrays, chooses the grid, launches."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warplab import cp
from warplab.bench.device_arguments import check_array

SOURCE = Path(__file__).with_name("vector_multiply.cu")
BLOCK = 256  # threads a block
MAX_BLOCK = 1024
FLOAT4_BYTES = 16


@dataclass(frozen=True)
class Kernel:
    """One kernel and how to launch it on `n` elements.

    `name`: unique, such as "cuda_float4". `language`: "CUDA C++" or "Numba". `entry`: the function's name.
    `blocks(n, block)`: blocks that a launch needs, with `block` threads each.
    `alignment`: bytes that the arrays' addresses must be a multiple of.
    """

    name: str
    language: str
    entry: str
    blocks: Callable[[int, int], int]
    alignment: int = 4

    def function(self) -> Any:
        """The compiled kernel: a CuPy function (CUDA C++) or a Numba dispatcher, of the active backend."""
        return _function(self.language, self.entry)

    def arguments(self, a: Any, b: Any, out: Any) -> tuple:
        """What the kernel takes: Numba's arrays know their size, CUDA C++ needs the count as `size_t`."""
        return (a, b, out) if self.language == "Numba" else (a, b, out, np.uint64(out.size))

    def launch(self, arguments: tuple, blocks: int, block: int = BLOCK) -> None:
        """Launches without any check; returns before the kernel has finished."""
        if self.language == "Numba":
            self.function()[blocks, block](*arguments)
        else:
            self.function()((blocks,), (block,), arguments)


def _one_thread_an_element(n: int, block: int) -> int:
    return math.ceil(n / block)


def _one_thread_a_float4(n: int, block: int) -> int:
    return math.ceil((n // 4 + n % 4) / block)


def _limited(n: int, block: int) -> int:
    return min(math.ceil(n / block), GRID_STRIDE_BLOCKS)


GRID_STRIDE_BLOCKS = 132 * 128  # the fastest of grid_sizes() in measurements.py on the H100's 132 multiprocessors
KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("numba_scalar", "Numba", "multiply_scalar", _one_thread_an_element),
        Kernel("numba_grid_stride", "Numba", "multiply_grid_stride", _limited),
        Kernel("cuda_scalar", "CUDA C++", "multiply_scalar", _one_thread_an_element),
        Kernel("cuda_grid_stride", "CUDA C++", "multiply_grid_stride", _limited),
        Kernel("cuda_float4", "CUDA C++", "multiply_float4", _one_thread_a_float4, FLOAT4_BYTES),
    )
}


@functools.cache
def _function(language: str, entry: str) -> Any:
    if language == "Numba":
        from kernels.vector_multiply import numba_kernels

        return getattr(numba_kernels, entry)
    return _module().get_function(entry)


@functools.cache
def _module() -> Any:
    return cp.RawModule(code=SOURCE.read_text(), options=("-lineinfo",))


def multiply(a: Any, b: Any, out: Any, kernel: str = "cuda_float4", *, block: int = BLOCK, blocks: int | None = None):
    """out[i] = a[i] * b[i] on the GPU; returns `out` at once, before the kernel has finished.

    `a`, `b`, `out`: device arrays (CuPy or Numba), float32, of one shape, C-contiguous. `out` may be `a` or
    `b`, but may not overlap them otherwise. The float4 kernel needs addresses that are multiples of 16.
    `kernel`: a name in KERNELS. `block`: threads a block, 1 to 1024. `blocks`: the grid; None takes the
    kernel's own choice (only the grid-stride kernels are right with fewer blocks than cover all elements).
    Raises TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    if kernel not in KERNELS:
        raise ValueError(f"there is no kernel {kernel!r}; choose one of {', '.join(KERNELS)}")
    chosen = KERNELS[kernel]
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
    chosen.launch(chosen.arguments(a, b, out), blocks, block)
    return out


def check_arrays(a: Any, b: Any, out: Any, alignment: int = 4) -> None:
    """Raises TypeError or ValueError, naming array and remedy, unless a kernel can take these arrays."""
    for name, array in (("a", a), ("b", b), ("out", out)):
        check_array(name, array, alignment=alignment)
        if tuple(array.shape) != tuple(out.shape):
            raise ValueError(f"{name} has shape {tuple(array.shape)} and out {tuple(out.shape)}; they must agree")
