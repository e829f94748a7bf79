"""Launches of lab 07's kernels whose times are recorded."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping

import numpy as np

from evidence.estimates.timed_calls import Part, TimedCall, ones, row
from kernels.training.bias_gelu import BACKWARD, BLOCK, FORWARD, arguments, layout
from kernels.training.measurements import COLUMNS, ROWS
from warpcourse.bench.lab_kernels import Kernel

SIMULATED = 512  # rows


def _parts(table: Mapping[str, Kernel], name: str, arrays: int) -> list[Part]:
    kernel = table[name]
    (grid, _), (timed, _) = (layout(kernel, rows, COLUMNS) for rows in (SIMULATED, ROWS))

    def given() -> tuple:
        x, *others = (ones(SIMULATED, COLUMNS) for _ in range(arrays))
        sums = [] if table is FORWARD else [np.zeros(COLUMNS, np.float32)]
        return arguments(kernel, x, ones(COLUMNS), *others, *sums)

    return [Part(kernel.function, grid, BLOCK, given, blocks=math.prod(timed) / math.prod(grid))]


TIMED = [
    TimedCall(
        f"{name}, {way}",
        "kernel_table",
        row("kernels", way=way, name=name),
        functools.partial(_parts, table, name, arrays),
    )
    for way, table, arrays in (("forward", FORWARD, 2), ("backward", BACKWARD, 3))
    for name in table
]
