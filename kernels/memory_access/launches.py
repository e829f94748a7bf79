"""Launches of lab 02's kernels whose counters are compared with Nsight Compute's (`python -m tools.ncu`).

Sizes that leave warps and tiles partly empty, beside sizes that fill them. The prefix sum with look-back has one tile:
with more, the loads of a block that waits depend on how long it waits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernels.memory_access.patterns import HEAT_BLOCK, LAYOUTS, STRIDED
from kernels.memory_access.scanning import SCANS, TILE
from kernels.memory_access.sources import BLOCK, FLIGHTS, RADII, SOURCES, in_flight
from kernels.memory_access.summing import SUMS
from kernels.memory_access.transposing import TRANSPOSES
from warplab.bench.compared_launches import EFFICIENCY, Difference, Launch
from warplab.bench.lab_kernels import Kernel, Size

_ESTIMATED = (
    "How many machine instructions ptxas makes of a PTX instruction is estimated; where few lanes run a part of the "
    "kernel, it makes more or fewer of that part than the estimate."
)
_TRAFFIC = (
    "ncu takes 3 of these loads for conflicts, though in each all lanes read one address. On a busy H100 it counts "
    "some in nearly every kernel, 1.2 million in transpose_padded of 16384 × 16384, whose addresses give none."
)
# By the beginning of the launch's name.
_DIFFERENCES = {
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


def _launch(name: str, kernel: Any, grid: Size, block: Size, *arguments: Any) -> Launch:
    differences = next((d for start, d in _DIFFERENCES.items() if name.startswith(start)), ())
    return Launch(name, kernel, grid, block, arguments, differences=differences)


def _cuda(file: str, entry: str) -> Any:
    return lambda: SOURCES.function(f"{file}.cu", entry)


def _strided(kernel: Kernel, n: int, stride: int, offset: int) -> Launch:
    arrays = _random(n * stride + offset), _empty(n)
    numbers = (np.int64(stride), np.int64(offset))
    if kernel.language != "Numba":
        numbers = (np.uint64(n), np.int32(stride), np.int32(offset))
    name = f"{kernel.name}: copy, stride {stride}, offset {offset}"
    return _launch(name, kernel.function, math.ceil(n / BLOCK), BLOCK, *arrays, *numbers)


def _transposes() -> list[Launch]:
    result = []
    for kernel in TRANSPOSES.values():
        for rows, columns in ((128, 128), (101, 157)):
            if rows % kernel.multiple or columns % kernel.multiple:
                rows, columns = 100, 156
            arguments = kernel.arguments(_random(rows, columns), _empty(columns, rows))
            name = f"{kernel.name}: transpose of {rows} × {columns}"
            result.append(_launch(name, kernel.function, kernel.grid(rows, columns), kernel.block, *arguments))
    return result


def _sums() -> list[Launch]:
    result = []
    for kernel in SUMS.values():
        for n in (2**17, 10007):
            a = _random(n)
            blocks = min(kernel.blocks(n), 7) if "grid_stride" in kernel.name else kernel.blocks(n)
            out = np.zeros(1 if kernel.atomic else blocks, np.float32)
            arguments = kernel.arguments(a, out)
            result.append(_launch(f"{kernel.name}: sum of {n}", kernel.function, blocks, kernel.block, *arguments))
    return result


def _scans() -> list[Launch]:
    n = 10007
    blocks = math.ceil(n / BLOCK)
    result = [
        _launch(
            f"prefix sums of blocks of {n}",
            _cuda("scan", "scan_blocks"),
            blocks,
            BLOCK,
            *(_random(n), _empty(n), _empty(blocks), np.uint64(n)),
        ),
        _launch(
            f"sums before added to {n}",
            _cuda("scan", "add_before"),
            blocks - 1,
            BLOCK,
            *(_random(n), _random(blocks), np.uint64(n)),
        ),
    ]
    for n in (TILE, TILE - 185):
        state = np.zeros(1, np.uint64), np.zeros(1, np.uint32)
        arguments = _random(n), _empty(n), np.uint64(n), *state
        result.append(_launch(f"prefix sum of {n}", SCANS["cuda_look_back"].function, 1, 256, *arguments))
    return result


def _layouts() -> list[Launch]:
    n = 2000
    result = []
    for kernel in LAYOUTS.values():
        arguments = kernel.arguments(_random(*((4, n) if kernel.soa else (n, 4))), _empty(n))
        result.append(_launch(f"{kernel.name}, {n} points", kernel.function, math.ceil(n / BLOCK), BLOCK, *arguments))
    return result


def _stencils() -> list[Launch]:
    n, rows, columns = 2000, 45, 77
    grid = math.ceil(columns / HEAT_BLOCK[0]), math.ceil(rows / HEAT_BLOCK[1])
    result = []
    for kind in ("l1", "shared"):
        for radius in RADII:
            arguments = _random(n + 2 * radius), _empty(n), np.uint64(n)
            kernel = _cuda("stencil", f"mean_{kind}<{radius}>")
            name = f"mean of {2 * radius + 1} through {kind}"
            result.append(_launch(name, kernel, math.ceil(n / BLOCK), BLOCK, *arguments))
        arguments = _random(rows + 2, columns + 2), _empty(rows, columns), np.int32(rows), np.int32(columns)
        result.append(_launch(f"heat through {kind}", _cuda("stencil", f"heat_{kind}"), grid, HEAT_BLOCK, *arguments))
    return result


def _experiments() -> list[Launch]:
    n = 2**14
    result = []
    for width, items in FLIGHTS:
        kernel = _cuda("access", in_flight(width, items))
        name = f"copy, {items} loads of {width} bytes in flight"
        result.append(_launch(name, kernel, 2, BLOCK, _random(n), _empty(n), np.uint64(n * 4 // width)))
    arguments = _random(4000), np.uint32(1000), np.int32(24), _empty(3 * BLOCK)
    result.append(_launch("read again and again", _cuda("access", "read_again"), 3, BLOCK, *arguments))
    following = np.roll(np.arange(1000, dtype=np.uint32), -7)
    arguments = following, np.uint32(0), np.int32(100), np.zeros(1, np.uint32)
    result.append(_launch("chase", _cuda("access", "chase"), 1, 1, *arguments))
    for stride in (0, 1, 2, 3, 4, 8, 16, 17, 32, 33):
        arguments = _empty(BLOCK), np.int32(stride), np.int32(3)
        result.append(_launch(f"banks, stride {stride}", _cuda("banks", "read_banks"), 1, BLOCK, *arguments))
    return result


LAUNCHES = [
    *(
        _strided(kernel, 2000, stride, offset)
        for kernel in STRIDED.values()
        for stride, offset in ((1, 0), (2, 0), (4, 0), (8, 0), (32, 0), (1, 1), (1, 8), (1, 31))
    ),
    *_transposes(),
    *_sums(),
    *_scans(),
    *_layouts(),
    *_stencils(),
    *_experiments(),
]
