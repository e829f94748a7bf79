"""Lab 03's kernels by name, how they are compiled and loaded, and what all host code of the lab shares.

`KERNELS["cuda_branch"].function()` is a kernel of the active backend; `warplab.simulate` takes it too, with
`scheduling="pascal"` or "volta". Functions that check their arguments and launch are in `order`, `divergence`, `tasks`,
`primitives`, `histograms` and `selection`.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warplab import cp
from warplab.compile import headers
from warplab.hardware import backend

FOLDER = Path(__file__).parent
BLOCK = 256  # threads a block, where nothing asks for another number
MAX_BLOCK = 1024
WARP = 32
WAYS = (1, 2, 4, 8, 16, 32)
STEPS = tuple(range(1, 17))  # that condition<STEPS> is compiled for
PIPELINED_ITEMS = (24, 12)  # elements a thread of select_pipelined; the first whose two tiles fit
TYPES = {np.dtype(np.float32): "float", np.dtype(np.int32): "int"}  # that elements of a selection may have

# Further options of a file, and the instances of its templates.
_OPTIONS = {"tasks.cu": ("--fmad=false",)}
_TEMPLATES = {
    "paths.cu": [f"paths<{ways}>" for ways in WAYS],
    "predication.cu": [f"condition<{steps}>" for steps in STEPS],
    "append.cu": [f"{name}<{t}>" for name in ("append", "append_ballot", "append_coalesced") for t in TYPES.values()],
    "select.cu": [
        *(f"{name}<{t}>" for name in ("count_tiles", "write_tiles", "select_look_back") for t in TYPES.values()),
        *(f"select_pipelined<{t}, {items}>" for t in TYPES.values() for items in PIPELINED_ITEMS),
    ],
}


@dataclass(frozen=True)
class Kernel:
    """One kernel. `name`: unique, such as "cuda_branch" or "cuda_paths<4>". `file`: of CUDA C++, "" for Numba."""

    name: str
    entry: str
    file: str = ""

    @property
    def language(self) -> str:
        return "CUDA C++" if self.file else "Numba"

    def function(self) -> Any:
        """The compiled kernel: a CuPy function (CUDA C++) or a Numba dispatcher, of the active backend."""
        return _function(self.file, self.entry)

    def launch(self, grid: int | tuple, block: int | tuple, arguments: tuple, shared_bytes: int = 0) -> None:
        """Launches without any check; returns before the kernel has finished."""
        function = self.function()
        if not self.file:
            function[grid, block](*arguments)
            return
        if shared_bytes:
            function.max_dynamic_shared_size_bytes = shared_bytes
        function(_tuple(grid), _tuple(block), arguments, shared_mem=shared_bytes)


def _tuple(size: int | tuple) -> tuple:
    return size if isinstance(size, tuple) else (size,)


def _table() -> dict[str, Kernel]:
    cuda = {
        "order.cu": ("branch", "unordered", "ordered", "in_turn", "handshake"),
        "paths.cu": _TEMPLATES["paths.cu"],
        "predication.cu": _TEMPLATES["predication.cu"],
        "tasks.cu": (
            *("uneven", "collatz", "collatz_queue", "mandelbrot", "mandelbrot_queue"),
            *("row_sums_thread", "row_sums_warp"),
        ),
        "primitives.cu": ("warp_sums", "warp_scans"),
        "histogram.cu": tuple(
            f"histogram_{step}" for step in ("global", "matched", "partition", "shared", "vector", "columns")
        ),
        "append.cu": _TEMPLATES["append.cu"],
        "select.cu": (*_TEMPLATES["select.cu"], "scan_counts"),
    }
    numba = (
        *("ordered", "handshake", "two_paths", "uneven", "collatz", "row_sums_warp", "warp_sums", "warp_scans"),
        *("histogram_global", "histogram_matched", "histogram_shared", "append", "append_ballot"),
    )
    kernels = [Kernel(f"cuda_{entry}", entry, file) for file, entries in cuda.items() for entry in entries]
    return {kernel.name: kernel for kernel in kernels + [Kernel(f"numba_{entry}", entry) for entry in numba]}


KERNELS = _table()


def kernel(name: str) -> Kernel:
    """The kernel of that name; raises ValueError, naming those alike, if there is none."""
    if name not in KERNELS:
        alike = [known for known in KERNELS if _topic(known) == _topic(name)]
        raise ValueError(f"there is no kernel {name!r}; choose one of {', '.join(alike or KERNELS)}")
    return KERNELS[name]


def _topic(name: str) -> str:
    """The word after the language: "histogram" of "cuda_histogram_shared"."""
    return name.partition("_")[2].partition("_")[0].partition("<")[0]


@functools.cache
def _function(file: str, entry: str) -> Any:
    if not file:
        from kernels.warp_divergence import numba_kernels

        return getattr(numba_kernels, entry)
    return module(file).get_function(entry)


@functools.cache
def module(file: str) -> Any:
    """The compiled CUDA C++ of one file of this folder."""
    return cp.RawModule(
        code=(FOLDER / file).read_text(),
        options=options(file),
        name_expressions=tuple(_TEMPLATES.get(file, ())) or None,
    )


def options(file: str) -> tuple[str, ...]:
    """NVRTC's options for a file; cooperative groups need the folder of CUDA's headers."""
    headers = tuple(f"-I{folder}" for folder in headers.include_folders())
    return ("-std=c++17", "-lineinfo", *_OPTIONS.get(file, ()), *headers)


def blocks(threads: int, block: int = BLOCK) -> int:
    """Blocks of `block` threads that hold `threads` threads."""
    return math.ceil(threads / block)


def resident_blocks(chosen: Kernel, block: int, shared_bytes: int = 0) -> int:
    """How many blocks of a kernel the GPU runs at a time. On the simulator 4, so that loops have some rounds."""
    if backend.name() != "gpu":
        return 4
    import cupy

    function = chosen.function()
    if shared_bytes:
        function.max_dynamic_shared_size_bytes = shared_bytes
    of_one = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(function.kernel.ptr, block, shared_bytes)
    return of_one * cupy.cuda.Device().attributes["MultiProcessorCount"]


def check_block(block: int) -> None:
    """ValueError unless a block of so many threads is made of whole warps."""
    if not WARP <= block <= MAX_BLOCK or block % WARP:
        raise ValueError(f"block is {block} threads; these kernels take whole warps, {WARP} to {MAX_BLOCK} in all")
