"""What lab 03 measures on a GPU: one function per table or plot, each returning numbers in JSON types.

Keys end in their unit: `seconds`, `gbps` (1e9 bytes per second). Times are medians. `warp_efficiency` is the
simulator's, of the same launch or of a part of it. `MEASUREMENTS` names them as `recordings.json` does.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.warp_divergence import cub_reference, divergence, histograms, order, recordings, selection, tasks
from kernels.warp_divergence.kernel_table import BLOCK, KERNELS, WAYS, blocks, kernel
from warpcourse.bench import random_inputs
from warpcourse.bench.timing import (
    COPY_BYTES,
    Candidate,
    Timing,
    copy_candidate,
    cupy_on_gpu,
    fitting,
    time_gpu,
    time_together,
)
from warplab.estimating.beside import KnownTime
from warplab.launch.simulate import simulate

N = 2**28
PATHS_N, PATHS_STEPS, SAMPLE = 2**22, 256, 16
COLLATZ_FIRST, COLLATZ_N = 2**20, 2**22
PIXELS, LIMIT = 2048, 1000
ROWS = 2**20
SKEWED_ZEROS = 7  # of 8 bytes
SELECTED = (0.1, 0.5, 0.9)  # shares of the elements that are kept


def order_of_sides() -> list[dict[str, Any]]:
    """Return when each letter of order.cu began, in clocks since the first, by kernel; and what B's lanes read."""
    cupy_on_gpu()
    rows = []
    for name in ("branch", "unordered", "ordered", "in_turn", "handshake"):
        order.run(f"cuda_{name}")  # loads the kernel
        when, read = order.run(f"cuda_{name}")
        letters = []
        for letter, row in zip(order.LETTERS, when, strict=True):
            lanes = np.flatnonzero(row >= 0)
            letters.append({"letter": letter, "first_lane": int(lanes[0]), "lanes": int(lanes.size)})
            letters[-1]["clocks"] = int(row[lanes].min())
        rows.append({"kernel": name, "sequence": order.sequence(when), "letters": letters, "read": read.tolist()})
    return rows


def path_costs() -> dict[str, Any]:
    """Measure seconds and warp efficiency of K ways through a kernel, by lane and by warp."""
    cupy = cupy_on_gpu()
    x = cupy.asarray(random_inputs.generator().random(PATHS_N, dtype=np.float32))
    out, small = cupy.empty_like(x), np.zeros(PATHS_N, np.float32)
    rows = []
    for ways in WAYS:
        chosen, row = kernel(f"cuda_paths<{ways}>"), {"ways": ways}
        for by in divergence.SHIFTS:
            arguments = divergence.paths_arguments(x, out, by, PATHS_STEPS)
            grid = blocks(PATHS_N)
            timing = time_gpu(lambda *a, k=chosen, g=grid: k.launch(g, BLOCK, a), [arguments], runs=15)
            arguments = divergence.paths_arguments(small, small.copy(), by, PATHS_STEPS)
            counts = simulate(chosen.function(), grid, BLOCK, arguments, sample_blocks=SAMPLE, **_COUNT_ONLY).counts
            row |= {f"by_{by}_seconds": timing.seconds, f"by_{by}_warp_efficiency": counts.warp_efficiency}
        rows.append(row)
    return {"n": PATHS_N, "steps": PATHS_STEPS, "rows": rows}


_COUNT_ONLY = {"checks": False, "races": False, "trace_warps": 0}


def task_times() -> list[dict[str, Any]]:
    """Measure seconds and warp efficiency of uneven tasks and their cures, a group of rows for each kind of task.

    `simulated`: the part of the launch whose warp efficiency is given.
    """
    return [*_collatz(), *_mandelbrot(), *_row_sums()]


def _row(group: str, name: str, timing: Timing, counts: Any, simulated: str, correct: bool, **more) -> dict:
    found = {"group": group, "name": name, "seconds": timing.seconds, "warp_efficiency": counts.warp_efficiency}
    return {**found, "simulated": simulated, "correct": correct, **more}


def _collatz() -> list[dict[str, Any]]:
    cupy = cupy_on_gpu()
    plain = cupy.arange(COLLATZ_N, dtype=np.int32)
    steps, out = cupy.empty(COLLATZ_N, np.int32), cupy.empty(COLLATZ_N, np.int32)
    tasks.collatz(COLLATZ_FIRST, plain, steps)
    by_length = cupy.argsort(steps).astype(np.int32)
    sorting = time_gpu(cupy.argsort, [(steps,)], runs=10).seconds
    # A multiprocessor's share of the launch, so that the lanes of a queue get as many tasks each.
    share = COLLATZ_N // cupy.cuda.Device().attributes["MultiProcessorCount"]
    rows = []
    for name, ordering in (("neighbours", plain), ("sorted by length", by_length)):
        timing = time_gpu(tasks.collatz, [(COLLATZ_FIRST, ordering, out)], runs=10)
        arguments = (np.uint32(COLLATZ_FIRST), cupy.asnumpy(ordering), np.zeros(COLLATZ_N, np.int32))
        counts = simulate(
            kernel("cuda_collatz").function(),
            blocks(COLLATZ_N),
            BLOCK,
            (*arguments, np.int32(COLLATZ_N)),
            sample_blocks=blocks(share),
            **_COUNT_ONLY,
        ).counts
        correct = bool((out == steps).all())
        rows.append(_row("Collatz", name, timing, counts, f"{blocks(share)} blocks", correct))
    rows[-1]["sort_seconds"] = sorting
    timing = time_gpu(tasks.collatz_queue, [(COLLATZ_FIRST, out)], runs=10)
    correct = bool((out == steps).all())
    arguments = (np.uint32(COLLATZ_FIRST), np.zeros(1, np.uint32), np.uint32(tasks.CHUNK), np.zeros(share, np.int32))
    counts = simulate(
        kernel("cuda_collatz_queue").function(),
        tasks.QUEUE_BLOCKS,
        BLOCK,
        (*arguments, np.uint32(share)),
        **_COUNT_ONLY,
    ).counts
    return [*rows, _row("Collatz", "queue", timing, counts, "a multiprocessor's share", correct)]


def _mandelbrot() -> list[dict[str, Any]]:
    cupy = cupy_on_gpu()
    out, expected = (cupy.empty((PIXELS, PIXELS), np.int32) for _ in range(2))
    tasks.mandelbrot(expected, LIMIT)
    rows = []
    for name, block in (("rows of 32", tasks.ROW_SHAPE), ("tiles of 8 x 4", tasks.TILE_SHAPE)):
        timing = time_gpu(lambda b=block: tasks.mandelbrot(out, LIMIT, block=b), runs=10)
        image = np.zeros((PIXELS, PIXELS), np.int32)
        counts = simulate(
            kernel("cuda_mandelbrot").function(),
            tuple(blocks(PIXELS, size) for size in block),
            block,
            tasks.mandelbrot_arguments(image, LIMIT, tasks.SPIRAL),
            sample_blocks=512,
            **_COUNT_ONLY,
        ).counts
        correct = bool((out == expected).all())
        rows.append(_row("Mandelbrot", name, timing, counts, "512 blocks", correct))
    timing = time_gpu(tasks.mandelbrot_queue, [(out, LIMIT)], runs=10)
    correct = bool((out == expected).all())
    # A picture of a multiprocessor's share of the pixels, of the same view.
    pixels = int((PIXELS**2 / cupy.cuda.Device().attributes["MultiProcessorCount"]) ** 0.5)
    image = np.zeros((pixels, pixels), np.int32)
    arguments = np.zeros(1, np.uint32), np.uint32(tasks.CHUNK), *tasks.mandelbrot_arguments(image, LIMIT, tasks.SPIRAL)
    function = kernel("cuda_mandelbrot_queue").function()
    counts = simulate(function, tasks.QUEUE_BLOCKS, BLOCK, arguments, **_COUNT_ONLY).counts
    return [*rows, _row("Mandelbrot", "queue", timing, counts, f"a picture of {pixels} x {pixels}", correct)]


def _row_sums() -> list[dict[str, Any]]:
    cupy = cupy_on_gpu()
    lengths = row_lengths(ROWS)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    value = random_inputs.generator().integers(-1000, 1000, start[-1], dtype=np.int32)
    on_device = cupy.asarray(start), cupy.asarray(value), cupy.empty(ROWS, np.int32)
    sums = np.concatenate([[0], np.cumsum(value, dtype=np.int64)])
    expected = (sums[start[1:]] - sums[start[:-1]]).astype(np.int32)
    rows = []
    for name, entry, threads in (("a thread per row", "row_sums_thread", 1), ("a warp per row", "row_sums_warp", 32)):
        timing = time_gpu(lambda e=entry: tasks.row_sums(*on_device, f"cuda_{e}"), runs=10)
        arguments = (start, value, np.zeros(ROWS, np.int32), np.int32(ROWS))
        grid = blocks(ROWS * threads)
        function = kernel(f"cuda_{entry}").function()
        counts = simulate(function, grid, BLOCK, arguments, sample_blocks=128, **_COUNT_ONLY).counts
        correct = bool((cupy.asnumpy(on_device[2]) == expected).all())
        rows.append(_row("row sums", name, timing, counts, "128 blocks", correct))
    return rows


def row_lengths(rows: int) -> np.ndarray:
    """Return lengths of rows, most short and few long: 20 times a Pareto variable of index 1.2, at most 2000; int64."""
    return (20 * random_inputs.generator().pareto(1.2, rows)).astype(np.int64).clip(0, 2000)


def random_bytes(n: int) -> dict[str, Any]:
    """Return device arrays of uint8 by name: uniform, and skewed, where seven of eight are zero."""
    cupy = cupy_on_gpu()
    uniform = cupy.random.randint(0, 256, n, dtype=np.uint8)
    zero = cupy.random.randint(0, 8, n, dtype=np.uint8) < SKEWED_ZEROS
    return {"uniform": uniform, "skewed": cupy.where(zero, np.uint8(0), uniform)}


def histogram_table(n: int = N) -> dict[str, Any]:
    """Measure every histogram at n bytes, on uniform and skewed data, beside CUB's and cupy.histogram, timed in turns.

    Each is compared with NumPy's counts, in bins that held something else before.
    """
    cupy = cupy_on_gpu()
    n = fitting(n, 1, itemsize=3)
    bins = cupy.empty(histograms.BINS, np.uint32)
    rows = []
    for data, x in random_bytes(n).items():
        expected = cupy.asarray(np.bincount(cupy.asnumpy(x), minlength=histograms.BINS).astype(np.uint32))
        names = [name for name in KERNELS if "histogram" in name]
        runs = {name: histograms.plan(x, bins, name) for name in names}
        if cub_reference.available():
            runs["CUB"] = cub_reference.histogram(x, bins)
        # Those that need milliseconds run once or twice; the others take turns.
        slow = [name for name in names if name.endswith(("global", "matched", "partition"))]
        timings = {name: time_gpu(runs[name], runs=2) for name in slow}
        candidates = {name: Candidate(run) for name, run in runs.items() if name not in slow}
        candidates["cupy.histogram"] = Candidate(
            lambda x: cupy.histogram(x, histograms.BINS, (0, 256)), [(x,)], queued=False
        )
        timings |= time_together(candidates, rounds=5, runs=7)
        counted = {name: _counted(bins, run, expected) for name, run in runs.items()}
        counted["cupy.histogram"] = bool((cupy.histogram(x, histograms.BINS, (0, 256))[0] == expected).all())
        rows += _rows(timings, n, counted, data=data)
    return {"n": n, "cub": cub_version(), "copy_gbps": copy_gbps(), "rows": rows}


def _counted(bins: Any, run: Callable[[], None], expected: Any) -> bool:
    bins.fill(9)
    run()
    return bool((bins == expected).all())


def selection_table(n: int = N) -> dict[str, Any]:
    """Measure every selection at n float32, by the share kept, beside CUB's and x[x > threshold], timed in turns.

    Each is compared with NumPy's result, bit by bit where the order is kept and sorted where not, in an output that was
    poisoned with NaN. Bytes: all elements read once, those kept written once.
    """
    cupy = cupy_on_gpu()
    n = fitting(n, 1, itemsize=24)
    host = random_inputs.generator().random(n, dtype=np.float32)
    x, out = cupy.asarray(host), cupy.empty(n, np.float32)
    count = cupy.zeros(1, np.uint64)
    rows = []
    for share in SELECTED:
        threshold = np.float32(1 - share)
        expected = cupy.asarray(host[host > threshold])
        runs = {name: selection.plan(x, threshold, out, count, name) for name in selection.NAMES}
        if cub_reference.available():
            runs["CUB"] = cub_reference.select(x, threshold, out, count)
        slow = [name for name in selection.NAMES if name.endswith("append")]
        timings = {name: time_gpu(runs[name], runs=2) for name in slow}
        candidates = {name: Candidate(run) for name, run in runs.items() if name not in slow}
        timings |= time_together(candidates, rounds=5, runs=7)
        # CuPy allocates its result, and its memory is free again before the next call only if the host waits.
        timings["x[x > threshold]"] = time_gpu(lambda t: x[x > t], [(threshold,)], runs=5, queued=False)
        right = {name: _selected(name, run, out, count, expected) for name, run in runs.items()}
        right["x[x > threshold]"] = bool((x[x > threshold] == expected).all())
        kept = expected.size
        del expected
        rows += _rows(timings, 4 * (n + kept), right, share=share, kept=kept)
    return {"n": n, "cub": cub_version(), "copy_gbps": copy_gbps(), "rows": rows}


def _selected(name: str, run: Callable[[], None], out: Any, count: Any, expected: Any) -> bool:
    out.fill(np.nan)
    count.fill(0)
    run()
    found = out[: int(count[0])]
    if found.size != expected.size:
        return False
    if name.endswith(selection.APPENDING):
        import cupy

        return bool((cupy.sort(found) == cupy.sort(expected)).all())
    return bool((found.view(np.uint32) == expected.view(np.uint32)).all())


def _rows(timings: dict[str, Timing], nbytes: int, correct: dict[str, bool], **more: Any) -> list[dict]:
    reference = timings.get("CUB")
    library = timings.get("cupy.histogram") or timings.get("x[x > threshold]")
    return [
        {
            **more,
            "name": name,
            "language": KERNELS[name].language if name in KERNELS else _language(name),
            "seconds": t.seconds,
            "fastest_seconds": t.fastest,
            "slowest_seconds": t.slowest,
            "runs": t.runs,
            "gbps": t.bandwidth(nbytes),
            "ratio_to_cub": reference.seconds / t.seconds if reference else None,
            "ratio_to_cupy": library.seconds / t.seconds,
            "correct": correct[name],
        }
        for name, t in timings.items()
    ]


def _language(name: str) -> str:
    return {"cuda": "CUDA C++", "numba": "Numba"}.get(name.partition("_")[0], "library")


def cub_version() -> str | None:
    """Return CUB's version where it could be compiled, and how; None elsewhere."""
    return f"CUB {cub_reference.version()}, compiled by nvcc" if cub_reference.available() else None


def copy_gbps() -> float:
    """Return the bandwidth of a device-to-device copy, GB/s of bytes read and written."""
    copy = copy_candidate()
    return time_gpu(copy.function, copy.arguments, runs=20).bandwidth(2 * COPY_BYTES)


def accelerators() -> dict[str, Any]:
    """Return which way cupy.histogram takes: CuPy's accelerators for its routines, and the version of CuPy."""
    cupy = cupy_on_gpu()
    from cupy._core import _accelerator

    names = {_accelerator.ACCELERATOR_CUB: "cub", _accelerator.ACCELERATOR_CUTENSOR: "cutensor"}
    used = [names.get(code, str(code)) for code in _accelerator.get_routine_accelerators()]
    return {"cupy": cupy.__version__, "routines": used, "variable": os.environ.get("CUPY_ACCELERATORS")}


def ways_time(own: Any, shift: int) -> KnownTime | None:
    """Return the time of a learner's `own(x, out, shift)` on 2^22 elements; None without a GPU: not recorded."""
    return recordings.time_of(own, blocks(PATHS_N), BLOCK, lambda: (*_paths_arrays(), shift))


def paths_time(ways: int, by: str) -> KnownTime | None:
    """Return the time of the course's paths on as many, with `ways` ways by "lane" or "warp"."""
    return recordings.time_of(
        *(kernel(f"cuda_paths<{ways}>").function(), blocks(PATHS_N), BLOCK),
        lambda: divergence.paths_arguments(*_paths_arrays(), by, PATHS_STEPS),
        key="path_costs",
        find=lambda value: next(r[f"by_{by}_seconds"] for r in value["rows"] if r["ways"] == ways),
        of=f"paths<{ways}> by {by}",
    )


def _paths_arrays() -> tuple[Any, Any]:
    x = cupy_on_gpu().random.random(PATHS_N, dtype=np.float32)
    return x, x.copy()


MEASUREMENTS: dict[str, Callable[[], Any]] = {
    function.__name__: function
    for function in (order_of_sides, path_costs, task_times, histogram_table, selection_table, accelerators)
}
