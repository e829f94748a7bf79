"""Launches of lab 01's kernels whose times are recorded, for `tools.estimate_error`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.vector_multiply.product import BLOCK, KERNELS
from warplab.bench.timed_launches import Part, TimedCall, row

N = 2**28
SIMULATED = 2**20  # elements
BYTES = 12  # per element: two read, one written
SIZES = tuple(2**k for k in (10, 13, 16, 19, 22, 25, 28))
SCALAR, FLOAT4 = "cuda_scalar", "cuda_float4"
BLOCKS = (1, *(132 * k for k in (1, 2, 4, 8, 16, 32, 64, 128)), N // BLOCK)


def _part(name: str, n: int, block: int = BLOCK, blocks: int | None = None) -> Part:
    kernel = KERNELS[name]
    timed = kernel.blocks(n, block) if blocks is None else blocks
    small, work = min(n, SIMULATED), 1.0
    if "grid_stride" in name:
        share = 64 if timed % 64 == 0 else 1
        simulated = timed // share
        small = min(n // share, max(SIMULATED, 4 * simulated * block))
        work = n / share / small
    else:
        simulated = kernel.blocks(small, block)

    def arguments() -> tuple:
        return kernel.arguments(*(np.ones(small, np.float32) for _ in range(3)))

    return Part(kernel.function, simulated, block, arguments, blocks=timed / simulated, work=work)


def _call(name: str, key: str, seconds: Callable[[Any], float], *of_part: Any) -> TimedCall:
    return TimedCall(f"lab 01, {name}", key, seconds, lambda: [_part(*of_part)])


def _rows(value: Any) -> list[dict]:
    return value["rows"]


def _of_rate(find: Callable[[Any], float]) -> Callable[[Any], float]:
    """Seconds from a recorded rate in GB/s of all n elements."""
    return lambda value: BYTES * value["n"] / find(value) / 1e9


def _list(value: Any) -> list[dict]:
    return value


_rate = functools.partial(row, _rows, "gbps")
TIMED = [
    *(_call(f"{name}, n = 2^28", "kernel_table", row(_rows, kernel=name), name, N) for name in KERNELS),
    *(
        _call(f"{name}, n = 2^{n.bit_length() - 1} by size", "sizes", row(_list, f"{name}_seconds", n=n), name, n)
        for n in SIZES
        for name in (SCALAR, FLOAT4)
    ),
    *(
        _call(f"{name}, blocks of {block}", "block_sizes", _of_rate(_rate(kernel=name, block=block)), name, N, block)
        for name in (SCALAR, FLOAT4)
        for block in (32, 64, 128, 256, 512, 1024)
    ),
    *(
        _call(
            f"cuda_grid_stride, {blocks} blocks",
            "grid_sizes",
            _of_rate(_rate(blocks=blocks)),
            *("cuda_grid_stride", N, BLOCK, blocks),
        )
        for blocks in BLOCKS
    ),
]
