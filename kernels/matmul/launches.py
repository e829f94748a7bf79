"""Launches of lab 04's kernels whose counters are compared with Nsight Compute's (`python -m warplab.ncu`)."""

from __future__ import annotations

import functools

import numpy as np

from kernels.matmul.steps import STEPS, tuned_function, tuned_grid
from kernels.matmul.tiles import Tiles
from warplab.ncu import Launch

SECTION = "Matrix multiply (lab 04)"
SHAPES = ((128, 128, 32), (130, 132, 20), (65, 131, 37))  # whole tiles; tails; rows at any address
TUNED = (Tiles(128, 128, 16, 32, 64, 8, 8, 3, 2, 8), Tiles(64, 64, 16, 16, 32, 4, 4, 3, 3, 8))


def _three(size: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*size, 1, 1)[:3]
    return x, y, z


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
            grid = _three(step.grid(m, n))
            result.append(
                Launch(f"{step.name}, {what}", function, grid, _three(step.block), arguments, section=SECTION)
            )
        for sizes in TUNED:
            result.append(
                Launch(
                    f"tuned {sizes.bm} × {sizes.bn}, {what}",
                    functools.partial(tuned_function, sizes, n % 4 == 0),
                    _three(tuned_grid(sizes, m, n)),
                    (sizes.threads, 1, 1),
                    arguments,
                    sizes.shared_bytes,
                    SECTION,
                )
            )
    return result


LAUNCHES = _launches()
