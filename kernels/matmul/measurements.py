"""What lab 04 measures on a GPU: one function per table or plot, each returning numbers in JSON types.

Keys end in their unit: `seconds`, `tflops` (2 · m · n · k operations, 1e12 per second). Times are medians, of random
data and in turns with cuBLAS; before that each output is poisoned and checked. `relative_error`: of the result against
float64, in the Frobenius norm, over the first rows. `MEASUREMENTS` names the functions as `recordings.json` does.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernels.matmul import measured_shapes, nsight_compute, recordings
from kernels.matmul.cublas_product import cublas, operands
from kernels.matmul.ladder import SOURCES, STEPS, Step
from kernels.matmul.measured_shapes import FLOAT32_ERROR
from warpcourse.bench.products import rates_of
from warpcourse.bench.recordings import Measurement, step_seconds
from warpcourse.bench.timing import COPY_BYTES, Candidate, copy_candidate, cupy_on_gpu, time_gpu, time_together
from warplab.estimating.beside import KnownTime
from warplab.hardware import backend, cards

SIDE, LARGE_SIDE = 4096, 8192
FAST = ("register_tile_2d", "vectorised", "warp_tile", "async_copies", "tuned")
CHECKED_ROWS = 256
PEAK_BLOCKS_PER_MULTIPROCESSOR, PEAK_BLOCK, PEAK_ROUNDS = 8, 256, 4000
PEAK_OPERATIONS = 2 * 16 * 16  # of a thread and round of fma_peak
# Shapes (m, n, k): square from small to large, few rows, few columns, deep, shallow, and rows that no vector fits.
SHAPES = (
    *((side, side, side) for side in (128, 256, 512, 1024, 2048, 4096, 8192)),
    (16, 8192, 8192),
    (128, 8192, 4096),
    (8192, 128, 4096),
    (8192, 16, 8192),
    (128, 128, 65536),
    (512, 512, 16384),
    (8192, 8192, 64),
    (4095, 4097, 4093),
)


def relative_error(a: Any, b: Any, c: Any) -> float:
    """Return relative error of the first rows of c against the product in float64, in the Frobenius norm."""
    cupy = cupy_on_gpu()
    exact = a[:CHECKED_ROWS].astype(np.float64) @ b.astype(np.float64)
    return float(cupy.linalg.norm(c[:CHECKED_ROWS] - exact) / cupy.linalg.norm(exact))


def checked(function: Callable[..., None], a: Any, b: Any, c: Any) -> dict[str, Any]:
    """Run a product into poisoned memory; `correct`: near the float64 result, and no element left out."""
    c.fill(np.nan)
    function(a, b, c)
    error = relative_error(a, b, c)
    return {"relative_error": error, "correct": error < FLOAT32_ERROR and not bool(np.isnan(c).any())}


def fma_candidate() -> tuple[Candidate, float]:
    """Return the kernel of peak.cu to be timed, and its operations."""
    import cupy

    blocks = PEAK_BLOCKS_PER_MULTIPROCESSOR * cupy.cuda.Device().attributes["MultiProcessorCount"]
    function = SOURCES.function("peak.cu", "fma_peak")
    out = cupy.empty(blocks * PEAK_BLOCK, np.float32)
    arguments = (blocks,), (PEAK_BLOCK,), (out, np.float32(0.999), np.float32(0.001), np.int32(PEAK_ROUNDS))
    return Candidate(function, [arguments]), blocks * PEAK_BLOCK * PEAK_ROUNDS * PEAK_OPERATIONS


def ladder(side: int = SIDE, names: Sequence[str] = tuple(STEPS), rounds: int = 7, runs: int = 3) -> dict[str, Any]:
    """Measure steps at side³, beside cuBLAS and the peak of fused multiply-adds, all in turns in one run."""
    a, b, c = operands(side, side, side)
    functions = {"cublas": cublas} | {name: STEPS[name].launch for name in names}
    results = {name: checked(function, a, b, c) for name, function in functions.items()}
    peak, operations = fma_candidate()
    candidates = {name: Candidate(function, [(a, b, c)]) for name, function in functions.items()}
    timings = time_together({"peak": peak, **candidates}, rounds=rounds, runs=runs, warmup=1)
    peak_tflops = operations / timings["peak"].seconds / 1e12
    rows = [
        {
            "step": STEPS[name].number if name in STEPS else 0,
            "name": name,
            **rates_of(timings[name], side, side, side),
            "ratio_to_cublas": timings["cublas"].seconds / timings[name].seconds,
            "ratio_to_peak": 2 * side**3 / timings[name].seconds / 1e12 / peak_tflops,
            **results[name],
        }
        for name in functions
    ]
    return {"side": side, "peak_tflops": peak_tflops, "tiles": _tiles(side, side, side), "rows": rows}


def large_ladder() -> dict[str, Any]:
    """Measure the fast steps at 8192³."""
    return ladder(LARGE_SIDE, FAST, rounds=5, runs=2)


def shapes() -> list[dict[str, Any]]:
    """Measure steps 7 and 9 and cuBLAS by shape."""
    result = []
    for shape in SHAPES:
        a, b, c = operands(*shape)
        functions = {"cublas": cublas, "warp_tile": STEPS["warp_tile"].launch, "tuned": STEPS["tuned"].launch}
        results = {name: checked(function, a, b, c) for name, function in functions.items()}
        candidates = {name: Candidate(function, [(a, b, c)]) for name, function in functions.items()}
        timings = time_together(candidates, rounds=5, runs=4)
        result.append(
            {
                "shape": list(shape),
                "tiles": _tiles(*shape),
                "correct": all(row["correct"] for row in results.values()),
                **{name: rates_of(timing, *shape) for name, timing in timings.items()},
                "ratio_to_cublas": timings["cublas"].seconds / timings["tuned"].seconds,
            }
        )
    return result


def every_shape() -> dict[str, Any]:
    """Measure step 10, and what the rule chooses, over many shapes, cold and warm, beside cuBLASLt."""
    return measured_shapes.measured(SHAPES)


def _tiles(m: int, n: int, k: int) -> str:
    """Return what step 9 takes for a shape, as the arguments of its template."""
    tuned: Step = STEPS["tuned"]
    return tuned.tiles(m, n, k).entry(True).partition("<")[2].rpartition(",")[0]


def traffic() -> list[dict[str, Any]] | None:
    """Return what Nsight Compute counts of each step and of cuBLAS at 4096³; None where there is no ncu."""
    return nsight_compute.traffic(SIDE)


def library_kernels() -> list[dict[str, Any]] | None:
    """Return which kernels cuBLAS launches for each shape in SHAPES; None where there is no ncu."""
    return nsight_compute.library_kernels(SHAPES)


def by_ncu(key: str) -> Measurement:
    """Return `traffic` or `library_kernels`, counted here where there are a GPU and an ncu that may count; else as
    recorded.

    On most machines ncu needs a permission; where it fails for this or another reason, the recording stands in too.
    """
    if backend.name() == "gpu":
        try:
            found = recordings.measure(key, MEASUREMENTS[key])
        except RuntimeError:
            found = None
        if found is not None and found.value is not None:
            return found
    return recordings.recorded(key)


def multiprocessor() -> tuple[int, int]:
    """Return multiprocessors of the GPU whose times are shown, here or recorded, and FP32 cores of each."""
    if backend.name() == "gpu":
        device = cupy_on_gpu().cuda.Device()
        half = device.compute_capability[0] in "67" or device.compute_capability == "80"
        return device.attributes["MultiProcessorCount"], 64 if half else 128
    recorded = recordings.recorded("ladder")
    return recorded.machine["multiprocessors"], cards.card_of(recorded.device).fp32_cores


def copy_gbps() -> float:
    """Return a device-to-device copy, bytes read and written: the slope of the roofline."""
    timing = time_gpu(copy_candidate().function, copy_candidate().arguments, runs=15)
    return timing.bandwidth(2 * COPY_BYTES)


def product_time(kernel: Any, block: tuple[int, int], recorded: str = "") -> KnownTime | None:
    """Return the time of a learner's `kernel(a, b, c)` in Numba, 4096 × 4096 × 4096, by blocks of 32 × 32 elements.

    `recorded`: the course's step that does the same, whose time is shown without a GPU; "" for none.
    """
    return recordings.time_of(
        *(kernel, (SIDE // 32, SIDE // 32), block, lambda: operands(SIDE, SIDE, SIDE)),
        key="ladder",
        find=step_seconds(recorded) if recorded else None,
        of=f"the course's {recorded}, in CUDA C++",
    )


MEASUREMENTS: dict[str, Callable[[], Any]] = {
    "ladder": ladder,
    "large_ladder": large_ladder,
    "shapes": shapes,
    "every_shape": every_shape,
    "copy_gbps": copy_gbps,
    "traffic": traffic,
    "library_kernels": library_kernels,
}
