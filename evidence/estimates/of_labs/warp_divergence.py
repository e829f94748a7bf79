"""Launches of lab 03's kernels whose times are recorded.

The paths of `path_costs` are not among them. Random data are drawn anew from a fixed seed, of the same distribution as
the recorded ones. Kernels whose blocks share a queue or loop over the data run as one multiprocessor's share of both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from evidence.estimates.timed_calls import Part, TimedCall, row
from kernels.warp_divergence import histograms, selection, tasks
from kernels.warp_divergence.kernel_table import BLOCK, KERNELS, blocks, kernel
from kernels.warp_divergence.measurements import (
    COLLATZ_FIRST,
    COLLATZ_N,
    LIMIT,
    PIXELS,
    ROWS,
    SELECTED,
    SKEWED_ZEROS,
    N,
)
from warpcourse.bench.lab_kernels import Size

SMS = 132  # of the GPU of the recordings
SMALL = 2**20
SAMPLE = 256  # blocks


def _part(name: str, grid: Size, block: Size, arguments: Callable[[], tuple], *shared_bytes: int, **scale: Any) -> Part:
    return Part(kernel(name).function, grid, block, arguments, *shared_bytes, **scale)


# -- tasks -------------------------------------------------------------------------------------------------------------


def _collatz_steps() -> np.ndarray:
    """Count steps of every number of the recording, to sort them by length."""
    values = np.arange(COLLATZ_FIRST, COLLATZ_FIRST + COLLATZ_N, dtype=np.uint64)
    steps, left = np.zeros(COLLATZ_N, np.int32), np.arange(COLLATZ_N)
    while left.size:
        odd = (values & np.uint64(1)).astype(bool)
        values = np.where(odd, values * np.uint64(3) + np.uint64(1), values >> np.uint64(1))
        steps[left] += 1
        go_on = values != 1
        values, left = values[go_on], left[go_on]
    return steps


def _collatz(is_sorted: bool) -> Part:
    def arguments() -> tuple:
        order = np.argsort(_collatz_steps(), kind="stable") if is_sorted else np.arange(COLLATZ_N)
        return np.uint32(COLLATZ_FIRST), order.astype(np.int32), np.zeros(COLLATZ_N, np.int32), np.int32(COLLATZ_N)

    return _part("cuda_collatz", blocks(COLLATZ_N), BLOCK, arguments, sample_blocks=SAMPLE)


def _queue() -> tuple:
    return np.zeros(1, np.uint32), np.uint32(tasks.CHUNK)


def _collatz_queue() -> Part:
    share = COLLATZ_N // SMS

    def arguments() -> tuple:
        return np.uint32(COLLATZ_FIRST), *_queue(), np.zeros(share, np.int32), np.uint32(share)

    return _part("cuda_collatz_queue", tasks.QUEUE_BLOCKS, BLOCK, arguments, blocks=SMS)


def _image(pixels: int) -> tuple:
    return tasks.mandelbrot_arguments(np.zeros((pixels, pixels), np.int32), LIMIT, tasks.SPIRAL)


def _mandelbrot(shape: tuple[int, int]) -> Part:
    grid = tuple(blocks(PIXELS, size) for size in shape)
    return _part("cuda_mandelbrot", grid, shape, lambda: _image(PIXELS), sample_blocks=SAMPLE)


def _mandelbrot_queue() -> Part:
    pixels = int((PIXELS**2 / SMS) ** 0.5)
    shape = tasks.QUEUE_BLOCKS, BLOCK
    return _part("cuda_mandelbrot_queue", *shape, lambda: (*_queue(), *_image(pixels)), blocks=SMS)


def _row_sums(name: str, threads: int) -> Part:
    rows = 2**14

    def arguments() -> tuple:
        lengths = (20 * np.random.default_rng(7).pareto(1.2, rows)).astype(np.int64).clip(0, 2000)
        start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return start, np.ones(int(start[-1]), np.int32), np.zeros(rows, np.int32), np.int32(rows)

    return _part(name, blocks(rows * threads), BLOCK, arguments, blocks=ROWS / rows)


def _task(group: str, name: str, part: Callable[[], Part], fills: int = 0) -> TimedCall:
    seconds = row(group=group, name=name)
    return TimedCall(f"{group}, {name}", "task_times", seconds, lambda: [part()], fills, warm=True)


# -- histograms --------------------------------------------------------------------------------------------------------


def _bytes(data: str, n: int) -> np.ndarray:
    random = np.random.default_rng(11)
    uniform = random.integers(0, 256, n, dtype=np.uint8)
    if data == "uniform":
        return uniform
    return np.where(random.integers(0, 8, n) < SKEWED_ZEROS, 0, uniform).astype(np.uint8)


def _histogram(name: str, data: str) -> list[Part]:
    numba = kernel(name).language == "Numba"
    n, times = N // SMS // 16 * 16, SMS
    if name.endswith(("global", "matched", "partition")):
        n, grid, block, times = SMALL, blocks(SMALL), BLOCK, N / SMALL
    elif numba:
        grid, block = 1056 // SMS, BLOCK
    else:
        grid, block = 2048 // histograms.LARGE_BLOCK, histograms.LARGE_BLOCK

    def arguments() -> tuple:
        return _bytes(data, n), np.zeros(histograms.BINS, np.uint32), *(() if numba else (np.uint64(n),))

    return [_part(name, grid, block, arguments, blocks=times)]


# -- selections --------------------------------------------------------------------------------------------------------


def _selection(name: str, share: float) -> list[Part]:
    step = name.partition("_")[2]
    items = selection.PIPELINED_ITEMS[0]  # those that an H100 takes
    tile = selection.PIPELINED_BLOCK * items
    size = N // SMS // tile * tile if step == "pipelined" else SMALL
    n, tiles, times = np.uint64(size), SMALL // selection.TILE, N / SMALL
    count = np.zeros(1, np.uint64)

    def taken() -> tuple:
        return np.random.default_rng(13).random(size, dtype=np.float32), np.float32(1 - share)

    def written() -> tuple:
        return *taken(), np.zeros(size, np.float32)

    if name.startswith("numba"):
        return [_part(name, blocks(SMALL), BLOCK, lambda: (*written(), count.view(np.int64)), blocks=times)]
    if step in selection.APPENDING:
        return [_part(f"{name}<float>", blocks(SMALL), BLOCK, lambda: (*written(), count, n), blocks=times)]
    if step == "two_passes":
        every = N // selection.TILE
        starts = np.arange(tiles, dtype=np.uint64) * np.uint64(selection.TILE * share)

        def counted() -> tuple:
            return *taken(), np.zeros(tiles, np.uint32), n

        def scanned() -> tuple:
            return np.ones(every, np.uint32), np.zeros(every, np.uint64), count, np.uint32(every)

        return [
            _part("cuda_count_tiles<float>", tiles, BLOCK, counted, blocks=times),
            _part("cuda_scan_counts", 1, selection.SCAN_BLOCK, scanned),
            _part("cuda_write_tiles<float>", tiles, BLOCK, lambda: (*written(), starts, n), blocks=times),
        ]
    if step == "look_back":

        def looked_back() -> tuple:
            return *written(), count, np.zeros(tiles, np.uint64), np.zeros(1, np.uint32), n

        return [_part("cuda_select_look_back<float>", tiles, selection.LOOK_BACK_BLOCK, looked_back, blocks=times)]
    return [
        _part(
            f"cuda_select_pipelined<float, {items}>",
            *(1, selection.PIPELINED_BLOCK),
            lambda: (*written(), count, np.zeros(size // tile, np.uint32), n),
            selection.pipelined_bytes(items),
            blocks=SMS,
        )
    ]


TIMED = [
    _task("Collatz", "neighbours", lambda: _collatz(False)),
    _task("Collatz", "sorted by length", lambda: _collatz(True)),
    _task("Collatz", "queue", _collatz_queue, 1),
    _task("Mandelbrot", "rows of 32", lambda: _mandelbrot(tasks.ROW_SHAPE)),
    _task("Mandelbrot", "tiles of 8 x 4", lambda: _mandelbrot(tasks.TILE_SHAPE)),
    _task("Mandelbrot", "queue", _mandelbrot_queue, 1),
    _task("row sums", "a thread per row", lambda: _row_sums("cuda_row_sums_thread", 1)),
    _task("row sums", "a warp per row", lambda: _row_sums("cuda_row_sums_warp", 32)),
    *(
        TimedCall(
            f"{name}, {data} bytes",
            "histogram_table",
            row("rows", name=name, data=data),
            functools.partial(_histogram, name, data),
            fills=1,
        )
        for name in KERNELS
        if "histogram" in name
        for data in ("uniform", "skewed")
    ),
    *(
        TimedCall(
            f"{name}, {share} kept",
            "selection_table",
            row("rows", name=name, share=share),
            functools.partial(_selection, name, share),
            fills=int("two_passes" not in name),
        )
        for name in selection.NAMES
        for share in SELECTED
    ),
]
