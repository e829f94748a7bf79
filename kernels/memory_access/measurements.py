"""What lab 02 measures on a GPU: its tables of kernels (`tables`) and a sweep for each plot, in JSON types.

Keys end in their unit: `seconds`, `bytes`, `gbps` (1e9 bytes per second). Times are medians.
`MEASUREMENTS` names them as `recordings.json` does.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.memory_access import patterns, recordings, tables
from kernels.memory_access.sources import BLOCK, FLIGHTS, RADII, SOURCES, in_flight
from kernels.memory_access.unified_memory import unified_memory
from warpcourse.bench.timing import Candidate, cupy_on_gpu, fitting, l2_bytes, time_gpu, time_together
from warplab.estimating.beside import KnownTime

STRIDES = (*range(1, 9), 10, 12, 14, 16, 20, 24, 28, 32)
OFFSETS = (*range(17), 24, 31, 32)
WARPS = ((128, 1), (256, 1), (256, 2), (256, 4), (256, 6), (256, 8))  # threads per block, blocks per multiprocessor
LINE = 128  # bytes; nodes of the chase are one line apart
REGISTERS = 65536  # of a multiprocessor


def strides(n: int = 2**25) -> dict[str, Any]:
    """Measure a copy of n floats whose loads are `stride` elements apart. `gbps`: 8 bytes per element of the result."""
    cupy = cupy_on_gpu()
    n = fitting(n, 2 * STRIDES[-1])
    a, out = cupy.random.random(n * STRIDES[-1], dtype=np.float32), cupy.empty(n, np.float32)
    return {"n": n, "rows": _patterns("stride", STRIDES, a, out, lambda k: (k, 0))}


def offsets(n: int = 2**27) -> dict[str, Any]:
    """Measure a copy of n floats whose loads begin `offset` elements after a line of 128 bytes."""
    cupy = cupy_on_gpu()
    n = fitting(n, 3)
    a, out = cupy.random.random(n + OFFSETS[-1], dtype=np.float32), cupy.empty(n, np.float32)
    return {"n": n, "rows": _patterns("offset", OFFSETS, a, out, lambda k: (1, k))}


def _patterns(
    what: str, values: tuple[int, ...], a: Any, out: Any, pattern: Callable[[int], tuple[int, int]]
) -> list[dict[str, Any]]:
    candidates = {}
    for value in values:
        stride, offset = pattern(value)
        out.fill(np.nan)
        patterns.copy_strided(a, out, stride, offset)
        if not bool((out == a[offset : offset + (out.size - 1) * stride + 1 : stride]).all()):
            raise AssertionError(f"the copy with stride {stride} and offset {offset} is wrong")
        arguments = (a, out, np.uint64(out.size), np.int32(stride), np.int32(offset))
        candidates[value] = _candidate(
            SOURCES.function("access.cu", "copy_strided"), math.ceil(out.size / BLOCK), BLOCK, arguments
        )
    timings = time_together(candidates, rounds=5, runs=7)
    return [{what: value, "seconds": t.seconds, "gbps": t.bandwidth(2 * out.nbytes)} for value, t in timings.items()]


def _candidate(function: Any, blocks: int, block: int, arguments: tuple) -> Candidate:
    return Candidate(lambda *arguments: function((blocks,), (block,), arguments), [arguments])


def stencils(n: int = 2**27) -> dict[str, Any]:
    """Measure the claim's experiment: a mean over 2 * radius + 1 neighbours, through the L1 cache and shared memory.

    `loaded_gbps` counts what the threads ask for, 4 bytes per neighbour; `gbps` 8 bytes per element: read once, written
    once. `l1_of_shared`: speed through L1 as a share of the speed through shared memory. `heat`: five points in two
    dimensions, 16384 × 16384 or less.
    """
    cupy = cupy_on_gpu()
    n = fitting(n, 3)
    out = cupy.empty(n, np.float32)
    rows = []
    for radius in RADII:
        a = cupy.random.random(n + 2 * radius, dtype=np.float32)
        results = {}
        for kind in ("l1", "shared"):
            out.fill(np.nan)
            results[kind] = patterns.mean(a, out, radius, kind).copy()
        if not bool((results["l1"] == results["shared"]).all()):
            raise AssertionError(f"the two stencils of radius {radius} differ")
        del results
        rows.append({"radius": radius, **_two_ways(lambda kind: patterns.launch_mean(a, out, radius, kind), n, radius)})  # noqa: B023
    side = 2**14
    while fitting(side * side, 3) < side * side:
        side //= 2
    a, out = cupy.random.random((side + 2, side + 2), dtype=np.float32), cupy.empty((side, side), np.float32)
    expected = 0.25 * ((a[:-2, 1:-1] + a[2:, 1:-1]) + (a[1:-1, :-2] + a[1:-1, 2:]))
    for kind in ("l1", "shared"):
        out.fill(np.nan)
        if not bool((patterns.heat(a, out, kind) == expected).all()):
            raise AssertionError(f"the heat kernel through {kind} is wrong")
    del expected
    heat = _two_ways(lambda kind: patterns.launch_heat(a, out, kind), side * side, 1.5)
    return {"n": n, "rows": rows, "heat": {"rows": side, "columns": side, **heat}}


def _two_ways(launch: Callable[[str], None], n: int, radius: float) -> dict[str, Any]:
    candidates = {kind: Candidate(launch, [(kind,)]) for kind in ("l1", "shared")}
    timings = time_together(candidates, rounds=5, runs=7)
    result: dict[str, Any] = {}
    for kind, timing in timings.items():
        result[kind] = {
            "seconds": timing.seconds,
            "gbps": timing.bandwidth(8 * n),
            "loaded_gbps": timing.bandwidth(round(4 * n * (2 * radius + 1))),
        }
    return result | {"l1_of_shared": timings["shared"].seconds / timings["l1"].seconds}


def working_sets(smallest: int = 2**18, largest: int = 2**30) -> dict[str, Any]:
    """Measure the bandwidth of reading by the bytes that are read again and again, past the L1 caches."""
    cupy = cupy_on_gpu()
    largest = min(largest, 4 * fitting(largest // 4, 2))
    a = cupy.random.random(largest // 4, dtype=np.float32)
    blocks = cupy.cuda.Device().attributes["MultiProcessorCount"] * 8
    out = cupy.empty(blocks * BLOCK, np.float32)
    sizes = {smallest << k for k in range(40)} | {k << 20 for k in range(4, 64, 4)}
    rows = []
    for nbytes in sorted(size for size in sizes if size <= largest):
        loads = max(512, math.ceil(2 * nbytes / (blocks * BLOCK * 16)))
        function = SOURCES.function("access.cu", "read_again")
        arguments = (a, np.uint32(nbytes // 16), np.int32(loads), out)
        timing = time_gpu(*_call(_candidate(function, blocks, BLOCK, arguments)), runs=9)
        rows.append({"bytes": nbytes, "gbps": timing.bandwidth(blocks * BLOCK * loads * 16)})
    return {"l2_bytes": l2_bytes(), "rows": rows}


def _call(candidate: Candidate) -> tuple[Callable[..., Any], Any]:
    return candidate.function, candidate.arguments


def bytes_in_flight(n: int = 2**27) -> dict[str, Any]:
    """Measure the bandwidth of a copy of n floats by bytes in flight: of a load, by loads per thread, by warps.

    `in_flight_bytes`: that the threads of one multiprocessor have asked for at a time. Left out: grids of which not all
    blocks fit on the GPU at once.
    """
    cupy = cupy_on_gpu()
    n = fitting(n, 3)
    multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    a, out = cupy.random.random(n, dtype=np.float32), cupy.empty(n, np.float32)
    rows = []
    for width, items in FLIGHTS:
        function = SOURCES.function("access.cu", in_flight(width, items))
        for block, blocks in WARPS:
            if -(-function.num_regs // 8) * 8 * block * blocks > REGISTERS:
                continue
            out.fill(np.nan)
            patterns.copy_in_flight(a, out, width, items, multiprocessors * blocks, block)
            if not bool((out == a).all()):
                raise AssertionError(f"the copy with {items} loads of {width} bytes is wrong")
            arguments = (a, out, np.uint64(n * 4 // width))
            timing = time_gpu(*_call(_candidate(function, multiprocessors * blocks, block, arguments)), runs=7)
            rows.append(
                {
                    "load_bytes": width,
                    "loads": items,
                    "warps": block * blocks // 32,
                    "in_flight_bytes": width * items * block * blocks,
                    "gbps": timing.bandwidth(2 * a.nbytes),
                }
            )
    return {"n": n, "multiprocessors": multiprocessors, "rows": rows}


def latencies(smallest: int = 2**14, largest: int = 2**30, steps: int = 2**14) -> list[dict[str, Any]]:
    """Measure seconds of one load that waits for the one before, by the bytes over which they spread at random."""
    cupy = cupy_on_gpu()
    largest = min(largest, 4 * fitting(largest // 4, 3))
    stream = cupy.cuda.get_current_stream()
    function, end = SOURCES.function("access.cu", "chase"), cupy.empty(1, np.uint32)
    result = []
    size = smallest
    while size <= largest:
        order = cupy.random.permutation(size // LINE).astype(np.uint32) * np.uint32(LINE // 4)
        following = cupy.zeros(size // 4, np.uint32)
        following[order] = cupy.roll(order, -1)
        visited = cupy.asnumpy(order)

        def run(start: int, count: int, following: Any = following, visited: Any = visited) -> float:
            before, after = cupy.cuda.Event(), cupy.cuda.Event()
            before.record()
            function((1,), (1,), (following, visited[start % visited.size], np.int32(count), end))
            after.record()
            stream.synchronize()
            if int(end[0]) != visited[(start + count) % visited.size]:
                raise AssertionError("the chase ended at a wrong place")
            return cupy.cuda.get_elapsed_time(before, after) / 1e3

        run(0, min(visited.size, 2**18))  # into the caches, as far as they hold it
        # Each run goes on where the one before ended, so that a large chain is not found in the cache.
        times = [run((2**18 + k * steps) % visited.size, steps) for k in range(5)]
        result.append({"bytes": size, "seconds": float(np.median(times)) / steps})
        size *= 4
    return result


def bank_conflicts(repeats: int = 512) -> dict[str, Any]:
    """Measure loads from shared memory by the stride of the lanes, in words. `ways`: wavefronts that one load needs.

    `gbps`: 4 bytes per load, over all multiprocessors.
    """
    cupy = cupy_on_gpu()
    blocks = cupy.cuda.Device().attributes["MultiProcessorCount"] * 8
    out = cupy.empty(blocks * BLOCK, np.float32)
    strides = range(patterns.MAX_STRIDE + 1)
    function = SOURCES.function("banks.cu", "read_banks")
    candidates = {
        stride: _candidate(function, blocks, BLOCK, (out, np.int32(stride), np.int32(repeats))) for stride in strides
    }
    timings = time_together(candidates, rounds=3, runs=7)
    rows = []
    for stride, timing in timings.items():
        ways = math.gcd(stride, 32) if stride else 1
        nbytes = blocks * BLOCK * 8 * repeats * 4
        rows.append({"stride": stride, "ways": ways, "seconds": timing.seconds, "gbps": timing.bandwidth(nbytes)})
    return {"rows": rows}


def transpose_time(kernel: Any, block_rows: int, recorded: str) -> KnownTime | None:
    """Return the time of a learner's `kernel(in, out, rows, columns)`, 16384 × 16384, by blocks of 32 × 8 threads.

    `block_rows`: of the 32 columns that a block moves. `recorded`: the course's kernel that has such blocks, whose time
    is shown without a GPU.
    """

    def arguments() -> tuple:
        cupy = cupy_on_gpu()
        a = cupy.random.random((tables.SIDE, tables.SIDE), dtype=np.float32)
        return a, cupy.empty_like(a), np.int32(tables.SIDE), np.int32(tables.SIDE)

    return recordings.time_of(
        *(kernel, (tables.SIDE // 32, tables.SIDE // block_rows), (32, 8), arguments),
        key="transpose_table",
        find=lambda value: next(r["seconds"] for r in value["kernels"] if r["kernel"] == recorded),
        of=f"the course's {recorded}",
    )


MEASUREMENTS: dict[str, Callable[[], Any]] = {
    "transpose_table": tables.transpose_table,
    "transpose_shapes": tables.transpose_shapes,
    "transpose_drawn": tables.transpose_drawn,
    "sum_table": tables.sum_table,
    "scan_table": tables.scan_table,
    "scan_lengths": tables.scan_lengths,
    "processes": tables.processes,
    "layout_table": tables.layout_table,
    "strides": strides,
    "offsets": offsets,
    "stencils": stencils,
    "working_sets": working_sets,
    "bytes_in_flight": bytes_in_flight,
    "latencies": latencies,
    "bank_conflicts": bank_conflicts,
    "unified_memory": unified_memory,
}
