"""Launches of lab 04's kernels whose counters are compared with Nsight Compute's (`python -m tools.ncu`)."""

from __future__ import annotations

import functools

import numpy as np

from kernels.matmul.ladder import STEPS, tuned_function, tuned_grid
from kernels.matmul.tiles import Tiles
from warplab.bench.compared_launches import Difference, Launch
from warplab.bench.copy_differences import DURING_COPIES, NOT_COUNTED, PREDICATED

SHAPES = ((128, 128, 32), (130, 132, 20), (65, 131, 37))  # whole tiles; tails; rows at any address
TUNED = (Tiles(128, 128, 16, 32, 64, 8, 8, 3, 2, 8), Tiles(64, 64, 16, 16, 32, 4, 4, 3, 3, 8))
_SPILLED = "ptxas spills registers of the copies of single words to keep two blocks on a multiprocessor."


def _differences(name: str, n: int) -> tuple[Difference, ...]:
    """What a launch may differ in."""
    found = [NOT_COUNTED] if name.startswith(("tuned", "async")) else []
    if name == "async_copies" and n % 4:
        found.append(Difference("local", 1, _SPILLED))
    if name == "tuned 128 × 128":
        found += DURING_COPIES
    if name == "tuned 64 × 64" and n % 4 == 0:
        found.append(PREDICATED)
    return tuple(found)


def _launches() -> list[Launch]:
    result = []
    for m, n, k in SHAPES:
        random = np.random.default_rng(m + n + k)
        a, b = (random.random(shape, dtype=np.float32) for shape in ((m, k), (k, n)))
        arguments = (a, b, np.zeros((m, n), np.float32), *map(np.int32, (m, n, k)))
        what = f"{m} × {n} × {k}"
        for step in STEPS.values():
            if step.name == "tuned":
                continue
            aligned = all({"a": k, "b": n, "c": n}[name] % 4 == 0 for name in step.vectors)
            function = functools.partial(step.function, aligned)
            grid = step.grid(m, n)
            differences = _differences(step.name, n)
            result.append(
                Launch(f"{step.name}, {what}", function, grid, step.block, arguments, differences=differences)
            )
        for sizes in TUNED:
            name = f"tuned {sizes.bm} × {sizes.bn}"
            result.append(
                Launch(
                    f"{name}, {what}",
                    functools.partial(tuned_function, sizes, n % 4 == 0),
                    tuned_grid(sizes, m, n),
                    sizes.threads,
                    arguments,
                    sizes.shared_bytes,
                    differences=_differences(name, n),
                )
            )
    return result


LAUNCHES = _launches()
