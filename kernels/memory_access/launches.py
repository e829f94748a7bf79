"""Launches of lab 02's kernels whose counters are compared with Nsight Compute's (`python -m tools.ncu`).

Sizes that leave warps and tiles partly empty, beside sizes that fill them. The prefix sum with look-back has one tile:
with more, the loads of a block that waits depend on how long it waits.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.memory_access.patterns import HEAT_BLOCK, LAYOUTS, STRIDED, Layout
from kernels.memory_access.scanning import SCANS, TILE
from kernels.memory_access.sources import BLOCK, FLIGHTS, RADII, SOURCES, in_flight
from kernels.memory_access.summing import SUMS, Sum
from kernels.memory_access.transposing import TRANSPOSES, Transpose
from warpcourse.bench.compared_launches import EFFICIENCY, Difference, Launch, with_differences
from warpcourse.bench.copy_differences import NOT_COUNTED
from warpcourse.bench.lab_kernels import Kernel

_ESTIMATED = (
    "How many machine instructions ptxas makes of a PTX instruction is estimated; where few lanes run a part of the "
    "kernel, it makes more or fewer of that part than the estimate."
)
_TRAFFIC = (
    "ncu takes 3 of these loads for conflicts, though in each all lanes read one address. On a busy H100 it counts "
    "some in nearly every kernel, 1.2 million in transpose_padded of 16384 × 16384, whose addresses give none."
)
_COPIES = (
    NOT_COUNTED,
    Difference(
        "shared_copy_wavefronts",
        0.5,
        "Copies of 16 bytes take up to twice the passes that their addresses ask for, of as many requests. Why is not "
        "known: those of lab 04 agree.",
    ),
    Difference(EFFICIENCY, 0.04, _ESTIMATED),
)
# By the beginning of the launch's name.
_DIFFERENCES = {
    **dict.fromkeys(("cuda_sectors: transpose", "cuda_few_columns: transpose"), _COPIES),
    "prefix sum of": (
        Difference("shared_load_wavefronts", 0.06, _TRAFFIC),
        Difference("shared_load_conflicts", 1.0, _TRAFFIC),
    ),
    **dict.fromkeys(
        ("numba_interleaved", "numba_sequential", "numba_shuffle", "heat through shared", "cuda_float4: transpose"),
        (Difference(EFFICIENCY, 0.04, _ESTIMATED),),
    ),
}


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).random(shape, dtype=np.float32)


def _empty(*shape: int) -> np.ndarray:
    return np.full(shape, np.nan, np.float32)


def _cuda(file: str, entry: str) -> Callable[[], Any]:
    return functools.partial(SOURCES.function, f"{file}.cu", entry)


def _strided(kernel: Kernel, n: int, stride: int, offset: int) -> Launch:
    arrays = _random(n * stride + offset), _empty(n)
    numbers = (np.int64(stride), np.int64(offset))
    if kernel.language != "Numba":
        numbers = (np.uint64(n), np.int32(stride), np.int32(offset))
    name = f"{kernel.name}: copy, stride {stride}, offset {offset}"
    return Launch(name, kernel.function, math.ceil(n / BLOCK), BLOCK, (*arrays, *numbers))


def _transpose(kernel: Transpose, rows: int, columns: int) -> Launch:
    if rows % kernel.multiple or columns % kernel.multiple:
        rows, columns = 100, 156
    arguments = kernel.arguments(_random(rows, columns), _empty(columns, rows))
    name, (grid, _, shared_bytes) = f"{kernel.name}: transpose of {rows} × {columns}", kernel.plan(rows, columns)
    return Launch(name, kernel.function, grid, kernel.block, arguments, shared_bytes)


def _sum(kernel: Sum, n: int) -> Launch:
    blocks = min(kernel.blocks(n), 7) if "grid_stride" in kernel.name else kernel.blocks(n)
    arguments = kernel.arguments(_random(n), np.zeros(1 if kernel.atomic else blocks, np.float32))
    return Launch(f"{kernel.name}: sum of {n}", kernel.function, blocks, kernel.block, arguments)


def _scans(n: int) -> list[Launch]:
    blocks, size = math.ceil(n / BLOCK), np.uint64(n)
    scanned, added = (_random(n), _empty(n), _empty(blocks), size), (_random(n), _random(blocks), size)
    return [
        Launch(f"prefix sums of blocks of {n}", _cuda("scan", "scan_blocks"), blocks, BLOCK, scanned),
        Launch(f"sums before added to {n}", _cuda("scan", "add_before"), blocks - 1, BLOCK, added),
    ]


def _look_back(n: int) -> Launch:
    arguments = _random(n), _empty(n), np.uint64(n), np.zeros(1, np.uint64), np.zeros(1, np.uint32)
    return Launch(f"prefix sum of {n}", SCANS["cuda_look_back"].function, 1, 256, arguments)


def _layout(kernel: Layout, n: int) -> Launch:
    arguments = kernel.arguments(_random(*((4, n) if kernel.soa else (n, 4))), _empty(n))
    return Launch(f"{kernel.name}, {n} points", kernel.function, math.ceil(n / BLOCK), BLOCK, arguments)


def _stencils(kind: str, n: int, rows: int, columns: int) -> list[Launch]:
    grid = math.ceil(columns / HEAT_BLOCK[0]), math.ceil(rows / HEAT_BLOCK[1])
    heat = _random(rows + 2, columns + 2), _empty(rows, columns), np.int32(rows), np.int32(columns)
    means = [
        Launch(
            f"mean of {2 * radius + 1} through {kind}",
            *(_cuda("stencil", f"mean_{kind}<{radius}>"), math.ceil(n / BLOCK), BLOCK),
            (_random(n + 2 * radius), _empty(n), np.uint64(n)),
        )
        for radius in RADII
    ]
    return [*means, Launch(f"heat through {kind}", _cuda("stencil", f"heat_{kind}"), grid, HEAT_BLOCK, heat)]


def _in_flight(width: int, items: int, n: int) -> Launch:
    arguments = _random(n), _empty(n), np.uint64(n * 4 // width)
    name = f"copy, {items} loads of {width} bytes in flight"
    return Launch(name, _cuda("access", in_flight(width, items)), 2, BLOCK, arguments)


def _experiments() -> list[Launch]:
    again = _random(4000), np.uint32(1000), np.int32(24), _empty(3 * BLOCK)
    following = np.roll(np.arange(1000, dtype=np.uint32), -7)
    chased = following, np.uint32(0), np.int32(100), np.zeros(1, np.uint32)
    banks = _cuda("banks", "read_banks")
    return [
        *(_in_flight(width, items, 2**14) for width, items in FLIGHTS),
        Launch("read again and again", _cuda("access", "read_again"), 3, BLOCK, again),
        Launch("chase", _cuda("access", "chase"), 1, 1, chased),
        *(
            Launch(f"banks, stride {stride}", banks, 1, BLOCK, (_empty(BLOCK), np.int32(stride), np.int32(3)))
            for stride in (0, 1, 2, 3, 4, 8, 16, 17, 32, 33)
        ),
    ]


_PATTERNS = ((1, 0), (2, 0), (4, 0), (8, 0), (32, 0), (1, 1), (1, 8), (1, 31))  # strides and offsets
_ALL = [
    *(_strided(kernel, 2000, *pattern) for kernel in STRIDED.values() for pattern in _PATTERNS),
    *(_transpose(kernel, *shape) for kernel in TRANSPOSES.values() for shape in ((128, 128), (101, 157))),
    *(_sum(kernel, n) for kernel in SUMS.values() for n in (2**17, 10007)),
    *_scans(10007),
    *(_look_back(n) for n in (TILE, TILE - 185)),
    *(_layout(kernel, 2000) for kernel in LAYOUTS.values()),
    *_stencils("l1", 2000, 45, 77),
    *_stencils("shared", 2000, 45, 77),
    *_experiments(),
]
LAUNCHES = with_differences(_ALL, _DIFFERENCES)
