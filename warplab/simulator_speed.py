"""The simulator's speed against Numba's own CUDA simulator: the same kernels, the same launches, in one run.

`python -m warplab.simulator_speed` (make bench-simulator) prints a table and one line of JSON. Numba's simulator runs
each CUDA thread as a Python thread; it runs in a process of its own, since NUMBA_ENABLE_CUDASIM must be set before
Numba is imported.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np

VECTOR = 1 << 14
MATRIX = 64
TILE = 16
GOALS = {"checks off": 1000, "checks on": 300}
REPEATS = 15
NAMES = {
    "vector": f"vector multiply, {VECTOR:,} elements",
    "matmul": f"tiled matrix product, {MATRIX} × {MATRIX}",
}


cuda = None  # kernels must find it among their globals: that is where Numba's simulator puts its own module


def workloads(module) -> dict[str, SimpleNamespace]:
    """The kernels, made with `numba.cuda` or its stand-in, with launch configuration, inputs and reference."""
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

    rng = np.random.default_rng(1)
    v = [rng.random(VECTOR, dtype=np.float32) for _ in range(2)]
    m = [rng.random((MATRIX, MATRIX), dtype=np.float32) for _ in range(2)]
    tiles = (MATRIX // TILE, MATRIX // TILE)
    return {
        "vector": SimpleNamespace(kernel=multiply, grid=VECTOR // 128, block=128, inputs=v, want=v[0] * v[1]),
        "matmul": SimpleNamespace(kernel=matmul, grid=tiles, block=(TILE, TILE), inputs=m, want=m[0] @ m[1]),
    }


def seconds(load: SimpleNamespace, repeats: int, launch=None) -> float:
    """Median time of a launch, arrays already on the device; `launch(load, args)` where that is not `load.kernel[…]`.

    AssertionError if the result is wrong.
    """
    launch = launch or (lambda load, args: load.kernel[load.grid, load.block](*args))
    inputs = [cuda.to_device(x) for x in load.inputs]
    output = cuda.to_device(np.full_like(load.want, np.nan))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        launch(load, (*inputs, output))
        cuda.synchronize()
        times.append(time.perf_counter() - start)
    np.testing.assert_allclose(output.copy_to_host(), load.want, rtol=1e-5)
    return statistics.median(times)


def numba_seconds() -> dict[str, float]:
    """Seconds in Numba's simulator, one launch each."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-m", "warplab.simulator_speed", "--numba"]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def warplab_seconds(**options) -> dict[str, float]:
    """Seconds in this simulator, with `options` of a launch; compilation and translation are done before."""
    from warplab.dropin import cuda
    from warplab.kernel import simulate

    def launch(load, args) -> None:
        simulate(load.kernel, load.grid, load.block, args, **options)

    result = {}
    for name, load in workloads(cuda).items():
        seconds(load, 2, launch)
        result[name] = seconds(load, REPEATS, launch)
    return result


def main(arguments: list[str]) -> int:
    if arguments == ["--numba"]:
        from numba import cuda

        print(json.dumps({name: seconds(load, 1) for name, load in workloads(cuda).items()}))
        return 0
    print("Numba's simulator (one Python thread a CUDA thread) …", flush=True)
    theirs = numba_seconds()
    ours = {
        "checks off": warplab_seconds(checks=False, counters=False),
        "checks on": warplab_seconds(checks=True, counters=True),
    }
    print(f"{'':38} {'Numba':>10} {'checks off':>12} {'ratio':>8} {'all checks and counters':>24} {'ratio':>8}")
    ratios, good = {}, True
    for name, label in NAMES.items():
        row = f"{label:38} {theirs[name]:8.2f} s"
        for mode, width in (("checks off", 10), ("checks on", 22)):
            ratio = theirs[name] / ours[mode][name]
            ratios[f"{name}, {mode}"] = round(ratio)
            good &= ratio >= GOALS[mode]
            row += f" {1e3 * ours[mode][name]:{width - 1}.2f} ms {ratio:7,.0f}×"
        print(row)
    print(f"goals: {GOALS['checks off']:,}× with checks off, {GOALS['checks on']}× with all on; met: {good}")
    figures = {"numba_seconds": theirs, "seconds": ours, "ratios": ratios}
    device = f"{platform.machine()}, {os.cpu_count()} cores"
    print(json.dumps({"benchmark": "simulator speed", **figures, "device": device, "date": f"{datetime.date.today()}"}))
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
