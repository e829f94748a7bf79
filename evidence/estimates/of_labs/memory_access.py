"""Launches of lab 02's kernels whose times are recorded.

The sweeps of strides, offsets, working sets, bytes in flight, latencies and banks are not among them: the estimate
takes its rates from these.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from evidence.estimates.timed_calls import Part, TimedCall, ones, row
from kernels.memory_access.patterns import HEAT_BLOCK, LAYOUTS
from kernels.memory_access.scanning import TILE
from kernels.memory_access.sources import BLOCK, RADII, SOURCES
from kernels.memory_access.summing import SUMS
from kernels.memory_access.tables import ANY_SHAPE, AWKWARD, SIDE, N
from kernels.memory_access.transposing import TRANSPOSES

SMALL = 2**20  # elements that are simulated of a long vector
SMALL_SIDE = 2048
# Smaller matrices whose rows start at the same places within a sector as those of AWKWARD.
SMALL_AWKWARD = ((2044, 2500), (2045, 2507))


def _cuda(file: str, entry: str) -> Callable[[], Any]:
    return functools.partial(SOURCES.function, f"{file}.cu", entry)


def _transpose(
    name: str, timed: tuple[int, int] = (SIDE, SIDE), simulated: tuple[int, int] = (SMALL_SIDE, SMALL_SIDE)
) -> list[Part]:
    kernel = TRANSPOSES[name]
    grid = kernel.grid(*simulated)

    def arguments() -> tuple:
        return kernel.arguments(ones(*simulated), ones(*simulated[::-1]))

    blocks = math.prod(kernel.grid(*timed)) / math.prod(grid)
    return [Part(kernel.function, grid, kernel.block, arguments, blocks=blocks)]


def _sum(name: str) -> list[Part]:
    kernel, n, parts = SUMS[name], N, []
    while not parts or (n > 1 and not kernel.atomic):
        blocks, share = kernel.blocks(n), 1
        if n > SMALL:
            share = (64 if blocks % 64 == 0 else 1) if kernel.atomic else n // SMALL

        def arguments(n: int = n // share, sums: int = 1 if kernel.atomic else blocks // share) -> tuple:
            return kernel.arguments(ones(n), np.zeros(sums, np.float32))

        parts.append(Part(kernel.function, blocks // share, kernel.block, arguments, blocks=share))
        n = blocks
    return parts


def _scan_by_blocks() -> list[Part]:
    levels = [N]
    while levels[-1] > BLOCK:
        levels.append(math.ceil(levels[-1] / BLOCK))
    parts = []
    for adds, sizes in ((False, levels), (True, levels[:-1])):
        for size in sizes:
            n = min(size, SMALL)
            blocks = math.ceil(n / BLOCK)

            def arguments(n: int = n, lengths: tuple[int, ...] = (n, blocks) if adds else (n, n, blocks)) -> tuple:
                return *map(ones, lengths), np.uint64(n)

            kernel = _cuda("scan", "add_before" if adds else "scan_blocks")
            parts.append(Part(kernel, blocks - adds, BLOCK, arguments, blocks=size / n))
    return parts


def _scan_look_back() -> list[Part]:
    tiles = 64

    def arguments() -> tuple:
        n = tiles * TILE
        return ones(n), ones(n), np.uint64(n), np.zeros(tiles, np.uint64), np.zeros(1, np.uint32)

    return [Part(_cuda("scan", "scan_look_back"), tiles, 256, arguments, blocks=N / TILE / tiles)]


def _layout(name: str) -> list[Part]:
    kernel = LAYOUTS[name]

    def arguments() -> tuple:
        return kernel.arguments(ones(*((4, SMALL) if kernel.soa else (SMALL, 4))), ones(SMALL))

    return [Part(kernel.function, SMALL // BLOCK, BLOCK, arguments, blocks=2**26 / SMALL)]


def _mean(kind: str, radius: int) -> list[Part]:
    def arguments() -> tuple:
        return ones(SMALL + 2 * radius), ones(SMALL), np.uint64(SMALL)

    return [Part(_cuda("stencil", f"mean_{kind}<{radius}>"), SMALL // BLOCK, BLOCK, arguments, blocks=2**27 / SMALL)]


def _heat(kind: str) -> list[Part]:
    side = SMALL_SIDE

    def arguments() -> tuple:
        return ones(side + 2, side + 2), ones(side, side), np.int32(side), np.int32(side)

    grid = side // HEAT_BLOCK[0], side // HEAT_BLOCK[1]
    return [Part(_cuda("stencil", f"heat_{kind}"), grid, HEAT_BLOCK, arguments, blocks=(SIDE / side) ** 2)]


def _kernel(name: str, what: str, table: str, parts: Callable[..., list[Part]], fills: int = 0) -> TimedCall:
    """Return a kernel that is a row of a table by its name."""
    return TimedCall(what, table, row("kernels", kernel=name), parts, fills)


def _stencils(kind: str) -> list[TimedCall]:
    means = [
        TimedCall(
            f"mean of {2 * radius + 1} through {kind}",
            "stencils",
            row("rows", f"{kind}.seconds", radius=radius),
            functools.partial(_mean, kind, radius),
        )
        for radius in RADII
    ]
    heat = functools.partial(_heat, kind)
    return [
        *means,
        TimedCall(f"heat through {kind}", "stencils", lambda value: value["heat"][kind]["seconds"], heat),
    ]


TIMED = [
    *(
        _kernel(name, f"{name}: transpose", "transpose_table", functools.partial(_transpose, name))
        for name in TRANSPOSES
        if name not in ANY_SHAPE
    ),
    *(
        TimedCall(
            f"{name}: transpose of {timed[0]} x {timed[1]}",
            "transpose_shapes",
            row(rows=timed[0], columns=timed[1], kernel=name),
            functools.partial(_transpose, name, timed, simulated),
        )
        for timed, simulated, name in zip(AWKWARD, SMALL_AWKWARD, ("cuda_float4", "cuda_large"), strict=True)
    ),
    *(
        _kernel(name, f"{name}: sum", "sum_table", functools.partial(_sum, name), int(kernel.atomic))
        for name, kernel in SUMS.items()
    ),
    _kernel("cuda_by_blocks", "prefix sum by blocks", "scan_table", _scan_by_blocks),
    _kernel("cuda_look_back", "prefix sum with look-back", "scan_table", _scan_look_back, 1),
    *(_kernel(name, name, "layout_table", functools.partial(_layout, name)) for name in LAYOUTS),
    *_stencils("l1"),
    *_stencils("shared"),
]
