"""The kernels of bias + GELU by name; `forward` and `backward` check the arrays, choose the grid and launch."""

import math
from typing import Any

import numpy as np

from warpcourse.bench.device_arguments import check_array
from warpcourse.bench.lab_kernels import Kernel, Sources, by_name, choose

SOURCES = Sources(__package__)
_FILE = "bias_gelu.cu"
FORWARD = by_name(
    Kernel("numba", SOURCES, "numba_kernels.py", "bias_gelu"),
    Kernel("cuda", SOURCES, _FILE, "bias_gelu"),
    Kernel("cuda_float4", SOURCES, _FILE, "bias_gelu_float4", alignment=16),
)
BACKWARD = by_name(
    Kernel("numba", SOURCES, "numba_kernels.py", "bias_gelu_backward"),
    Kernel("cuda", SOURCES, _FILE, "bias_gelu_backward"),
    Kernel("cuda_float4", SOURCES, _FILE, "bias_gelu_backward_float4", alignment=16),
)
BLOCK = (32, 8)  # threads
ROWS_PER_BLOCK = 64
MOST_BLOCKS_Y = 65_535


def width(kernel: Kernel) -> int:
    """Return columns that one thread computes: 4 for float4, else 1."""
    return 4 if kernel.entry.endswith("float4") else 1


def layout(kernel: Kernel, rows: int, columns: int) -> tuple[tuple[int, int], int]:
    """Return ((blocks along the columns, blocks along the rows), rows per block): more rows each where the grid would
    be too high."""
    each = max(ROWS_PER_BLOCK, math.ceil(rows / MOST_BLOCKS_Y))
    return (math.ceil(columns / (32 * width(kernel))), math.ceil(rows / each)), each


def arguments(kernel: Kernel, *arrays: Any) -> tuple:
    """Return what a kernel takes after its arrays: Numba's know their shape, CUDA C++ needs rows and columns too."""
    rows, columns = arrays[0].shape
    _, each = layout(kernel, rows, columns)
    sizes = () if kernel.language == "Numba" else (np.int32(rows), np.int32(columns))
    return (*arrays, *sizes, np.int32(each))


def forward(x: Any, bias: Any, y: Any, kernel: str = "cuda") -> Any:
    """Compute y = gelu(x + bias) on the GPU; return `y` at once, before the kernel has finished.

    `x`, `y`: device arrays (CuPy or Numba), float32, shape (rows, columns), C-contiguous, both below 2^31. `bias`: the
    same, shape (columns,). `y` may be `x`. `kernel`: a name in FORWARD; "cuda_float4" takes columns that are a multiple
    of 4. Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    chosen = choose(FORWARD, kernel)
    _check(chosen, x, bias, {"y": y})
    _launch(chosen, x, bias, y)
    return y


def backward(x: Any, bias: Any, dy: Any, dx: Any, dbias: Any, kernel: str = "cuda") -> tuple[Any, Any]:
    """Compute dx = dy · gelu'(x + bias), dbias = the sums of dx over the rows; return both before it has finished.

    `x`, `dy`, `dx`: as `x` in `forward`; `bias`, `dbias`: as its `bias`. `dx` may be `x` or `dy`. What `dbias` holds
    before does not matter. `kernel`: a name in BACKWARD. Raise as `forward` does.
    """
    chosen = choose(BACKWARD, kernel)
    _check(chosen, x, bias, {"dy": dy, "dx": dx})
    check_array("dbias", dbias, (x.shape[1],))
    if dbias.__cuda_array_interface__["data"][0] == bias.__cuda_array_interface__["data"][0]:
        raise ValueError("dbias is bias itself, which the kernel reads; give dbias memory of its own")
    dbias[:] = 0
    _launch(chosen, x, bias, dy, dx, dbias)
    return dx, dbias


def _check(kernel: Kernel, x: Any, bias: Any, others: dict[str, Any]) -> None:
    check_array("x", x, (None, None), alignment=kernel.alignment)
    rows, columns = x.shape
    if max(rows, columns) >= 2**31:
        raise ValueError(f"x has shape {tuple(x.shape)}; the kernels count rows and columns with 32 bits")
    if columns % width(kernel):
        raise ValueError(
            f"x has {columns} columns; {kernel.name} takes a multiple of {width(kernel)}. Choose the kernel 'cuda'"
        )
    check_array("bias", bias, (columns,), alignment=kernel.alignment)
    for name, array in others.items():
        check_array(name, array, (rows, columns), alignment=kernel.alignment)


def _launch(kernel: Kernel, x: Any, *arrays: Any) -> None:
    rows, columns = x.shape
    if rows and columns:  # a grid of no blocks is an invalid launch
        kernel.launch(layout(kernel, rows, columns)[0], BLOCK, arguments(kernel, x, *arrays))
