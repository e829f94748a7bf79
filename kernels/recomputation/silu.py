"""SiLU's kernels by name, and `forward` and `backward`, which check the arrays, choose the grid and launch."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from warpcourse.bench.device_arguments import check_array
from warpcourse.bench.lab_kernels import Kernel, Sources, by_name, choose

ENTRIES = ("silu", "silu_backward", "silu_storing", "silu_storing_backward")
_FILE = "silu.cu"
SOURCES = Sources(__package__, templates={_FILE: [f"{entry}<{width}>" for entry in ENTRIES for width in (1, 4)]})
BLOCK = 256  # threads per block
# Arrays of n float32 that each kernel reads and writes, in the order of its arguments.
MOVED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "silu": (("x",), ("y",)),
        "silu_backward": (("dy", "x"), ("dx",)),
        "silu_storing": (("x",), ("y", "s")),
        "silu_storing_backward": (("dy", "x", "s"), ("dx",)),
    }
)


def _variants(entry: str) -> dict[str, Kernel]:
    return by_name(
        Kernel("numba", SOURCES, "numba_kernels.py", entry),
        Kernel("cuda", SOURCES, _FILE, f"{entry}<1>"),
        Kernel("cuda_float4", SOURCES, _FILE, f"{entry}<4>", alignment=16),
    )


KERNELS: Mapping[str, dict[str, Kernel]] = MappingProxyType({entry: _variants(entry) for entry in ENTRIES})


def nbytes(entry: str, n: int) -> int:
    """Return bytes that a kernel of `ENTRIES` must read and write for n elements."""
    return 4 * n * sum(map(len, MOVED[entry]))


def arguments(kernel: Kernel, *arrays: Any) -> tuple:
    """Return what a kernel takes: Numba's arrays know their size, CUDA C++ needs the count as `size_t`."""
    return arrays if kernel.language == "Numba" else (*arrays, np.uint64(arrays[0].size))


def blocks(kernel: Kernel, n: int) -> int:
    """Return blocks for n elements."""
    return math.ceil(n / (BLOCK * (4 if kernel.entry.endswith("<4>") else 1)))


def forward(x: Any, y: Any, s: Any = None, kernel: str = "cuda") -> Any:
    """Compute y = x · sigmoid(x) on the GPU; return `y` at once, before the kernel has finished.

    `x`, `y`: device arrays (CuPy or Numba), float32, of one shape, C-contiguous. `s`: one more, for sigmoid(x), if the
    backward pass shall read it; None if that computes it again. `kernel`: "numba", "cuda" or "cuda_float4".
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    _launch(
        "silu" if s is None else "silu_storing", kernel, {"x": x, "y": y} if s is None else {"x": x, "y": y, "s": s}
    )
    return y


def backward(dy: Any, x: Any, dx: Any, s: Any = None, kernel: str = "cuda") -> Any:
    """Compute dx = dy · silu'(x); return `dx` at once. `s`: what `forward` left there, or None to compute it again.

    Arrays, `kernel` and errors are as in `forward`; `dx` may be `dy`.
    """
    entry = "silu_backward" if s is None else "silu_storing_backward"
    _launch(entry, kernel, {"dy": dy, "x": x, **({} if s is None else {"s": s}), "dx": dx})
    return dx


def _launch(entry: str, kernel: str, arrays: dict[str, Any]) -> None:
    chosen = choose(KERNELS[entry], kernel)
    shape = tuple(next(iter(arrays.values())).shape)
    for name, array in arrays.items():
        check_array(name, array, shape, alignment=chosen.alignment)
    n = math.prod(shape)
    if n:  # a grid of no blocks is an invalid launch
        chosen.launch(blocks(chosen, n), BLOCK, arguments(chosen, *(a.reshape(-1) for a in arrays.values())))
