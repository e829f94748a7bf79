"""Launches of lab 03's kernels whose times are recorded, for `tools.estimate_error`.

The paths of `path_costs` are not among them. Random data are drawn anew from a fixed seed, of the same distribution as
the recorded ones. Kernels whose blocks share a queue or loop over the data run as one multiprocessor's share of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

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
from warplab.bench.timed_launches import Part, TimedCall, row

SMS = 132  # of the GPU of the recordings
SMALL = 2**20
SAMPLE = 256  # blocks


def _rows(value: Any) -> list[dict]:
    return value["rows"]


def _groups(value: Any) -> list[dict]:
    return value


# -- tasks -------------------------------------------------------------------------------------------------------------


def _collatz_steps() -> np.ndarray:
    """Steps of every number of the recording, to sort them by length."""
    values = np.arange(COLLATZ_FIRST, COLLATZ_FIRST + COLLATZ_N, dtype=np.uint64)
    steps, left = np.zeros(COLLATZ_N, np.int32), np.arange(COLLATZ_N)
    while left.size:
        odd = (values & np.uint64(1)).astype(bool)
        values = np.where(odd, values * np.uint64(3) + np.uint64(1), values >> np.uint64(1))
        steps[left] += 1
        go_on = values != 1
        values, left = values[go_on], left[go_on]
    return steps


def _collatz(is_sorted: bool) -> list[Part]:
    def arguments() -> tuple:
        order = np.argsort(_collatz_steps(), kind="stable") if is_sorted else np.arange(COLLATZ_N)
        return np.uint32(COLLATZ_FIRST), order.astype(np.int32), np.zeros(COLLATZ_N, np.int32), np.int32(COLLATZ_N)

    return [Part(kernel("cuda_collatz").function, blocks(COLLATZ_N), BLOCK, arguments, sample_blocks=SAMPLE)]


def _collatz_queue() -> list[Part]:
    share = COLLATZ_N // SMS

    def arguments() -> tuple:
        queue = np.zeros(1, np.uint32), np.uint32(tasks.CHUNK)
        return np.uint32(COLLATZ_FIRST), *queue, np.zeros(share, np.int32), np.uint32(share)

    return [Part(kernel("cuda_collatz_queue").function, tasks.QUEUE_BLOCKS, BLOCK, arguments, blocks=SMS)]


def _mandelbrot(shape: tuple[int, int]) -> list[Part]:
    def arguments() -> tuple:
        return tasks.mandelbrot_arguments(np.zeros((PIXELS, PIXELS), np.int32), LIMIT, tasks.SPIRAL)

    grid = tuple(blocks(PIXELS, size) for size in shape)
    return [Part(kernel("cuda_mandelbrot").function, grid, shape, arguments, sample_blocks=SAMPLE)]


def _mandelbrot_queue() -> list[Part]:
    pixels = int((PIXELS**2 / SMS) ** 0.5)

    def arguments() -> tuple:
        image = np.zeros((pixels, pixels), np.int32)
        queue = np.zeros(1, np.uint32), np.uint32(tasks.CHUNK)
        return *queue, *tasks.mandelbrot_arguments(image, LIMIT, tasks.SPIRAL)

    return [Part(kernel("cuda_mandelbrot_queue").function, tasks.QUEUE_BLOCKS, BLOCK, arguments, blocks=SMS)]


def _row_sums(entry: str, threads: int) -> list[Part]:
    rows = 2**14

    def arguments() -> tuple:
        lengths = (20 * np.random.default_rng(7).pareto(1.2, rows)).astype(np.int64).clip(0, 2000)
        start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return start, np.ones(int(start[-1]), np.int32), np.zeros(rows, np.int32), np.int32(rows)

    return [Part(kernel(f"cuda_{entry}").function, blocks(rows * threads), BLOCK, arguments, blocks=ROWS / rows)]


def _task(group: str, name: str, parts: Callable[[], list[Part]], fills: int = 0) -> TimedCall:
    return TimedCall(
        f"lab 03, {group}, {name}", "task_times", row(_groups, group=group, name=name), parts, fills, warm=True
    )


# -- histograms --------------------------------------------------------------------------------------------------------


def _bytes(data: str, n: int) -> np.ndarray:
    random = np.random.default_rng(11)
    uniform = random.integers(0, 256, n, dtype=np.uint8)
    return (
        uniform if data == "uniform" else np.where(random.integers(0, 8, n) < SKEWED_ZEROS, 0, uniform).astype(np.uint8)
    )


def _histogram(name: str, data: str) -> list[Part]:
    chosen = kernel(name)
    if name.endswith(("global", "matched", "partition")):
        n, grid, block, times = SMALL, blocks(SMALL), BLOCK, N / SMALL
    elif chosen.language == "Numba":
        n, grid, block, times = N // SMS // 16 * 16, 1056 // SMS, BLOCK, SMS
    else:
        n, grid, block, times = N // SMS // 16 * 16, 2048 // histograms.LARGE_BLOCK, histograms.LARGE_BLOCK, SMS

    def arguments() -> tuple:
        x, bins = _bytes(data, n), np.zeros(histograms.BINS, np.uint32)
        return (x, bins) if chosen.language == "Numba" else (x, bins, np.uint64(n))

    return [Part(chosen.function, grid, block, arguments, blocks=times)]


# -- selections --------------------------------------------------------------------------------------------------------


def _selection(name: str, share: float) -> list[Part]:
    step = name.partition("_")[2]
    threshold = np.float32(1 - share)

    def elements(n: int = SMALL) -> np.ndarray:
        return np.random.default_rng(13).random(n, dtype=np.float32)

    def out(n: int = SMALL) -> np.ndarray:
        return np.zeros(n, np.float32)

    count, tiles = np.zeros(1, np.uint64), SMALL // selection.TILE
    n, times = np.uint64(SMALL), N / SMALL
    if step in selection.APPENDING:
        numba = name.startswith("numba")
        chosen = kernel(name if numba else f"{name}<float>")

        def appended() -> tuple:
            common = elements(), threshold, out()
            return (*common, count.view(np.int64)) if numba else (*common, count, n)

        return [Part(chosen.function, blocks(SMALL), BLOCK, appended, blocks=times)]
    if step == "two_passes":
        every = N // selection.TILE
        starts = np.arange(tiles, dtype=np.uint64) * np.uint64(selection.TILE * share)
        return [
            Part(
                kernel("cuda_count_tiles<float>").function,
                *(tiles, BLOCK, lambda: (elements(), threshold, np.zeros(tiles, np.uint32), n)),
                blocks=times,
            ),
            Part(
                kernel("cuda_scan_counts").function,
                *(1, selection.SCAN_BLOCK),
                lambda: (np.ones(every, np.uint32), np.zeros(every, np.uint64), count, np.uint32(every)),
            ),
            Part(
                kernel("cuda_write_tiles<float>").function,
                *(tiles, BLOCK, lambda: (elements(), threshold, out(), starts, n)),
                blocks=times,
            ),
        ]
    if step == "look_back":
        return [
            Part(
                kernel("cuda_select_look_back<float>").function,
                *(tiles, selection.LOOK_BACK_BLOCK),
                lambda: (*(elements(), threshold, out(), count), np.zeros(tiles, np.uint64), np.zeros(1, np.uint32), n),
                blocks=times,
            )
        ]
    items = selection.PIPELINED_ITEMS[0]  # those that an H100 takes
    mine = N // SMS // (selection.PIPELINED_BLOCK * items) * selection.PIPELINED_BLOCK * items
    counts = mine // (selection.PIPELINED_BLOCK * items)
    return [
        Part(
            kernel(f"cuda_select_pipelined<float, {items}>").function,
            *(1, selection.PIPELINED_BLOCK),
            lambda: (elements(mine), threshold, out(mine), count, np.zeros(counts, np.uint32), np.uint64(mine)),
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
    _task("row sums", "a thread per row", lambda: _row_sums("row_sums_thread", 1)),
    _task("row sums", "a warp per row", lambda: _row_sums("row_sums_warp", 32)),
    *(
        TimedCall(
            f"lab 03, {name}, {data} bytes",
            "histogram_table",
            row(_rows, name=name, data=data),
            lambda name=name, data=data: _histogram(name, data),
            1,
        )
        for name in KERNELS
        if "histogram" in name
        for data in ("uniform", "skewed")
    ),
    *(
        TimedCall(
            f"lab 03, {name}, {share} kept",
            "selection_table",
            row(_rows, name=name, share=share),
            lambda name=name, share=share: _selection(name, share),
            int("two_passes" not in name),
        )
        for name in selection.NAMES
        for share in SELECTED
    ),
]
