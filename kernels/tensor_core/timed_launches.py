"""Launches of lab 05's kernels whose times are recorded, for `tools.estimate_error`: steps 1 to 4, which the simulator
runs.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from kernels.tensor_core import tiles
from kernels.tensor_core.ladder import STEPS, StagesStep
from kernels.tensor_core.measurements import SHAPES, SIDE, SMALL_SIDE
from warplab.bench.timed_launches import Part, TimedCall, row

SMALL = 512  # rows and columns of C that are simulated of larger ones
DEEP = 1024  # and k
SAMPLE = 4  # blocks


def _rows(value: Any) -> list[dict]:
    return value["rows"]


def _product(name: str, dtype: str, m: int, n: int, k: int) -> list[Part]:
    """Every block does the same, so of many rows and columns a part is simulated; its depth, too, is cut."""
    step = STEPS[name]
    fewer = [SMALL if size >= 2 * SMALL and size % SMALL == 0 else size for size in (m, n)]
    depth = DEEP if k >= 2 * DEEP and k % DEEP == 0 else k
    if isinstance(step, StagesStep):
        sizes = tiles.stages()
        function = functools.partial(step.function, dtype, sizes)
        grid, small = step.grid(m, n, sizes), step.grid(*fewer, sizes)
        threads, shared = sizes.threads, sizes.shared_bytes
    else:
        function = functools.partial(step.function, dtype)
        grid, small, threads, shared = step.grid(m, n), step.grid(*fewer), step.threads, step.shared_bytes

    def arguments() -> tuple:
        p, q = fewer
        a, b = (np.ones(shape, np.float16) for shape in ((p, depth), (depth, q)))
        return a, b, np.ones((p, q), dtype), *map(np.int32, (p, q, depth))

    return [
        Part(
            function,
            small,
            threads,
            arguments,
            shared,
            blocks=math.prod(grid) / math.prod(small),
            work=k / depth,
            footprint=(2 * (m * k + k * n), np.dtype(dtype).itemsize * m * n),
            sample_blocks=SAMPLE,
        )
    ]


def _ladder(name: str, side: int, key: str, dtype: str = "float16") -> TimedCall:
    return TimedCall(
        f"lab 05, {name}, {side} cubed, {dtype}",
        key,
        row(_rows, name=name),
        lambda: _product(name, dtype, side, side, side),
        warm=True,
    )


def _shape(name: str, shape: tuple[int, int, int]) -> TimedCall:
    def seconds(value: Any) -> float:
        return next(r[name]["seconds"] for r in value if tuple(r["shape"]) == shape)

    return TimedCall(
        f"lab 05, {name}, {shape} by shape", "shapes", seconds, lambda: _product(name, "float16", *shape), warm=True
    )


_FOUR = [name for name, step in STEPS.items() if not step.hopper]
TIMED = [
    *(_ladder(name, SIDE, "ladder") for name in _FOUR),
    *(_ladder(name, SMALL_SIDE, "small_ladder") for name in _FOUR),
    _ladder("mma_stages", SIDE, "float32_ladder", "float32"),
    *(_shape("mma_stages", shape) for shape in SHAPES),
]
