"""When does a GPU pay for one prediction? From host data to a result on the host, against NumPy there.

Two predictions. A vector multiply computes 1/12 of an operation for each byte that crosses the bus: one for
two floats that go in and one that comes out. A dense layer Y = W X of n by n weights computes n/4 for each: W
stays on the GPU, so a column of X costs 2 n^2 operations for 8 n bytes, n floats in and n out.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.vector_multiply.product import BLOCK, KERNELS
from warpcourse.bench import random_inputs, timing
from warpcourse.bench.timing import time_host

STAGES = ("in", "kernel", "out")


class _Prediction:
    """Copies its inputs to the GPU, computes there, copies the result back and waits.

    `inputs`: (host array, device array) pairs; `output`: (device array, host array).
    """

    def __init__(self, inputs: list[tuple], compute: Callable[[], Any], output: tuple) -> None:
        import cupy

        self.inputs, self.compute, self.output = inputs, compute, output
        self.stream = cupy.cuda.get_current_stream()
        self.events = [cupy.cuda.Event() for _ in range(4)]
        self.stages: list[list[float]] = []

    def run(self) -> None:
        for host, device in self.inputs:
            device.set(host, stream=self.stream)
        self.compute()
        device, host = self.output
        device.get(stream=self.stream, out=host, blocking=False)
        self.stream.synchronize()

    def run_in_stages(self) -> None:
        import cupy

        self.events[0].record()
        for host, device in self.inputs:
            device.set(host, stream=self.stream)
        self.events[1].record()
        self.compute()
        self.events[2].record()
        device, host = self.output
        device.get(stream=self.stream, out=host, blocking=False)
        self.events[3].record()
        self.stream.synchronize()
        pairs = zip(self.events, self.events[1:], strict=False)
        self.stages.append([cupy.cuda.get_elapsed_time(before, after) / 1e3 for before, after in pairs])

    def measure(self, runs: int) -> dict[str, float]:
        """Return the median seconds: `total` by the host's clock, without events in between; each stage by events."""
        total = time_host(self.run, runs=runs, warmup=3)
        for _ in range(runs):
            self.run_in_stages()
        stages = np.median(self.stages, axis=0)
        return {"total_seconds": total.seconds} | {
            f"{name}_seconds": float(seconds) for name, seconds in zip(STAGES, stages, strict=True)
        }


def multiply_by_size(smallest: int = 2**10, largest: int = 2**26) -> dict[str, Any]:
    """Return a vector multiply, by n: from pageable and from pinned memory, and with data on the GPU before.

    `*_seconds` are medians. Stages are taken between events and include gaps when the GPU waits for the host.
    NumPy multiplies on one core, into an array that exists before. Every run has the same host arrays, so small ones
    are in the processor's caches, for the copies and for NumPy alike.
    """
    timing.require_gpu("This measurement")
    import cupy
    import cupyx

    rows = []
    n = smallest
    while n <= largest:
        rng = random_inputs.generator()
        a, b, out = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32), np.empty(n, np.float32)
        pinned_a, pinned_b, pinned_out = (cupyx.empty_pinned(n, np.float32) for _ in range(3))
        pinned_a[:], pinned_b[:] = a, b
        on_a, on_b, on_out = cupy.asarray(a), cupy.asarray(b), cupy.empty(n, np.float32)
        kernel = KERNELS["cuda_float4"]
        function, arguments = kernel.function(), kernel.arguments(on_a, on_b, on_out)
        grid = (kernel.blocks(n, BLOCK),)

        def compute(function=function, grid=grid, arguments=arguments) -> None:
            function(grid, (BLOCK,), arguments)

        def compute_and_wait(compute=compute) -> None:
            compute()
            cupy.cuda.get_current_stream().synchronize()

        runs = 50 if n <= 2**20 else 15 if n <= 2**24 else 7
        out.fill(np.nan)
        pageable = _Prediction([(a, on_a), (b, on_b)], compute, (on_out, out)).measure(runs)
        _check_equal(out, a * b)
        pinned_out.fill(np.nan)
        pinned = _Prediction([(pinned_a, on_a), (pinned_b, on_b)], compute, (on_out, pinned_out)).measure(runs)
        _check_equal(pinned_out, a * b)
        one_vector = _Prediction([(pinned_a, on_a)], compute, (on_out, pinned_out)).measure(runs)
        rows.append(
            {
                "n": n,
                "pageable": pageable,
                "pinned": pinned,
                "pinned_one_vector": one_vector,
                "on_gpu_seconds": time_host(compute_and_wait, runs=runs).seconds,
                "numpy_seconds": time_host(lambda a=a, b=b, out=out: np.multiply(a, b, out=out), runs=runs).seconds,
            }
        )
        n *= 4
    return {"numpy_threads": 1, "host": timing.host(), "rows": rows}


def dense_layer_by_size(
    sizes: tuple[int, ...] = (256, 512, 1024, 2048, 4096, 8192), batches: tuple[int, ...] = (1, 32, 256)
) -> dict[str, Any]:
    """Return a dense layer Y = W X, float32: W of (n, n) stays on the GPU, X of (n, batch) is in pinned host memory.

    Libraries do the work on both sides: cuBLAS through CuPy, NumPy's BLAS with as many threads as it chooses.
    `error`: norm of the difference to float64, relative, of the first 64 rows. Times as in multiply_by_size.
    """
    timing.require_gpu("This measurement")
    import cupy
    import cupyx

    rows = []
    for n in sizes:
        rng = random_inputs.generator()
        weights = rng.random((n, n), dtype=np.float32) - np.float32(0.5)
        on_weights = cupy.asarray(weights)
        for batch in batches:
            x = cupyx.empty_pinned((n, batch), np.float32)
            y = cupyx.empty_pinned((n, batch), np.float32)
            x[:] = rng.random((n, batch), dtype=np.float32)
            y.fill(np.nan)
            on_x, on_y = cupy.asarray(x), cupy.empty((n, batch), np.float32)

            def compute(on_weights=on_weights, on_x=on_x, on_y=on_y) -> None:
                cupy.matmul(on_weights, on_x, out=on_y)

            runs = 30 if n * n * batch <= 2**30 else 10
            gpu = _Prediction([(x, on_x)], compute, (on_y, y)).measure(runs)
            exact = weights[:64].astype(np.float64) @ x.astype(np.float64)
            error = float(np.linalg.norm(y[:64] - exact) / np.linalg.norm(exact))
            if not error < 1e-5:
                raise AssertionError(f"the dense layer of {n} by {n}, batch {batch}, is wrong on the GPU: {error}")
            on_cpu = np.empty((n, batch), np.float32)
            numpy_seconds = time_host(
                lambda weights=weights, x=x, y=on_cpu: np.matmul(weights, x, out=y), runs=max(5, runs // 3)
            ).seconds
            rows.append(
                {
                    "n": n,
                    "batch": batch,
                    "flops": 2 * n * n * batch,
                    "transferred_bytes": x.nbytes + y.nbytes,
                    "weights_bytes": weights.nbytes,
                    "error": error,
                    **gpu,
                    "numpy_seconds": numpy_seconds,
                }
            )
    return {"host": timing.host(), "rows": rows}


def _check_equal(got: np.ndarray, expected: np.ndarray) -> None:
    if not np.array_equal(got, expected):
        raise AssertionError("the GPU's product differs from NumPy's")
