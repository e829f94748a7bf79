"""Measure the simulator's speed: against Numba's own CUDA simulator, on a larger launch, by launch size, and for loops
of a single thread and of a few warps; and of four launches, the first and later ones.

`python -m evidence.simulator.speed` prints tables and one line of JSON, which speed.json keeps; with `--one-lane` only
those of single threads, with `--few-warps` only those of a block of one warp and one of four, with `--launches` only
the four (or those of them that are named behind it), each in a process of its own. Numba's simulator runs each CUDA
thread as a Python thread. It runs in a process of its own, since NUMBA_ENABLE_CUDASIM must be set before
Numba is imported; so does the large launch, whose memory is measured.
"""

from __future__ import annotations

import datetime
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from evidence.machine import machine

KEPT = Path(__file__).with_name("speed.json")
VECTOR = 1 << 14
MATRIX, LARGE_MATRIX = 64, 512
TILE = 16
SIZES = tuple(1 << n for n in range(12, 21, 2))  # threads
REPEATS = 15
MODES = {
    "checks off": {"checks": False, "counters": False},
    "checks on": {"checks": True, "counters": True},
}
LABELS = {"checks off": "checks off", "checks on": "all checks and counters"}
GOALS = {"checks off": 1000, "checks on": 300}  # times faster than Numba's
LARGE_GOALS = {"checks off": 3.0, "checks on": 10.0}  # seconds
FLAT = 1.25  # a launch may cost this much more per instruction than any smaller one, as timings scatter
MEMORY_GOAL = 2 << 30  # bytes
STEPS = 50_000  # of a loop by one thread
PAIRS = 3  # of its runs, by the arrays and as machine code in turn
ONE_LANE_GOAL = 10  # times faster than by the arrays
ONE_LANE = {
    "steps": "a chain of integer operations",
    "sums": "running sums from array to array",
    "shared": "sums into a shared array",
    "first": "a sum by one thread of 64, the others at a barrier",
}
FEW_WARPS_STEPS = 20_000  # of the loop of each thread
FEW_WARPS_GOAL = 20  # times faster than by the arrays, with checks
FEW_WARPS = {
    "sums": "running sums from array to array",
    "shared": "sums of shared words",
    "parting": "branches that part the lanes",
    "tiles": "tiles of shared memory between barriers",
    "chain": "a chain of integer operations",
}
LAUNCHES = {  # and the processor seconds of the third one on 2026-11-24, by NumPy alone; goal: a tenth
    "multiply": ("vector multiply of 10,000,000 elements", 0.89),
    "product": ("tiled product of 512 in Numba", 2.1),
    "wmma": ("wmma product of 256", 0.2),
    "wgmma_tma": ("wgmma product of 512", None),
}
LAUNCHED = 12  # times; of all but the first two, the shortest counts
NAMES = {
    "vector": f"vector multiply, {VECTOR:,} elements",
    "matmul": f"tiled matrix product, {MATRIX} × {MATRIX}",
}


cuda = None  # kernels must find it among their globals, where Numba's simulator puts its own module


def kernels(module) -> tuple:
    """Return vector multiply and tiled matrix product, made with `numba.cuda` or its stand-in."""
    global cuda
    cuda = module
    from numba import float32

    @cuda.jit
    def multiply(a, b, c):
        i = cuda.grid(1)
        if i < c.size:
            c[i] = a[i] * b[i]

    @cuda.jit
    def matmul(A, B, C):
        a = cuda.shared.array((TILE, TILE), float32)
        b = cuda.shared.array((TILE, TILE), float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = float32(0.0)
        for t in range(cuda.gridDim.x):
            a[ty, tx] = A[y, t * TILE + tx]
            b[ty, tx] = B[t * TILE + ty, x]
            cuda.syncthreads()
            for k in range(TILE):
                total += a[ty, k] * b[k, tx]
            cuda.syncthreads()
        C[y, x] = total

    return multiply, matmul


def vector(kernel, elements: int) -> SimpleNamespace:
    """Return a launch of vector multiply: kernel, grid, block, inputs, the correct result."""
    rng = np.random.default_rng(1)
    inputs = [rng.random(elements, dtype=np.float32) for _ in range(2)]
    return SimpleNamespace(kernel=kernel, grid=elements // 128, block=128, inputs=inputs, want=inputs[0] * inputs[1])


def product(kernel, size: int) -> SimpleNamespace:
    """Return a launch of the matrix product of `size` × `size` matrices."""
    rng = np.random.default_rng(1)
    inputs = [rng.random((size, size), dtype=np.float32) for _ in range(2)]
    tiles = (size // TILE, size // TILE)
    return SimpleNamespace(kernel=kernel, grid=tiles, block=(TILE, TILE), inputs=inputs, want=inputs[0] @ inputs[1])


def workloads(module) -> dict[str, SimpleNamespace]:
    """Return the launches that both simulators run."""
    multiply, matmul = kernels(module)
    return {"vector": vector(multiply, VECTOR), "matmul": product(matmul, MATRIX)}


def on_device(load: SimpleNamespace) -> tuple:
    """Return the launch's arguments on the device: inputs, and an output of NaNs."""
    return *(cuda.to_device(x) for x in load.inputs), cuda.to_device(np.full_like(load.want, np.nan))


def seconds(
    load: SimpleNamespace, repeats: int, launch=None, typical=statistics.median, clock=time.perf_counter
) -> float:
    """Return the median time of a launch with arrays already on the device. `launch(load, args)` replaces
    `load.kernel[…]`, `typical` the median, `clock` the clock. Raises AssertionError if the result is wrong.
    """
    launch = launch or (lambda load, args: load.kernel[load.grid, load.block](*args))
    arguments = on_device(load)
    times = []
    for _ in range(repeats):
        start = clock()
        launch(load, arguments)
        cuda.synchronize()
        times.append(clock() - start)
    np.testing.assert_allclose(arguments[-1].copy_to_host(), load.want, rtol=1e-5)
    return typical(times)


def numba_seconds() -> dict[str, float]:
    """Measure seconds in Numba's simulator, one launch each."""
    return _in_a_process("--numba", NUMBA_ENABLE_CUDASIM="1")


def warplab_seconds(mode: str) -> dict[str, float]:
    """Measure seconds in this simulator, after compilation and translation."""
    from warplab.dropin import numba_cuda as cuda

    result = {}
    for name, load in workloads(cuda).items():
        seconds(load, 2, _launcher(mode))
        result[name] = seconds(load, REPEATS, _launcher(mode))
    return result


def large(mode: str) -> dict[str, float]:
    """Run the large product once, after a small one that compiles and translates: seconds and peak memory."""
    from warplab.dropin import numba_cuda as cuda

    _, matmul = kernels(cuda)
    seconds(product(matmul, 2 * TILE), 1, _launcher(mode))
    took = seconds(product(matmul, LARGE_MATRIX), 1, _launcher(mode))
    return {"seconds": took, "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}


def by_size(mode: str) -> dict[int, float]:
    """Measure nanoseconds of processor time per executed thread instruction of vector multiply, by threads."""
    from warplab.dropin import numba_cuda as cuda
    from warplab.launch.simulate import simulate

    multiply, _ = kernels(cuda)
    result = {}
    for threads in SIZES:
        load = vector(multiply, threads)
        executed = simulate(multiply, load.grid, load.block, on_device(load)).counts.thread_instructions
        # Other work on the machine adds to most times, but hardly to the shortest processor time.
        result[threads] = 1e9 * seconds(load, REPEATS, _launcher(mode), min, time.process_time) / executed
    return result


def launch_seconds(name: str) -> list[float]:
    """Measure processor seconds of launches one after the other, of one of `LAUNCHES`. Raises AssertionError if the
    result is wrong."""
    from kernels.tensor_core.ladder import STEPS
    from warplab import cp
    from warplab.dropin import numba_cuda as cuda

    if name in STEPS:
        size = 256 if name == "wmma" else 512
        halves = [np.random.default_rng(k).uniform(-1, 1, (size, size)).astype(np.float16) for k in range(2)]
        a, b, c = *map(cp.asarray, halves), cp.zeros((size, size), np.float32)
        launch, result = (lambda: STEPS[name].launch(a, b, c)), (lambda: c.get())
        want = halves[0].astype(np.float32) @ halves[1].astype(np.float32)
    else:
        multiply, matmul = kernels(cuda)
        load = vector(multiply, 10_000_000) if name == "multiply" else product(matmul, LARGE_MATRIX)
        arguments, want = on_device(load), load.want
        launch = lambda: load.kernel[load.grid, load.block](*arguments)  # noqa: E731
        result = arguments[-1].copy_to_host
    times = []
    for _ in range(LAUNCHED):
        start = time.process_time()
        launch()
        times.append(time.process_time() - start)
    np.testing.assert_allclose(result(), want, rtol=1e-4, atol=1e-3)
    return times


def one_lane_launches() -> dict[str, tuple]:
    """Return launches in which one thread goes round a loop: kernel, threads of its only block, arguments."""
    from warplab.dropin import numba_cuda as cuda

    @cuda.jit
    def steps(out, n):
        x = np.uint32(1)
        for _ in range(n):
            x = np.uint32(x * np.uint32(1664525) + np.uint32(1013904223)) ^ (x >> np.uint32(7))
        out[0] = x

    @cuda.jit
    def sums(a, out):
        total = np.float32(0)
        for i in range(a.size):
            total += a[i]
            out[i] = total

    @cuda.jit
    def shared(a, out):
        bins = cuda.shared.array(64, np.float32)
        for i in range(64):
            bins[i] = 0
        for i in range(a.size):
            bins[i & 63] += a[i]
        for i in range(64):
            out[i] = bins[i]

    @cuda.jit
    def first(a, out):
        if cuda.threadIdx.x == 0:
            total = np.float32(0)
            for i in range(a.size):
                total += a[i]
            out[0] = total
        cuda.syncthreads()
        out[1 + cuda.threadIdx.x] = out[0]

    values = cuda.to_device(np.random.default_rng(1).random(STEPS, dtype=np.float32))
    out = cuda.to_device(np.zeros(STEPS, np.float32))
    state = cuda.to_device(np.zeros(1, np.uint32))
    return {
        "steps": (steps, 1, (state, STEPS)),
        "sums": (sums, 1, (values, out)),
        "shared": (shared, 1, (values, out)),
        "first": (first, 64, (values, out)),
    }


def one_lane(mode: str) -> dict[str, tuple[float, float]]:
    """Measure processor seconds of each loop of a single thread, by the arrays and as machine code: medians of `PAIRS`
    runs, taken in turn."""
    from warplab.launch.simulate import simulate

    result = {}
    for name, (kernel, threads, arguments) in one_lane_launches().items():
        times: tuple[list[float], list[float]] = ([], [])
        for turn in range(1 + PAIRS):
            for narrow in (False, True):
                start = time.process_time()
                simulate(kernel, 1, threads, arguments, machine_code=narrow, **MODES[mode])
                if turn:  # the first compiles and translates
                    times[narrow].append(time.process_time() - start)
        result[name] = statistics.median(times[False]), statistics.median(times[True])
    return result


def few_warps_launches(threads: int) -> dict[str, tuple]:
    """Return launches of one block whose threads all go round a loop: kernel and arguments."""
    from warplab.dropin import numba_cuda as cuda

    @cuda.jit
    def sums(a, out, n):
        total = np.float32(0)
        for i in range(n):
            k = i * cuda.blockDim.x + cuda.threadIdx.x
            total += a[k]
            out[k] = total

    @cuda.jit
    def shared(a, out, n):
        words = cuda.shared.array(1024, np.float32)
        for i in range(cuda.threadIdx.x, 1024, cuda.blockDim.x):
            words[i] = a[i]
        cuda.syncthreads()
        total = np.float32(0)
        for i in range(n):
            total += words[(cuda.threadIdx.x * 33 + i) & 1023]
        out[cuda.threadIdx.x] = total

    @cuda.jit
    def parting(a, out, n):
        x = np.uint32(cuda.threadIdx.x)
        for i in range(n):
            x = x * np.uint32(3) + np.uint32(1) if x & np.uint32(1) else x >> np.uint32(1)
            if x < 5:
                x += np.uint32(a[i & 63] * 100)
        out[cuda.threadIdx.x] = x

    @cuda.jit
    def tiles(a, out, n):
        words = cuda.shared.array(1024, np.float32)
        total = np.float32(0)
        for t in range(n // 32):
            words[cuda.threadIdx.x] = a[t * cuda.blockDim.x + cuda.threadIdx.x]
            cuda.syncthreads()
            for i in range(n // (n // 32)):
                total += words[(cuda.threadIdx.x + i) & (cuda.blockDim.x - 1)]
            cuda.syncthreads()
        out[cuda.threadIdx.x] = total

    @cuda.jit
    def chain(a, out, n):
        x = np.uint32(cuda.threadIdx.x)
        for _ in range(n):
            x = np.uint32(x * np.uint32(1664525) + np.uint32(1013904223)) ^ (x >> np.uint32(7))
        out[cuda.threadIdx.x] = x

    values = cuda.to_device(np.random.default_rng(1).random(FEW_WARPS_STEPS * threads, dtype=np.float32))
    out = cuda.to_device(np.zeros(FEW_WARPS_STEPS * threads, np.float32))
    kernels = {"sums": sums, "shared": shared, "parting": parting, "tiles": tiles, "chain": chain}
    return {name: (kernel, (values, out, FEW_WARPS_STEPS)) for name, kernel in kernels.items()}


def few_warps(mode: str, threads: int) -> dict[str, tuple[float, float, float]]:
    """Measure processor seconds of loops of one block: by the arrays, as machine code, each the median of `PAIRS` runs
    taken in turn, and of the first launch, which compiles the loop."""
    from warplab.launch.simulate import simulate

    result = {}
    for name, (kernel, arguments) in few_warps_launches(threads).items():
        times: tuple[list[float], list[float]] = ([], [])
        first = 0.0
        for turn in range(1 + PAIRS):
            for narrow in (False, True):
                start = time.process_time()
                simulate(kernel, 1, threads, arguments, machine_code=narrow, **MODES[mode])
                took = time.process_time() - start
                if turn:
                    times[narrow].append(took)
                elif narrow:
                    first = took
        result[name] = statistics.median(times[False]), statistics.median(times[True]), first
    return result


def _launcher(mode: str):
    from warplab.launch.simulate import simulate

    def launch(load: SimpleNamespace, arguments: tuple) -> None:
        simulate(load.kernel, load.grid, load.block, arguments, **MODES[mode])

    return launch


def _in_a_process(*arguments: str, **environment: str):
    """Return what this module prints as JSON when it is run anew."""
    command = [sys.executable, "-m", "evidence.simulator.speed", *arguments]
    ran = subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, text=True)
    return json.loads(ran.stdout)


def _compare() -> tuple[dict, bool]:
    print("Numba's simulator (one Python thread per CUDA thread) …", flush=True)
    theirs = numba_seconds()
    ours = {mode: warplab_seconds(mode) for mode in MODES}
    print(f"{'':38} {'Numba':>10} {'checks off':>12} {'ratio':>8} {LABELS['checks on']:>24} {'ratio':>8}")
    ratios, good = {}, True
    for name, label in NAMES.items():
        row = f"{label:38} {theirs[name]:8.2f} s"
        for mode, width in (("checks off", 10), ("checks on", 22)):
            ratio = theirs[name] / ours[mode][name]
            ratios[f"{name}, {mode}"] = round(ratio)
            good &= ratio >= GOALS[mode]
            row += f" {1e3 * ours[mode][name]:{width - 1}.2f} ms {ratio:7,.0f}×"
        print(row)
    print(f"goals: {GOALS['checks off']:,}× with checks off, {GOALS['checks on']}× with all on; met: {good}\n")
    rounded = {mode: {name: _three_digits(t) for name, t in times.items()} for mode, times in ours.items()}
    figures = {"numba_seconds": {n: _three_digits(t) for n, t in theirs.items()}, "seconds": rounded, "ratios": ratios}
    return figures, good


def _run_large() -> tuple[dict, bool]:
    print(f"tiled matrix product, {LARGE_MATRIX} × {LARGE_MATRIX}: {LARGE_MATRIX**2:,} threads")
    figures, good = {}, True
    for mode, goal in LARGE_GOALS.items():
        found = _in_a_process("--large", mode)
        good &= found["seconds"] <= goal and found["peak_bytes"] <= MEMORY_GOAL
        print(
            f"  {LABELS[mode]:26} {found['seconds']:6.2f} s (goal {goal:g} s), "
            f"peak memory {found['peak_bytes'] / 2**30:.2f} GiB (goal {MEMORY_GOAL >> 30} GiB)"
        )
        figures[mode] = {"seconds": _three_digits(found["seconds"]), "peak_bytes": found["peak_bytes"]}
    print(f"goals met: {good}\n")
    return figures, good


def _run_sizes() -> tuple[dict, bool]:
    print("nanoseconds of processor time per executed thread instruction, vector multiply")
    print(f"  {'threads':26} " + " ".join(f"{n:>9,}" for n in SIZES))
    figures, good = {}, True
    for mode in MODES:
        costs = by_size(mode)
        falls = all(costs[n] <= FLAT * min(costs[m] for m in SIZES if m <= n) for n in SIZES)
        good &= falls
        print(f"  {LABELS[mode]:26} " + " ".join(f"{costs[n]:9.2f}" for n in SIZES) + f"  flat or falling: {falls}")
        figures[mode] = {str(n): _three_digits(cost) for n, cost in costs.items()}
    print()
    return figures, good


def _run_one_lane() -> tuple[dict, bool]:
    print(f"processor time of {STEPS:,} steps by one thread: by the arrays, as machine code")
    figures, good = {}, True
    for mode in MODES:
        print(f"  {LABELS[mode]}")
        figures[mode] = {}
        for name, (arrays, narrow) in one_lane(mode).items():
            good &= arrays >= ONE_LANE_GOAL * narrow
            print(f"    {ONE_LANE[name]:52} {arrays:7.3f} s {narrow:7.3f} s {arrays / narrow:6.1f}×")
            figures[mode][name] = {"arrays_s": _three_digits(arrays), "narrow_s": _three_digits(narrow)}
    print(f"goal: {ONE_LANE_GOAL}×; met: {good}\n")
    return figures, good


def _run_few_warps() -> tuple[dict, bool]:
    steps = f"{FEW_WARPS_STEPS:,} steps by each thread of a block"
    print(f"processor time of {steps}: by the arrays, as machine code, and its first launch")
    figures, good = {}, True
    for mode in MODES:
        figures[mode] = {}
        for threads in (32, 128):
            print(f"  {LABELS[mode]}, {threads} threads")
            rows = figures[mode][str(threads)] = {}
            for name, (arrays, narrow, first) in few_warps(mode, threads).items():
                if mode == "checks on" and threads == 32:
                    good &= arrays >= FEW_WARPS_GOAL * narrow
                times = f"{arrays:7.3f} s {narrow:7.3f} s {arrays / narrow:6.1f}×  {first:7.3f} s"
                print(f"    {FEW_WARPS[name]:52} {times}")
                rows[name] = {"arrays_s": arrays, "narrow_s": narrow, "first_s": first}
                rows[name] = {what: _three_digits(took) for what, took in rows[name].items()}
    print(f"goal: {FEW_WARPS_GOAL}× for one warp with checks; met: {good}\n")
    return figures, good


def _run_launches(names: list[str]) -> dict:
    print("processor seconds of the first launch, the second, and the shortest of the next")
    figures = {}
    for name in names:
        what, before = LAUNCHES[name]
        first, second, *more = _in_a_process("--launch", name, WARPLAB_BACKEND="simulator")
        goal = f"  goal {before / 10:.3f}" if before else ""
        print(f"  {what:40} {first:7.3f} {second:7.3f} {min(more):7.3f}{goal}", flush=True)
        figures[name] = [_three_digits(t) for t in (first, second, min(more))]
    return figures


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def main(arguments: list[str]) -> int:
    if arguments == ["--numba"]:
        from numba import cuda

        print(json.dumps({name: seconds(load, 1) for name, load in workloads(cuda).items()}))
        return 0
    if arguments[:1] == ["--large"]:
        print(json.dumps(large(arguments[1])))
        return 0
    if arguments[:1] == ["--launch"]:
        print(json.dumps(launch_seconds(arguments[1])))
        return 0
    versions = {name: metadata.version(name) for name in ("numba", "numba-cuda", "numpy", "llvmlite")}
    about = {"device": machine(), "date": f"{datetime.date.today()}", "versions": versions}
    if arguments[:1] == ["--launches"]:
        print(
            json.dumps({"benchmark": "launches", "launches": _run_launches(arguments[1:] or list(LAUNCHES)), **about})
        )
        return 0
    if arguments == ["--one-lane"]:
        figures, good = _run_one_lane()
        print(json.dumps({"benchmark": "loops of one lane", "one_lane": figures, **about}))
        return 0 if good else 1
    if arguments == ["--few-warps"]:
        figures, good = _run_few_warps()
        print(json.dumps({"benchmark": "loops of few warps", "few_warps": figures, **about}))
        return 0 if good else 1
    compared, fast = _compare()
    large_launch, large_good = _run_large()
    sizes, flat = _run_sizes()
    alone, alone_good = _run_one_lane()
    few, few_good = _run_few_warps()
    figures = {**compared, "large": large_launch, "nanoseconds_a_thread_instruction": sizes, "one_lane": alone}
    figures["few_warps"] = few
    figures = {"benchmark": "simulator speed", **figures, **about}
    print(json.dumps(figures))
    KEPT.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    return 0 if fast and large_good and flat and alone_good and few_good else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
