"""Step 7 beside cuBLASLt's fastest algorithm, over tables of shapes and over shapes that are drawn."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from kernels.tensor_core.every_shape import Plan, launch
from kernels.tensor_core.shape_rule import RULE, RULES, group_of
from kernels.tensor_core.small_factors import decoded, encoded
from warpcourse.bench import cublaslt, hopper, measured_plans
from warpcourse.bench.measured_plans import CHECKED_ROWS, MOST_SETS, RUNS, Kernels, drawn, plain
from warpcourse.bench.shape_rule import Shape
from warpcourse.bench.timing import Candidate, cupy_on_gpu, sets_beyond_l2, time_together

SEED = 1832261701  # of the shapes drawn, after the code was final
# Of products of other factors: their and the result's type, shapes, and a bound of the error.
SQUARES = tuple((side,) * 3 for side in (1024, 2048, 4096, 8192))
OTHER_SHAPES = (*SQUARES, (16, 8192, 8192), (1024, 4096, 16384))
OTHER_TYPES = (("float16", "float16", 3e-4), ("bfloat16", "bfloat16", 2.4e-3), ("e4m3", "float16", 4e-4))
TRANSPOSED = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (1000, 1001, 1002))
# A result rounded to float16 is off by up to 2^-11, in the mean by 2e-4; sums of float32 with k to 16384 by far less.
MOST_ERROR = {"float16": 3e-4, "float32": 3e-5}


def _launch(a: Any, b: Any, c: Any, plan: Plan, transposed: str = "NN") -> None:
    k = a.shape[0 if transposed[0] == "T" else 1]
    launch(a, b, c, plan, transposed, group_of(*c.shape, k))


def _compile_ahead(cases: Iterable[tuple[Plan, Shape, str]]) -> None:
    hopper.compile_ahead(plan.code("float16", transposed, direct=shape[1] % 8 > 0) for plan, shape, transposed in cases)


KERNELS = Kernels("float16", MOST_ERROR["float16"], _launch, RULE, _compile_ahead)


def drawn_again() -> dict[str, Any]:
    """Return the summary of the shapes drawn, cold, measured in this process."""
    return measured_plans.drawn_again(KERNELS, SEED)


def measured(shapes: Sequence[Shape]) -> dict[str, Any] | None:
    """Measure step 7 over the lab's shapes, those of networks, drawn ones and transposed operands.

    None where the GPU has not the instructions.
    """
    if not hopper.available():
        return None
    groups = {
        "lab": plain(shapes),
        "drawn multiples of 8": plain(drawn(SEED, 8)),
        "transposed": [(shape, letters) for shape in TRANSPOSED for letters in ("NN", "NT", "TN", "TT")],
    }
    return measured_plans.every_shape(KERNELS, SEED, groups, drawn_again)


def types() -> list[dict[str, Any]] | None:
    """Measure step 7 with factors of other types, b given as (n, k), in turns with cuBLASLt's fastest algorithm, cold.

    `errors`: relative, in the Frobenius norm, of the first rows. Of e4m3 `ours` and `library` sum up in float32,
    `ours, one level` and `library, fast` in the tensor cores' 13 bits.
    """
    if not hopper.available():
        return None
    return [_of_types(*kind, shape) for kind in OTHER_TYPES for shape in OTHER_SHAPES]


def _of_types(factors: str, result: str, most_error: float, shape: Shape) -> dict[str, Any]:
    cupy = cupy_on_gpu()
    m, n, k = shape
    dtype = np.uint16 if result == "bfloat16" else np.float16
    sizes = ((m, k), (n, k), (m, n))
    nbytes = sum(a * b for a, b in sizes) * (1 if factors == "e4m3" else 2)

    def random(size: tuple[int, int]) -> Any:
        return encoded(cupy.random.uniform(-1, 1, size, dtype=np.float32), factors, cupy)

    sets = [(*map(random, sizes[:2]), cupy.empty((m, n), dtype)) for _ in range(sets_beyond_l2(nbytes, MOST_SETS))]

    units = (m, n, k // 2 if factors == "e4m3" else k)

    def of(levels: int, rule: str) -> Callable[..., None]:
        plan, group = RULES[rule].chosen(*units, "NT"), group_of(*units)

        def run(a: Any, b: Any, c: Any) -> None:
            if factors == "e4m3":
                a, b = a.view(np.uint16), b.view(np.uint16)
            launch(a, b, c, plan, "NT", group, factors=factors, levels=levels)

        return run

    def library(*, fast: bool) -> Callable[..., None]:
        product = cublaslt.Product(*shape, result, factors, "NT", fast=fast)
        return functools.partial(product.launch, result=product.fastest(*sets))

    small = factors == "e4m3"
    functions = {"ours": of(2 if small else 1, factors), "library": library(fast=False)}
    if small:
        functions |= {"ours, one level": of(1, "bfloat16"), "library, fast": library(fast=True)}
    a, b = (decoded(x, cupy).astype(np.float64) for x in (sets[0][0][:CHECKED_ROWS], sets[0][1]))
    exact, c, errors = a @ b.T, sets[0][2], {}
    for name, function in functions.items():
        c.fill(np.nan if dtype == np.float16 else 0x7FFF)
        function(*sets[0])
        found = decoded(c, cupy)
        errors[name] = float(cupy.linalg.norm(found[:CHECKED_ROWS] - exact) / cupy.linalg.norm(exact))
        errors[name] += 0 if bool(cupy.isfinite(found).all()) else np.inf
    timings = time_together({name: Candidate(each, sets) for name, each in functions.items()}, rounds=4, runs=RUNS)
    seconds = {name: timing.seconds for name, timing in timings.items()}
    return {
        "factors": factors,
        "result": result,
        "shape": list(shape),
        "plan": str(RULES[factors].chosen(*units, "NT")),
        "seconds": seconds,
        "tflops": 2 * m * n * k / seconds["ours"] / 1e12,
        "ratio_to_library": seconds["library"] / seconds["ours"],
        "errors": errors,
        "correct": errors["ours"] <= most_error,
    }
