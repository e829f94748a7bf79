"""What lab 01 measures on a GPU: one function per table or plot, each returning numbers in JSON types.

Keys end in their unit: `seconds`, `bytes`, `gbps` (1e9 bytes per second). Times are medians.
`MEASUREMENTS` names them as `recordings.json` does.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kernels.vector_multiply import prediction, recordings
from kernels.vector_multiply.host_pointer import host_pointer
from kernels.vector_multiply.product import BLOCK, KERNELS, ProductKernel
from warpcourse.bench import random_inputs
from warpcourse.bench.timing import (
    Candidate,
    copy_on_device,
    cupy_on_gpu,
    fitting,
    native,
    sets_beyond_l2,
    time_gpu,
    time_host,
    time_together,
)
from warplab.estimating.beside import KnownTime

N = 2**28
BYTES_PER_ELEMENT = 12  # two float32 read, one written
SWEEP_SETS = 40


def largest_n(n: int = N) -> int:
    """Return the largest power of two up to `n` whose four float32 buffers fit in half of the free GPU memory."""
    return fitting(n, 4)


def random_vector(n: int) -> np.ndarray:
    """Return float32 of shape (n,), uniform in [-1, 1), from a fresh seed."""
    return random_inputs.generator().random(n, dtype=np.float32) * np.float32(2) - np.float32(1)


def buffers(n: int) -> tuple[Any, Any, Any]:
    """Return device arrays a, b (random) and out (NaN), float32 of shape (n,)."""
    cupy = cupy_on_gpu()
    return cupy.asarray(random_vector(n)), cupy.asarray(random_vector(n)), cupy.full(n, np.nan, np.float32)


def _argument_sets(kernel: ProductKernel, a: Any, b: Any, out: Any, n: int, runs: int) -> list[tuple]:
    """Return arguments of `kernel` on views of n elements that lie apart: as many sets as needed, if they fit."""
    stride = -(-n // 128) * 128  # 512 bytes: the alignment that an allocation has
    count = min(sets_beyond_l2(BYTES_PER_ELEMENT * n, runs), out.size // stride)
    views = [[x[k * stride : k * stride + n] for x in (a, b, out)] for k in range(count)]
    return [kernel.arguments(*(native(kernel.language, x) for x in view)) for view in views]


def _candidate(kernel: ProductKernel, sets: list[tuple], blocks: int, block: int = BLOCK) -> Candidate:
    return Candidate(lambda *arguments: kernel.launch(blocks, block, arguments), sets)


def ten_launches(n: int = N, launches: int = 10) -> dict[str, Any]:
    """Measure the claim's mistake: seconds until ten launches have returned, and until the GPU has finished them."""
    cupy = cupy_on_gpu()
    n = largest_n(n)
    a, b, out = buffers(n)
    kernel = KERNELS["cuda_scalar"]
    function, arguments = kernel.function(), kernel.arguments(a, b, out)
    grid, block = (kernel.blocks(n, BLOCK),), (BLOCK,)
    samples: dict[str, list[float]] = {"returned": [], "finished": [], "events": []}
    before, after = cupy.cuda.Event(), cupy.cuda.Event()
    for run in range(22):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(launches):
            function(grid, block, arguments)
        returned = time.perf_counter()
        cupy.cuda.Device().synchronize()
        finished = time.perf_counter()
        before.record()
        for _ in range(launches):
            function(grid, block, arguments)
        after.record()
        after.synchronize()
        if run >= 2:  # two runs to warm up
            samples["returned"].append(returned - start)
            samples["finished"].append(finished - start)
            samples["events"].append(cupy.cuda.get_elapsed_time(before, after) / 1e3)
    seconds = {name: float(np.median(times)) for name, times in samples.items()}
    nbytes = launches * BYTES_PER_ELEMENT * n
    return {
        "n": n,
        "launches": launches,
        "bytes": nbytes,
        "returned_seconds": seconds["returned"],
        "finished_seconds": seconds["finished"],
        "event_seconds": seconds["events"],
        "apparent_gbps": nbytes / seconds["returned"] / 1e9,
        "gbps": nbytes / seconds["events"] / 1e9,
    }


def copies(smallest: int = 2**12, largest: int = 2**30) -> list[dict[str, Any]]:
    """Measure copies by size: on the device (GB/s of bytes read + written), between host and device (bytes moved)."""
    cupy = cupy_on_gpu()
    import cupyx

    largest = min(largest, 4 * largest_n())
    device, device2 = (cupy.asarray(random_vector(largest // 4)).view(np.uint8) for _ in range(2))
    pageable = random_vector(largest // 4).view(np.uint8)
    pinned = cupyx.empty_pinned(largest, np.uint8)
    pinned[:] = pageable
    runtime, stream = cupy.cuda.runtime, cupy.cuda.get_current_stream().ptr
    to_device, to_host = runtime.memcpyHostToDevice, runtime.memcpyDeviceToHost

    def copy(destination: int, source: int, nbytes: int, kind: int) -> None:
        runtime.memcpyAsync(destination, source, nbytes, kind, stream)

    rows = []
    for nbytes in _powers(smallest, largest, 4):
        runs = 20 if nbytes < 2**28 else 7
        stride = max(nbytes, 2**12)
        sets = min(sets_beyond_l2(2 * nbytes, 40), largest // stride)
        on_device = [(device2[k * stride :][:nbytes], device[k * stride :][:nbytes]) for k in range(sets)]
        d, page, pin = device.data.ptr, pageable.ctypes.data, pinned.ctypes.data
        timings = {
            "device_to_device": time_gpu(copy_on_device, on_device, runs=40),
            "host_to_device_pageable": time_gpu(copy, [(d, page, nbytes, to_device)], runs=runs, queued=False),
            "host_to_device_pinned": time_gpu(copy, [(d, pin, nbytes, to_device)], runs=runs),
            "device_to_host_pageable": time_gpu(copy, [(page, d, nbytes, to_host)], runs=runs, queued=False),
            "device_to_host_pinned": time_gpu(copy, [(pin, d, nbytes, to_host)], runs=runs),
        }
        row: dict[str, Any] = {"bytes": nbytes}
        for name, timing in timings.items():
            row[f"{name}_gbps"] = timing.bandwidth(2 * nbytes if name == "device_to_device" else nbytes)
            row[f"{name}_seconds"] = timing.seconds
        rows.append(row)
    return rows


def kernel_table(n: int = N) -> dict[str, Any]:
    """Measure every kernel at n elements beside the device-to-device copy and cupy.multiply, timed in turns.

    Each output is poisoned with NaN first and then compared with NumPy's float32 product, bit by bit.
    """
    cupy = cupy_on_gpu()
    n = largest_n(n)
    host_a, host_b = random_vector(n), random_vector(n)
    expected = cupy.asarray(np.multiply(host_a, host_b)).view(np.uint32)
    a, b, out = cupy.asarray(host_a), cupy.asarray(host_b), cupy.empty(n, np.float32)
    candidates = {
        "copy": Candidate(copy_on_device, [(out, a)]),
        "cupy.multiply": Candidate(cupy.multiply, [(a, b, out)]),
    }
    launches = {"copy": (None, None), "cupy.multiply": (None, None)}
    for name, kernel in KERNELS.items():
        blocks = kernel.blocks(n, BLOCK)
        candidates[name] = _candidate(
            kernel, [kernel.arguments(*(native(kernel.language, x) for x in (a, b, out)))], blocks
        )
        launches[name] = (blocks, BLOCK)
    correct = {}
    for name, candidate in candidates.items():
        out.fill(np.nan)
        candidate.function(*candidate.arguments[0])
        correct[name] = bool((out.view(np.uint32) == (a.view(np.uint32) if name == "copy" else expected)).all())
    timings = time_together(candidates, rounds=7, runs=15)
    gbps = {name: t.bandwidth((8 if name == "copy" else BYTES_PER_ELEMENT) * n) for name, t in timings.items()}
    rows = [
        {
            "kernel": name,
            "language": KERNELS[name].language if name in KERNELS else "library",
            "blocks": launches[name][0],
            "block": launches[name][1],
            "seconds": timing.seconds,
            "fastest_seconds": timing.fastest,
            "slowest_seconds": timing.slowest,
            "runs": timing.runs,
            "gbps": gbps[name],
            "ratio_to_copy": gbps[name] / gbps["copy"],
            "ratio_to_cupy": gbps[name] / gbps["cupy.multiply"],
            "correct": correct[name],
        }
        for name, timing in timings.items()
    ]
    return {"n": n, "rows": rows}


def sizes(smallest: int = 2**10) -> list[dict[str, Any]]:
    """Measure seconds and GB/s by the number of elements, for the scalar and the float4 kernel."""
    largest = largest_n()
    a, b, out = buffers(largest)
    rows = []
    for n in _powers(smallest, largest, 2):
        row: dict[str, Any] = {"n": n}
        for name in ("cuda_scalar", "cuda_float4"):
            kernel = KERNELS[name]
            candidate = _candidate(kernel, _argument_sets(kernel, a, b, out, n, SWEEP_SETS), kernel.blocks(n, BLOCK))
            timing = time_gpu(candidate.function, candidate.arguments, runs=SWEEP_SETS)
            row[f"{name}_seconds"] = timing.seconds
            row[f"{name}_gbps"] = timing.bandwidth(BYTES_PER_ELEMENT * n)
        rows.append(row)
    return rows


def launch_overhead(launches: int = 200) -> dict[str, Any]:
    """Measure what a launch costs, with one element to multiply.

    `gpu_seconds`: on the GPU, when the next launch is already queued. `*_host_seconds`: until the launch has
    returned. `round_trip_seconds`: launch and wait.
    """
    cupy = cupy_on_gpu()
    a, b, out = buffers(1)

    def many(name: str) -> Callable[[], None]:
        kernel = KERNELS[name]
        function = kernel.function()
        arguments = kernel.arguments(*(native(kernel.language, x) for x in (a, b, out)))

        def launch_numba() -> None:
            for _ in range(launches):
                function[1, BLOCK](*arguments)

        def launch_cupy() -> None:
            for _ in range(launches):
                function((1,), (BLOCK,), arguments)

        return launch_numba if kernel.language == "Numba" else launch_cupy

    def host_seconds(work: Callable[[], None]) -> float:
        samples = []
        for run in range(12):
            cupy.cuda.Device().synchronize()
            start = time.perf_counter()
            work()
            if run >= 2:
                samples.append((time.perf_counter() - start) / launches)
        return float(np.median(samples))

    one = KERNELS["cuda_scalar"]
    function, arguments = one.function(), one.arguments(a, b, out)

    def launch_and_wait() -> None:
        function((1,), (BLOCK,), arguments)
        cupy.cuda.get_current_stream().synchronize()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Numba's, that one block leaves most of the GPU idle
        return {
            "gpu_seconds": time_gpu(many("cuda_scalar"), runs=10).seconds / launches,
            "cupy_host_seconds": host_seconds(many("cuda_scalar")),
            "numba_host_seconds": host_seconds(many("numba_scalar")),
            "round_trip_seconds": time_host(launch_and_wait, runs=200).seconds,
        }


def block_sizes(n: int = N) -> dict[str, Any]:
    """Measure GB/s by threads per block, for the scalar and the float4 kernel."""
    n = largest_n(n)
    a, b, out = buffers(n)
    candidates = {}
    for name in ("cuda_scalar", "cuda_float4"):
        kernel = KERNELS[name]
        for block in (32, 64, 128, 256, 512, 1024):
            arguments = [kernel.arguments(a, b, out)]
            candidates[name, block] = _candidate(kernel, arguments, kernel.blocks(n, block), block)
    timings = time_together(candidates, rounds=3, runs=10)
    rows = [
        {"kernel": name, "block": block, "gbps": t.bandwidth(BYTES_PER_ELEMENT * n)}
        for (name, block), t in timings.items()
    ]
    return {"n": n, "rows": rows}


def grid_sizes(n: int = N) -> dict[str, Any]:
    """Measure GB/s of the grid-stride kernel by the number of blocks; the last row has one thread per element."""
    cupy = cupy_on_gpu()
    n = largest_n(n)
    a, b, out = buffers(n)
    kernel = KERNELS["cuda_grid_stride"]
    multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    grids = [1, *(multiprocessors * k for k in (1, 2, 4, 8, 16, 32, 64, 128)), n // BLOCK]
    candidates = {blocks: _candidate(kernel, [kernel.arguments(a, b, out)], blocks) for blocks in grids if blocks > 1}
    timings = time_together(candidates, rounds=3, runs=10)
    one_block = _candidate(kernel, [kernel.arguments(a, b, out)], 1)
    timings[1] = time_gpu(one_block.function, one_block.arguments, runs=3)
    rows = [{"blocks": blocks, "gbps": timings[blocks].bandwidth(BYTES_PER_ELEMENT * n)} for blocks in grids]
    return {"n": n, "multiprocessors": multiprocessors, "block": BLOCK, "rows": rows}


def _powers(first: int, last: int, factor: int) -> Iterator[int]:
    while first <= last:
        yield first
        first *= factor


def multiply_time(kernel: Any, block: int, blocks: int | None = None) -> KnownTime | None:
    """Return the time of a learner's `kernel(a, b, out, n)` with blocks of `block` threads, on 2^28 elements.

    `blocks`: of the grid; None for one thread per element, whose recorded time is that of the course's cuda_scalar.
    """

    def seconds(value: Any) -> float:
        rate = next(r["gbps"] for r in value["rows"] if r["kernel"] == "cuda_scalar" and r["block"] == block)
        return BYTES_PER_ELEMENT * value["n"] / rate / 1e9

    return recordings.time_of(
        *(kernel, N // block if blocks is None else blocks, block, lambda: (*buffers(N), np.int32(N))),
        key="block_sizes",
        find=seconds if blocks is None else None,
        of="the course's cuda_scalar, whose indices have 64 bits",
    )


MEASUREMENTS: dict[str, Callable[[], Any]] = {
    function.__name__: function
    for function in (ten_launches, copies, kernel_table, sizes, launch_overhead, block_sizes, grid_sizes, host_pointer)
} | {"prediction_multiply": prediction.multiply_by_size, "prediction_dense": prediction.dense_layer_by_size}
