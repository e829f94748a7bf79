"""Launches of lab 08's kernels whose times are recorded."""

from __future__ import annotations

import functools

from evidence.estimates.timed_calls import Part, TimedCall, ones, row
from kernels.recomputation.measurements import N
from kernels.recomputation.silu import BLOCK, KERNELS, MOVED, arguments, blocks

SIMULATED = 2**20  # elements


def _parts(entry: str, name: str) -> list[Part]:
    kernel = KERNELS[entry][name]

    def given() -> tuple:
        return arguments(kernel, *(ones(SIMULATED) for part in MOVED[entry] for _ in part))

    grid = blocks(kernel, SIMULATED)
    return [Part(kernel.function, grid, BLOCK, given, blocks=blocks(kernel, N) / grid)]


TIMED = [
    TimedCall(
        f"{name}, {entry}", "kernel_table", row("rows", entry=entry, name=name), functools.partial(_parts, entry, name)
    )
    for entry, kernels in KERNELS.items()
    for name in kernels
]
