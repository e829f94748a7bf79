"""Launches of lab 02's kernels whose times are recorded, for `tools.estimate_error`.

The sweeps of strides, offsets, working sets, bytes in flight, latencies and banks are not among them: the estimate
takes its rates from these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.memory_access.patterns import HEAT_BLOCK, LAYOUTS
from kernels.memory_access.scanning import TILE
from kernels.memory_access.sources import BLOCK, RADII, SOURCES
from kernels.memory_access.summing import SUMS, Sum
from kernels.memory_access.tables import AWKWARD, SIDE, N
from kernels.memory_access.transposing import TRANSPOSES
from warplab.bench.timed_launches import Part, TimedCall, row

SMALL = 2**20  # elements that are simulated of a long vector
SMALL_SIDE = 2048
# Smaller matrices whose rows start at the same places within a sector as those of AWKWARD.
SMALL_AWKWARD = ((2044, 2500), (2045, 2507))


def _kernels(value: Any) -> list[dict]:
    return value["kernels"]


def _ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def _cuda(file: str, entry: str) -> Callable[[], Any]:
    return lambda: SOURCES.function(f"{file}.cu", entry)


# -- transposes --------------------------------------------------------------------------------------------------------


def _transpose(name: str, timed: tuple[int, int], simulated: tuple[int, int]) -> list[Part]:
    kernel = TRANSPOSES[name]
    grid = kernel.grid(*simulated)
    times = math.prod(kernel.grid(*timed)) / math.prod(grid)

    def arguments() -> tuple:
        return kernel.arguments(_ones(*simulated), _ones(*simulated[::-1]))

    return [Part(kernel.function, grid, kernel.block, arguments, blocks=times)]


def _transposes() -> list[TimedCall]:
    square, small = (SIDE, SIDE), (SMALL_SIDE, SMALL_SIDE)
    result = [
        TimedCall(
            f"lab 02, {name}: transpose",
            "transpose_table",
            row(_kernels, kernel=name),
            lambda name=name: _transpose(name, square, small),
        )
        for name in TRANSPOSES
    ]
    for timed, simulated, name in zip(AWKWARD, SMALL_AWKWARD, ("cuda_float4", "cuda_large"), strict=True):
        result.append(
            TimedCall(
                f"lab 02, {name}: transpose of {timed[0]} x {timed[1]}",
                "transpose_shapes",
                row(lambda value: value, rows=timed[0], columns=timed[1]),
                lambda name=name, timed=timed, simulated=simulated: _transpose(name, timed, simulated),
            )
        )
    return result


# -- sums and prefix sums ----------------------------------------------------------------------------------------------


def _sum_part(kernel: Sum, n: int) -> Part:
    blocks = kernel.blocks(n)
    share = 64 if n > SMALL and blocks % 64 == 0 else 1
    if n > SMALL and not kernel.atomic:
        share = n // SMALL

    def arguments() -> tuple:
        out = np.zeros(1 if kernel.atomic else blocks // share, np.float32)
        return kernel.arguments(_ones(n // share), out)

    return Part(kernel.function, blocks // share, kernel.block, arguments, blocks=share)


def _sum(name: str) -> list[Part]:
    kernel, n, parts = SUMS[name], N, []
    while True:
        parts.append(_sum_part(kernel, n))
        n = kernel.blocks(n)
        if kernel.atomic or n == 1:
            return parts


def _scan_by_blocks() -> list[Part]:
    levels, n = [], N
    while not levels or n > 1:
        levels.append(n)
        n = math.ceil(n / BLOCK)
    parts = []
    for size in levels:
        small = min(size, SMALL)
        blocks = math.ceil(small / BLOCK)

        def scanned(small: int = small, blocks: int = blocks) -> tuple:
            return _ones(small), _ones(small), _ones(blocks), np.uint64(small)

        parts.append(Part(_cuda("scan", "scan_blocks"), blocks, BLOCK, scanned, blocks=size / small))
    for size in levels[:-1]:
        small = min(size, SMALL)
        blocks = math.ceil(small / BLOCK)

        def added(small: int = small, blocks: int = blocks) -> tuple:
            return _ones(small), _ones(blocks), np.uint64(small)

        parts.append(Part(_cuda("scan", "add_before"), blocks - 1, BLOCK, added, blocks=size / small))
    return parts


def _scan_look_back() -> list[Part]:
    tiles = 64

    def arguments() -> tuple:
        n = tiles * TILE
        return _ones(n), _ones(n), np.uint64(n), np.zeros(tiles, np.uint64), np.zeros(1, np.uint32)

    return [Part(_cuda("scan", "scan_look_back"), tiles, 256, arguments, blocks=N / TILE / tiles)]


# -- layouts and stencils ----------------------------------------------------------------------------------------------


def _layout(name: str) -> list[Part]:
    kernel = LAYOUTS[name]

    def arguments() -> tuple:
        return kernel.arguments(_ones(*((4, SMALL) if kernel.soa else (SMALL, 4))), _ones(SMALL))

    return [Part(kernel.function, SMALL // BLOCK, BLOCK, arguments, blocks=2**26 / SMALL)]


def _mean(kind: str, radius: int) -> list[Part]:
    def arguments() -> tuple:
        return _ones(SMALL + 2 * radius), _ones(SMALL), np.uint64(SMALL)

    kernel = _cuda("stencil", f"mean_{kind}<{radius}>")
    return [Part(kernel, SMALL // BLOCK, BLOCK, arguments, blocks=2**27 / SMALL)]


def _heat(kind: str) -> list[Part]:
    side = SMALL_SIDE

    def arguments() -> tuple:
        return _ones(side + 2, side + 2), _ones(side, side), np.int32(side), np.int32(side)

    grid = side // HEAT_BLOCK[0], side // HEAT_BLOCK[1]
    return [Part(_cuda("stencil", f"heat_{kind}"), grid, HEAT_BLOCK, arguments, blocks=(SIDE / side) ** 2)]


def _stencils() -> list[TimedCall]:
    result = []
    for kind in ("l1", "shared"):
        for radius in RADII:
            result.append(
                TimedCall(
                    f"lab 02, mean of {2 * radius + 1} through {kind}",
                    "stencils",
                    lambda value, kind=kind, radius=radius: next(
                        r[kind]["seconds"] for r in value["rows"] if r["radius"] == radius
                    ),
                    lambda kind=kind, radius=radius: _mean(kind, radius),
                )
            )
        result.append(
            TimedCall(
                f"lab 02, heat through {kind}",
                "stencils",
                lambda value, kind=kind: value["heat"][kind]["seconds"],
                lambda kind=kind: _heat(kind),
            )
        )
    return result


TIMED = [
    *_transposes(),
    *(
        TimedCall(
            f"lab 02, {name}: sum",
            "sum_table",
            row(_kernels, kernel=name),
            lambda name=name: _sum(name),
            fills=int(kernel.atomic),
        )
        for name, kernel in SUMS.items()
    ),
    TimedCall("lab 02, prefix sum by blocks", "scan_table", row(_kernels, kernel="cuda_by_blocks"), _scan_by_blocks),
    TimedCall(
        "lab 02, prefix sum with look-back", "scan_table", row(_kernels, kernel="cuda_look_back"), _scan_look_back, 1
    ),
    *(
        TimedCall(f"lab 02, {name}", "layout_table", row(_kernels, kernel=name), lambda name=name: _layout(name))
        for name in LAYOUTS
    ),
    *_stencils(),
]
