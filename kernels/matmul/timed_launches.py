"""Launches of lab 04's kernels whose times are recorded, for `tools.estimate_error`."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from kernels.matmul.ladder import STEPS, tuned_function, tuned_grid
from kernels.matmul.measurements import FAST, LARGE_SIDE, SHAPES, SIDE
from kernels.matmul.tiles import chosen
from warplab.bench.timed_launches import Part, TimedCall, row

SMALL = 512  # rows and columns of C that are simulated of larger ones
DEEP = 512  # and k
SAMPLE = 4  # blocks


def _rows(value: Any) -> list[dict]:
    return value["rows"]


def _product(name: str, m: int, n: int, k: int) -> list[Part]:
    """Every block does the same, so of many rows and columns a part is simulated; their depth, too, is cut."""
    step = STEPS[name]
    fewer = [SMALL if size >= 2 * SMALL and size % SMALL == 0 else size for size in (m, n)]
    depth = DEEP if k >= 2 * DEEP and k % DEEP == 0 else k
    if name == "tuned":
        sizes = chosen(m, n, k)
        function = functools.partial(tuned_function, sizes, n % 4 == 0)
        grid, small = tuned_grid(sizes, m, n), tuned_grid(sizes, *fewer)
        block, shared = (sizes.threads,), sizes.shared_bytes
    else:
        aligned = all({"a": k, "b": n, "c": n}[operand] % 4 == 0 for operand in step.vectors)
        function = functools.partial(step.function, aligned)
        grid, small, block, shared = step.grid(m, n), step.grid(*fewer), step.block, 0

    def arguments() -> tuple:
        p, q = fewer
        a, b, c = (np.ones(shape, np.float32) for shape in ((p, depth), (depth, q), (p, q)))
        return a, b, c, *map(np.int32, (p, q, depth))

    return [
        Part(
            function,
            small,
            block,
            arguments,
            shared,
            blocks=math.prod(grid) / math.prod(small),
            work=k / depth,
            footprint=(4 * (m * k + k * n), 4 * m * n),
            sample_blocks=SAMPLE,
        )
    ]


def _ladder(name: str, side: int, key: str) -> TimedCall:
    return TimedCall(
        f"lab 04, {name}, {side} cubed", key, row(_rows, name=name), lambda: _product(name, side, side, side), warm=True
    )


def _shape(name: str, shape: tuple[int, int, int]) -> TimedCall:
    def seconds(value: Any) -> float:
        return next(r[name]["seconds"] for r in value if tuple(r["shape"]) == shape)

    return TimedCall(f"lab 04, {name}, {shape} by shape", "shapes", seconds, lambda: _product(name, *shape), warm=True)


TIMED = [
    *(_ladder(name, SIDE, "ladder") for name in STEPS),
    *(_ladder(name, LARGE_SIDE, "large_ladder") for name in FAST),
    *(_shape(name, shape) for shape in SHAPES for name in ("warp_tile", "tuned")),
]
