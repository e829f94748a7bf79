"""Launches of lab 05's kernels whose counters are compared with Nsight Compute's (`python -m tools.ncu`): steps 1 to
4, which the simulator runs.
"""

import functools

import numpy as np

from kernels.tensor_core.ladder import STEPS, StagesStep
from kernels.tensor_core.tiles import DEPTH, Stages
from warpcourse.bench.compared_launches import Launch
from warpcourse.bench.copy_differences import DURING_COPIES, NOT_COUNTED, PREDICATED, PREDICATED_LARGE, ZERO_FILL

# Whole tiles; tails of whole fragments; tails within them. With the types of the result.
CASES = (
    ((128, 128, 64), "float32"),
    ((128, 128, 64), "float16"),
    ((128, 256, 128), "float32"),
    ((144, 176, 80), "float32"),
    ((65, 136, 72), "float32"),
)
SIZES = (Stages(128, 256, 64, 64, 3, 1, 8), Stages(64, 64, 32, 32, 2, 2, 4))


def _launches() -> list[Launch]:
    result = []
    for (m, n, k), dtype in CASES:
        random = np.random.default_rng(m + n + k)
        a, b = (random.uniform(-1, 1, shape).astype(np.float16) for shape in ((m, k), (k, n)))
        arguments = (a, b, np.zeros((m, n), dtype), *map(np.int32, (m, n, k)))
        what = f"{m} × {n} × {k}, {dtype}"
        for step in STEPS.values():
            if step.hopper or any(x % y for x, y in zip((m, n, k), step.multiples, strict=True)):
                continue
            if isinstance(step, StagesStep):
                result += [_of_sizes(step, sizes, what, dtype, arguments) for sizes in SIZES]
                continue
            function = functools.partial(step.function, dtype)
            grid, block = step.grid(m, n), step.threads
            tails = m % step.tile[0] or n % step.tile[1] or k % DEPTH
            differences = ((NOT_COUNTED, ZERO_FILL) if tails else (NOT_COUNTED,)) if step.shared_bytes else ()
            result.append(
                Launch(
                    f"{step.name}, {what}", function, grid, block, arguments, step.shared_bytes, differences=differences
                )
            )
    return result


def _of_sizes(step: StagesStep, sizes: Stages, what: str, dtype: str, arguments: tuple) -> Launch:
    return Launch(
        f"{step.name} {sizes.bm} × {sizes.bn}, {what}",
        functools.partial(step.function, dtype, sizes),
        step.grid(*arguments[2].shape, sizes),
        sizes.threads,
        arguments,
        sizes.shared_bytes,
        differences=(NOT_COUNTED, PREDICATED_LARGE, PREDICATED, *DURING_COPIES),
    )


LAUNCHES = _launches()
