"""Launches of lab 04's kernels whose times are recorded."""

from __future__ import annotations

import functools
from typing import Any

from evidence.estimates.timed_calls import Part, TimedCall, product, row
from kernels.matmul.ladder import STEPS, tuned_function, tuned_grid
from kernels.matmul.measurements import FAST, LARGE_SIDE, SHAPES, SIDE
from kernels.matmul.tiles import chosen


def _parts(name: str, shape: tuple[int, int, int]) -> list[Part]:
    m, n, k = shape
    step, columns = STEPS[name], {"a": k, "b": n, "c": n}
    sizes = chosen(m, n, k) if name == "tuned" else None

    def of(m: int, n: int) -> tuple:
        if sizes:
            function = functools.partial(tuned_function, sizes, columns["b"] % 4 == 0)
            return function, tuned_grid(sizes, m, n), (sizes.threads,), sizes.shared_bytes
        aligned = all(columns[operand] % 4 == 0 for operand in step.vectors)
        return functools.partial(step.function, aligned), step.grid(m, n), step.block, 0

    return [product(of, shape, 512, ("f4", "f4"))]


def _call(name: str, shape: tuple[int, int, int], what: str, key: str, seconds: Any) -> TimedCall:
    return TimedCall(f"{name}, {what}", key, seconds, functools.partial(_parts, name, shape), warm=True)


TIMED = [
    *(
        _call(name, (side,) * 3, f"{side} cubed", key, row("rows", name=name))
        for side, key, names in ((SIDE, "ladder", STEPS), (LARGE_SIDE, "large_ladder", FAST))
        for name in names
    ),
    *(
        _call(name, shape, f"{shape} by shape", "shapes", row(column=f"{name}.seconds", shape=list(shape)))
        for shape in SHAPES
        for name in ("warp_tile", "tuned")
    ),
]
