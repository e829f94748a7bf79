"""Launches of lab 05's kernels whose times are recorded: steps 1 to 4."""

from __future__ import annotations

import functools
from typing import Any

from evidence.estimates.timed_calls import Part, TimedCall, product, row
from kernels.tensor_core import tiles
from kernels.tensor_core.ladder import STEPS, StagesStep
from kernels.tensor_core.measurements import SHAPES, SIDE, SMALL_SIDE


def _parts(name: str, shape: tuple[int, int, int], dtype: str) -> list[Part]:
    step = STEPS[name]
    sizes = tiles.stages() if isinstance(step, StagesStep) else None
    with_sizes = (sizes,) if sizes else ()
    function = functools.partial(step.function, dtype, *with_sizes)
    of_block = sizes or step

    def of(m: int, n: int) -> tuple:
        return function, step.grid(m, n, *with_sizes), of_block.threads, of_block.shared_bytes

    return [product(of, shape, 1024, ("f2", dtype))]


def _call(
    name: str, shape: tuple[int, int, int], what: str, key: str, seconds: Any, dtype: str = "float16"
) -> TimedCall:
    return TimedCall(f"{name}, {what}", key, seconds, functools.partial(_parts, name, shape, dtype), warm=True)


_FOUR = [name for name, step in STEPS.items() if not step.hopper]
TIMED = [
    *(
        _call(name, (side,) * 3, f"{side} cubed, {dtype}", key, row("rows", name=name), dtype)
        for side, key, names, dtype in (
            (SIDE, "ladder", _FOUR, "float16"),
            (SMALL_SIDE, "small_ladder", _FOUR, "float16"),
            (SIDE, "float32_ladder", ["mma_stages"], "float32"),
        )
        for name in names
    ),
    *(
        _call("mma_stages", shape, f"{shape} by shape", "shapes", row(column="mma_stages.seconds", shape=list(shape)))
        for shape in SHAPES
    ),
]
