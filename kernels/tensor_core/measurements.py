"""What lab 05 measures on a GPU of its ladder: one function per table or plot, each returning numbers in JSON types.

Keys end in their unit: `seconds`, `tflops` (2 · m · n · k operations, 1e12 per second). Times are medians, of random
data and in turns with the libraries; before that each output is poisoned and checked. `ratio_to_library`: to the faster
of cuBLAS (`cupy.matmul`) and cuBLASLt (its fastest algorithm, `cublaslt`). `relative_error`: of the result against
float64, in the Frobenius norm, over the first and the last rows. `MEASUREMENTS` names the functions as
`recordings.json` does.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernels.tensor_core import measured_shapes, recordings, tiles
from kernels.tensor_core.ladder import SOURCES, STEPS
from kernels.tensor_core.measured_shapes import MOST_ERROR
from kernels.tensor_core.product import multiply
from warpcourse.bench import hopper
from warpcourse.bench.cublaslt import Product
from warpcourse.bench.products import rates_of
from warpcourse.bench.recordings import step_seconds
from warpcourse.bench.timing import Candidate, cupy_on_gpu, time_together
from warplab.estimating.beside import KnownTime

SIDE, SMALL_SIDE = 8192, 4096
LIBRARIES = ("cublas", "cublaslt")
CHECKED_ROWS = 256
PEAK_ROUNDS, PEAK_BLOCK = {"wgmma": 2000, "mma": 8000}, 256
PEAK_OPERATIONS = {"wgmma": 2 * 64 * 256 * 64 / 128, "mma": 2 * 16 * 8 * 16 * 16 / 32}  # of a thread and round
PEAK_BYTES = 6 * 64 * 128 + 1024  # of shared memory, and so of random numbers
# Shapes (m, n, k): square from small to large, few rows, few columns, deep, shallow, and partial tiles.
SHAPES = (
    *((side, side, side) for side in (512, 1024, 2048, 16384)),
    (16, 8192, 8192),
    (8192, 128, 4096),
    (128, 256, 65536),
    (8192, 8192, 64),
    (4001, 4008, 4016),
)


def names() -> list[str]:
    """Return the steps that this GPU has the instructions for."""
    return [name for name, step in STEPS.items() if not step.hopper or hopper.available()]


def operands(m: int, n: int, k: int, dtype: Any = np.float16) -> tuple[Any, Any, Any]:
    """Return random float16 matrices a and b, from -1 to 1, and room for their product."""
    cupy = cupy_on_gpu()
    a, b = (cupy.random.uniform(-1, 1, shape, dtype=np.float32).astype(np.float16) for shape in ((m, k), (k, n)))
    return a, b, cupy.empty((m, n), dtype)


def cublas(a: Any, b: Any, c: Any) -> None:
    """Queue the same product by cuBLAS, which sums in float32; for float16 results."""
    import cupy

    cupy.matmul(a, b, out=c)


def cublaslt(a: Any, b: Any, c: Any) -> Callable[..., None]:
    """Return cuBLASLt's fastest algorithm for these matrices."""
    product = Product(*c.shape, a.shape[1], c.dtype)
    return functools.partial(product.launch, result=product.fastest((a, b, c)))


def of_step(name: str) -> Callable[..., None]:
    """Return a step, given matrices that it need not pad."""
    return functools.partial(multiply, step=name)


def checked(function: Callable[..., Any], a: Any, b: Any, c: Any) -> dict[str, Any]:
    """Run a product into poisoned memory; `correct`: near the float64 result, and no element left out."""
    cupy = cupy_on_gpu()
    c.fill(np.nan)
    function(a, b, c)
    errors = []
    for rows in (slice(CHECKED_ROWS), slice(-CHECKED_ROWS, None)):
        exact = a[rows].astype(np.float64) @ b.astype(np.float64)
        errors.append(float(cupy.linalg.norm(c[rows] - exact) / cupy.linalg.norm(exact)))
    error = max(errors)
    return {"relative_error": error, "correct": error < MOST_ERROR[c.dtype.name] and not bool(np.isnan(c).any())}


def peak_candidates() -> dict[str, tuple[Candidate, float]]:
    """Return the kernels of peak.cu that this GPU can run, to be timed, and their operations."""
    cupy = cupy_on_gpu()
    blocks = hopper.multiprocessors()
    random = cupy.random.uniform(-1, 1, PEAK_BYTES // 2, dtype=np.float32).astype(np.float16)
    out = cupy.empty(blocks * PEAK_BLOCK, np.float32)
    found = {}
    for kind in ("wgmma", "mma") if hopper.available() else ():
        function = hopper.kernel(SOURCES.folder / "peak.cu", f"{kind}_peak")
        arguments = (blocks,), (PEAK_BLOCK,), (random, out, np.int32(PEAK_ROUNDS[kind])), PEAK_BYTES
        operations = blocks * PEAK_BLOCK * PEAK_ROUNDS[kind] * PEAK_OPERATIONS[kind]
        found[kind] = Candidate(function, [arguments]), operations
    return found


def ladder(
    side: int = SIDE, steps: Sequence[str] | None = None, dtype: Any = np.float16, rounds: int = 8, runs: int = 3
) -> dict[str, Any]:
    """Measure steps at side³ with results of `dtype`, beside the libraries and the peaks of the tensor cores: in turns,
    but for step 1.

    `peaks_tflops`: of wgmma and mma.sync on data at hand; empty on GPUs without wgmma.
    """
    a, b, c = operands(side, side, side, dtype)
    functions = {"cublaslt": cublaslt(a, b, c), **{name: of_step(name) for name in steps or names()}}
    if c.dtype == np.float16:  # cupy.matmul rounds to float16 in any case
        functions = {"cublas": cublas, **functions}
    results = {name: checked(function, a, b, c) for name, function in functions.items()}
    peaks = peak_candidates()
    candidates = {name: Candidate(function, [(a, b, c)]) for name, function in functions.items()}
    # Step 1 apart: it takes long and little power, and what comes after it would find a higher clock.
    slow = {name: candidates.pop(name) for name in ("wmma",) if name in candidates}
    candidates |= {f"peak {kind}": candidate for kind, (candidate, _) in peaks.items()}
    timings = time_together(candidates, rounds=rounds, runs=runs, warmup=1)
    timings |= time_together(slow, rounds=1, runs=runs, warmup=1)
    rates = {kind: operations / timings[f"peak {kind}"].seconds / 1e12 for kind, (_, operations) in peaks.items()}
    best = min(timings[name].seconds for name in LIBRARIES if name in timings)
    peak = rates.get("wgmma")
    rows = []
    for name in functions:
        row = {
            "step": STEPS[name].number if name in STEPS else 0,
            "name": name,
            **rates_of(timings[name], side, side, side),
            "ratio_to_library": best / timings[name].seconds,
            **results[name],
        }
        row["ratio_to_peak"] = row["tflops"] / peak if peak else None
        rows.append(row)
    return {"side": side, "result": c.dtype.name, "peaks_tflops": rates, "sizes": _sizes(), "rows": rows}


def small_ladder() -> dict[str, Any]:
    """Measure all steps at 4096³."""
    return ladder(SMALL_SIDE)


def float32_ladder() -> dict[str, Any]:
    """Measure the fast steps with float32 results at 8192³."""
    return ladder(SIDE, [name for name in names() if STEPS[name].number >= 4], np.float32)


def shapes() -> list[dict[str, Any]]:
    """Measure the fast steps and cuBLASLt by shape, float16 results."""
    result = []
    for shape in SHAPES:
        a, b, c = operands(*shape)
        chosen = [name for name in ("mma_stages", "wgmma_persistent") if name in names()]
        functions = {"cublaslt": cublaslt(a, b, c), **{name: of_step(name) for name in chosen}}
        results = {name: checked(function, a, b, c) for name, function in functions.items()}
        candidates = {name: Candidate(function, [(a, b, c)]) for name, function in functions.items()}
        timings = time_together(candidates, rounds=4, runs=3, warmup=1)
        result.append(
            {
                "shape": list(shape),
                "correct": all(row["correct"] for row in results.values()),
                **{name: rates_of(timing, *shape) for name, timing in timings.items()},
                "ratio_to_library": timings["cublaslt"].seconds / timings[chosen[-1]].seconds,
            }
        )
    return result


def every_shape() -> dict[str, Any] | None:
    """Measure step 7, and what the rule chooses, over many shapes, cold and warm, beside cuBLASLt."""
    return measured_shapes.measured(SHAPES)


def _sizes() -> dict[str, str]:
    """Return what steps 4 and 6 are compiled for."""
    return {"mma_stages": str(tiles.stages()), "wgmma_persistent": str(tiles.persistent())}


def product_time(kernel: Any, side: int, recorded: str = "") -> KnownTime | None:
    """Return the time of a learner's `kernel(a, b, d, n)`, n = 8192, one warp per `side` × `side` elements of d,
    float32.

    `recorded`: the course's step that does the same, whose time is shown without a GPU; "" for none.
    """
    return recordings.time_of(
        *(kernel, (SIDE // side, SIDE // side), 32),
        lambda: (*operands(SIDE, SIDE, SIDE, np.float32), np.int32(SIDE)),
        key="ladder",
        find=step_seconds(recorded) if recorded else None,
        of=f"the course's {recorded}, whose result is float16",
    )


MEASUREMENTS: dict[str, Callable[[], Any]] = {
    "ladder": ladder,
    "small_ladder": small_ladder,
    "float32_ladder": float32_ladder,
    "shapes": shapes,
    "every_shape": every_shape,
    "types": measured_shapes.types,
}
