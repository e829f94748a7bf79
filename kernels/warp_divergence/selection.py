"""Launches of append.cu and select.cu: the elements of an array that are greater than a threshold."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.warp_divergence.kernel_table import BLOCK, PIPELINED_ITEMS, TYPES, blocks, kernel
from warpcourse.bench.device_arguments import check_array
from warplab import cp, cuda
from warplab.hardware import backend

# Steps by name, and whether they keep the order.
APPENDING = ("append", "append_ballot", "append_coalesced")
ORDERED = ("two_passes", "look_back", "pipelined")
NAMES = tuple(f"cuda_{step}" for step in APPENDING + ORDERED) + ("numba_append", "numba_append_ballot")
TILE = 4096  # elements of two_passes and look_back
LOOK_BACK_BLOCK, SCAN_BLOCK, PIPELINED_BLOCK = 128, 1024, 512
STATIC_SHARED_BYTES = 1024  # more than select_pipelined has beside its two tiles, with the system's


def plan(x: Any, threshold: float, out: Any, count: Any, name: str) -> Callable[[], None]:
    """Return a function that writes the elements of x that are > threshold to out[0] to out[count[0] - 1].

    `x`, `out`: CuPy arrays, float32 or int32, of one axis; `out` has the same dtype, at least as many elements as
    are selected (as long as x is always enough), and does not overlap x. `count`: uint64, shape (1,).
    `name`: one of NAMES. The steps of ORDERED keep the order of x; the others do not. A NaN is not selected.
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    if name not in NAMES:
        raise ValueError(f"there is no selection {name!r}; choose one of {', '.join(NAMES)}")
    check_array("x", x, (None,), dtype=tuple(TYPES))
    check_array("out", out, (None,), dtype=x.dtype)
    check_array("count", count, (1,), dtype=np.uint64)
    if out.size < x.size:
        raise ValueError(f"out has {out.size} elements; {x.size} may be selected")
    if not x.size:
        return lambda: count.fill(0)
    step = name.partition("_")[2]
    prepare = {"two_passes": _two_passes, "look_back": _look_back, "pipelined": _pipelined}.get(step, _append)
    return prepare(x, x.dtype.type(threshold), out, count, name)


def _append(x: Any, threshold: Any, out: Any, count: Any, name: str) -> Callable[[], None]:
    if name.startswith("numba"):
        chosen = kernel(name)
        x, out, count_ = (cuda.as_cuda_array(array) for array in (x, out, count.view(np.int64)))
        arguments: tuple = (x, threshold, out, count_)
    else:
        chosen = kernel(f"{name}<{TYPES[x.dtype]}>")
        arguments = x, threshold, out, count, np.uint64(x.size)

    def run() -> None:
        count.fill(0)
        chosen.launch(blocks(x.size), BLOCK, arguments)

    return run


def _two_passes(x: Any, threshold: Any, out: Any, count: Any, name: str) -> Callable[[], None]:
    of, n, tiles = TYPES[x.dtype], np.uint64(x.size), blocks(x.size, TILE)
    counts, starts = cp.zeros(tiles, np.uint32), cp.zeros(tiles, np.uint64)
    count_tiles, write_tiles = kernel(f"cuda_count_tiles<{of}>"), kernel(f"cuda_write_tiles<{of}>")
    scan_counts = kernel("cuda_scan_counts")

    def run() -> None:
        count_tiles.launch(tiles, BLOCK, (x, threshold, counts, n))
        scan_counts.launch(1, SCAN_BLOCK, (counts, starts, count, np.uint32(tiles)))
        write_tiles.launch(tiles, BLOCK, (x, threshold, out, starts, n))

    return run


def _look_back(x: Any, threshold: Any, out: Any, count: Any, name: str) -> Callable[[], None]:
    chosen, tiles = kernel(f"cuda_select_look_back<{TYPES[x.dtype]}>"), blocks(x.size, TILE)
    workspace = cp.zeros(tiles + 1, np.uint64)  # states, then the ticket
    arguments = (x, threshold, out, count, workspace, workspace[tiles:].view(np.uint32), np.uint64(x.size))

    def run() -> None:
        workspace.fill(0)
        chosen.launch(tiles, LOOK_BACK_BLOCK, arguments)

    return run


def _pipelined(x: Any, threshold: Any, out: Any, count: Any, name: str) -> Callable[[], None]:
    items = pipelined_items()
    tiles = blocks(x.size, PIPELINED_BLOCK * items)
    chosen = kernel(f"cuda_select_pipelined<{TYPES[x.dtype]}, {items}>")
    shared_bytes = pipelined_bytes(items)
    grid = min(tiles, chosen.resident_blocks(PIPELINED_BLOCK, shared_bytes))
    counts = cp.zeros(tiles, np.uint32)
    arguments = (x, threshold, out, count, counts, np.uint64(x.size))

    def run() -> None:
        counts.fill(0)
        chosen.launch(grid, PIPELINED_BLOCK, arguments, shared_bytes)

    return run


def pipelined_items() -> int:
    """Return elements per thread: the most whose two tiles fit in a block's shared memory."""
    if backend.name() != "gpu":
        return PIPELINED_ITEMS[0]
    most = cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    return next(k for k in PIPELINED_ITEMS if pipelined_bytes(k) + STATIC_SHARED_BYTES <= most)


def pipelined_bytes(items: int) -> int:
    """Return dynamic shared memory of select_pipelined: two tiles of elements of 4 bytes."""
    return 2 * PIPELINED_BLOCK * items * 4
