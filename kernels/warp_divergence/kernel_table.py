"""Lab 03's kernels by name, and what the host code of the lab shares.

`KERNELS["cuda_branch"].function()` is a kernel of the active backend; `warplab.simulate` takes it too, with
`scheduling="pascal"` or "volta". Functions that check their arguments and launch are in `order`, `divergence`, `tasks`,
`histograms` and `selection`.
"""

import math

import numpy as np

from warpcourse.bench.lab_kernels import Kernel, Sources, by_name, choose

BLOCK = 256  # threads per block, where nothing asks for another number
MAX_BLOCK = 1024
WARP = 32
WAYS = (1, 2, 4, 8, 16, 32)
STEPS = tuple(range(1, 17))  # that condition<STEPS> is compiled for
PIPELINED_ITEMS = (24, 12)  # elements per thread of select_pipelined; the first whose two tiles fit
TYPES = {np.dtype(np.float32): "float", np.dtype(np.int32): "int"}  # that elements of a selection may have

NUMBA = "numba_kernels.py"
_TEMPLATES = {
    "paths.cu": [f"paths<{ways}>" for ways in WAYS],
    "predication.cu": [f"condition<{steps}>" for steps in STEPS],
    "append.cu": [f"{name}<{t}>" for name in ("append", "append_ballot", "append_coalesced") for t in TYPES.values()],
    "select.cu": [
        *(f"{name}<{t}>" for name in ("count_tiles", "write_tiles", "select_look_back") for t in TYPES.values()),
        *(f"select_pipelined<{t}, {items}>" for t in TYPES.values() for items in PIPELINED_ITEMS),
    ],
}
SOURCES = Sources(__package__, templates=_TEMPLATES, options={"tasks.cu": ("--fmad=false",)}, cuda_headers=True)


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
    return by_name(
        *(Kernel(f"cuda_{entry}", SOURCES, file, entry) for file, entries in cuda.items() for entry in entries),
        *(Kernel(f"numba_{entry}", SOURCES, NUMBA, entry) for entry in numba),
    )


KERNELS = _table()


def kernel(name: str) -> Kernel:
    """Return the kernel of that name; ValueError names those alike, if there is none."""
    return choose(KERNELS, name)


def blocks(threads: int, block: int = BLOCK) -> int:
    """Return blocks of `block` threads that hold `threads` threads."""
    return math.ceil(threads / block)
