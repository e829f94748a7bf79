"""Launches of lab 03's kernels whose counters are compared with Nsight Compute's (`python -m tools.ncu`).

The kernels of order.cu last for a time, not for a number of instructions, and are not among them. Queues and appending
run with one warp and select_pipelined with one block: with more it depends on the moment who takes or waits for what.
"""

from typing import Any

import numpy as np

from kernels.warp_divergence import divergence, selection, tasks
from kernels.warp_divergence.kernel_table import BLOCK, KERNELS, PIPELINED_ITEMS, blocks, kernel
from warpcourse.bench.compared_launches import Difference, Launch, with_differences
from warpcourse.bench.lab_kernels import Size

N = 5003  # no multiple of a warp
_UNROLLED = (
    "The compiler has unrolled the loop by four. On hardware lanes leave the unrolled loop one after the other and "
    "load what is left then, in loads of their own; the simulator lets them wait and load together."
)
_IN_THE_BRANCH = "ptxas puts the constant 0.5 into a register within the branch, an instruction that few lanes run."
_ONE_LANE = "The address of the store, 64-bit arithmetic of Numba's, is computed by the one lane that stores."
_LANE_NUMBER = (
    "From %laneid == 0 ptxas sees that one lane is left, and does without the instructions in which lanes add up what "
    "goes to one address."
)
_UNUSED = "ptxas leaves out what cooperative groups compute for all lanes and nobody uses: a ballot and a rank."
_ONCE = (
    "Two recordings on one card, of the same code and data, read 1403 wavefronts without a conflict and 1404 with one: "
    "the counter itself is not the same from run to run."
)
_DIFFERENCES = {
    "cuda_condition<8>": (Difference("warp_efficiency", 0.03, _IN_THE_BRANCH),),
    "cuda_row_sums_thread": (Difference("global_load", 0.02, _UNROLLED),),
    "cuda_row_sums_warp": (Difference("global_load", 0.03, _UNROLLED), Difference("warp_efficiency", 0.03, _UNROLLED)),
    "numba_row_sums_warp": (Difference("warp_efficiency", 0.03, _UNROLLED),),
    "numba_warp_sums": (Difference("warp_efficiency", 0.05, _ONE_LANE),),
    "cuda_histogram_partition, skewed": (Difference("warp_efficiency", 0.03, _UNUSED),),
    "numba_append_ballot, one warp": (Difference("warp_efficiency", 0.15, _LANE_NUMBER),),
    "cuda_select_pipelined<float, 12>, one block": (
        Difference("shared_load_wavefronts", 0.001, _ONCE),
        Difference("shared_load_conflicts", 1.0, _ONCE),
    ),
}


def _launch(name: str, what: str, grid: Size, block: Size, arguments: tuple) -> Launch:
    return Launch(f"{name}, {what}" if what else name, kernel(name).function, grid, block, arguments)


def _sized(name: str, arguments: tuple, n: np.generic) -> tuple:
    """Return what a kernel takes: Numba's arrays know their size, CUDA C++ needs it as `n`."""
    return arguments if kernel(name).language == "Numba" else (*arguments, n)


def _random(n: int = N) -> np.ndarray:
    return np.random.default_rng(n).random(n, dtype=np.float32)


def _whole_numbers(bound: int, n: int = N, dtype: Any = np.int32) -> np.ndarray:
    return np.random.default_rng(n + bound).integers(0, bound, n).astype(dtype)


def _branches() -> list[Launch]:
    x, signed = _random(), _random() - np.float32(0.5)
    grid = blocks(N), BLOCK
    return [
        *(
            _launch(f"cuda_paths<{ways}>", f"by {by}", *grid, divergence.paths_arguments(x, x.copy(), by, 32))
            for ways in (2, 8, 32)
            for by in divergence.SHIFTS
        ),
        *(_launch(f"cuda_condition<{steps}>", "", *grid, (signed, x.copy(), np.int32(N))) for steps in (4, 7, 8, 16)),
        *(
            _launch("numba_two_paths", f"shift {shift}", *grid, (x, x.copy(), np.int32(32), np.int32(shift)))
            for shift in (0, 5)
        ),
    ]


def _tasks() -> list[Launch]:
    trips, plain = _whole_numbers(1000), np.arange(N, dtype=np.int32)
    by_length = np.argsort(trips, kind="stable").astype(np.int32)
    first, steps = np.uint32(100_000), np.zeros(N, np.int32)
    image, limit = np.zeros((64, 64), np.int32), 200
    queue = np.zeros(1, np.uint32), np.uint32(tasks.CHUNK)
    lengths = np.random.default_rng(3).integers(0, 200, 400) ** 2 // 100
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    rows = start, _whole_numbers(1000, int(start[-1])), np.zeros(400, np.int32)
    return [
        *(
            _launch(name, what, blocks(N), BLOCK, _sized(name, (trips, order, np.zeros(N, np.float32)), np.int32(N)))
            for name in ("cuda_uneven", "numba_uneven")
            for what, order in (("as they come", plain), ("sorted", by_length))
        ),
        _launch("cuda_collatz", "", blocks(N), BLOCK, (first, plain, steps, np.int32(N))),
        _launch("numba_collatz", "", blocks(N), BLOCK, (first, plain, steps)),
        _launch("cuda_collatz_queue", "one warp", 1, 32, (first, *queue, steps[:1000], np.uint32(1000))),
        *(
            _launch("cuda_mandelbrot", what, (64 // x, 64 // y), (x, y), _mandelbrot(image, limit))
            for what, (x, y) in (("rows", tasks.ROW_SHAPE), ("tiles", tasks.TILE_SHAPE))
        ),
        _launch("cuda_mandelbrot_queue", "one warp", 1, 32, (*queue, *_mandelbrot(image, limit))),
        _launch("cuda_row_sums_thread", "", 2, BLOCK, (*rows, np.int32(400))),
        _launch("cuda_row_sums_warp", "", 50, BLOCK, (*rows, np.int32(400))),
        _launch("numba_row_sums_warp", "", 50, BLOCK, rows),
    ]


def _mandelbrot(image: np.ndarray, limit: int) -> tuple:
    return tasks.mandelbrot_arguments(image, limit, tasks.WHOLE)


def _primitives() -> list[Launch]:
    x, sums, scans = _whole_numbers(1000), np.zeros(blocks(N, 32), np.int32), np.zeros(N, np.int32)
    return [
        _launch(name, "", blocks(N), BLOCK, _sized(name, (x, out), np.int32(N)))
        for step, out in (("warp_sums", sums), ("warp_scans", scans))
        for name in (f"cuda_{step}", f"numba_{step}")
    ]


def _histograms() -> list[Launch]:
    n, bins = 24_576, np.zeros(256, np.uint32)
    # Lanes with one address take turns in an order of the hardware's; so only 0 is there more than once in a warp.
    different = (37 * np.arange(n) % 256).astype(np.uint8)
    skewed = np.where(np.arange(n) % 8 < 7, 0, np.maximum(different, 1)).astype(np.uint8)
    looping = ("shared", "vector", "columns")
    return [
        _launch(name, what, 3 if name.endswith(looping) else blocks(n), BLOCK, _sized(name, (x, bins), np.uint64(n)))
        for name in KERNELS
        if "histogram" in name
        for what, x in (("all different", different), ("skewed", skewed))
    ]


def _selections() -> list[Launch]:
    x, threshold = _random(20_011), np.float32(0.4)
    n, out, count = np.uint64(x.size), np.zeros(x.size, np.float32), np.zeros(1, np.uint64)
    tiles = blocks(x.size, selection.TILE)
    of_tile = np.array([(p > threshold).sum() for p in np.split(x, range(selection.TILE, x.size, selection.TILE))])
    starts = (np.cumsum(of_tile) - of_tile).astype(np.uint64)
    # One warp, because of more it depends on the moment which is first at the counter.
    one = x[:29], threshold, out, count
    counts = np.zeros(tiles, np.uint32)
    looked_back = x[:4000], threshold, out, count, np.zeros(1, np.uint64), np.zeros(1, np.uint32), np.uint64(4000)
    return [
        *(_launch(f"cuda_{step}<float>", "one warp", 1, 32, (*one, np.uint64(29))) for step in selection.APPENDING),
        _launch("numba_append_ballot", "one warp", 1, 32, (*one[:3], count.view(np.int64))),
        _launch("cuda_count_tiles<float>", "", tiles, BLOCK, (x, threshold, counts, n)),
        _launch("cuda_scan_counts", "", 1, 1024, (of_tile.astype(np.uint32), starts.copy(), count, np.uint32(tiles))),
        _launch("cuda_write_tiles<float>", "", tiles, BLOCK, (x, threshold, out, starts, n)),
        _launch("cuda_select_look_back<float>", "one tile", 1, selection.LOOK_BACK_BLOCK, looked_back),
        _pipelined(x, threshold, out, count),
    ]


def _pipelined(x: np.ndarray, *arguments: Any) -> Launch:
    items = PIPELINED_ITEMS[-1]
    name, shared_bytes = f"cuda_select_pipelined<float, {items}>", selection.pipelined_bytes(items)
    counts = np.zeros(blocks(x.size, selection.PIPELINED_BLOCK * items), np.uint32)
    given = (x, *arguments, counts, np.uint64(x.size))

    def function() -> Any:
        compiled = kernel(name).function()
        compiled.max_dynamic_shared_size_bytes = shared_bytes
        return compiled

    return Launch(f"{name}, one block", function, 1, selection.PIPELINED_BLOCK, given, shared_bytes)


LAUNCHES = with_differences((*_branches(), *_tasks(), *_primitives(), *_histograms(), *_selections()), _DIFFERENCES)
