"""Launches of lab 01's kernels whose times are recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from evidence.estimates.timed_calls import Part, TimedCall, ones, row
from kernels.vector_multiply.measurements import BYTES_PER_ELEMENT, N
from kernels.vector_multiply.product import BLOCK, KERNELS

SIMULATED = 2**20  # elements
SIZES = tuple(2**k for k in (10, 13, 16, 19, 22, 25, 28))
SCALAR, FLOAT4, LOOP = "cuda_scalar", "cuda_float4", "cuda_grid_stride"
BLOCKS = (1, *(132 * k for k in (1, 2, 4, 8, 16, 32, 64, 128)), N // BLOCK)


def _parts(name: str, n: int = N, block: int = BLOCK, blocks: int | None = None) -> list[Part]:
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
        return kernel.arguments(*(ones(small) for _ in range(3)))

    return [Part(kernel.function, simulated, block, arguments, blocks=timed / simulated, work=work)]


def _call(name: str, what: str, key: str, seconds: Callable[[Any], float], **of_part: int) -> TimedCall:
    return TimedCall(f"{name}, {what}", key, seconds, functools.partial(_parts, name, **of_part))


def _of_rate(**named: Any) -> Callable[[Any], float]:
    """Seconds from a recorded rate in GB/s of all n elements."""
    rate = row("rows", "gbps", **named)
    return lambda value: BYTES_PER_ELEMENT * value["n"] / rate(value) / 1e9


TIMED = [
    *(_call(name, "n = 2^28", "kernel_table", row("rows", kernel=name)) for name in KERNELS),
    *(
        _call(name, f"n = 2^{n.bit_length() - 1} by size", "sizes", row("", f"{name}_seconds", n=n), n=n)
        for n in SIZES
        for name in (SCALAR, FLOAT4)
    ),
    *(
        _call(name, f"blocks of {block}", "block_sizes", _of_rate(kernel=name, block=block), block=block)
        for name in (SCALAR, FLOAT4)
        for block in (32, 64, 128, 256, 512, 1024)
    ),
    *(_call(LOOP, f"{blocks} blocks", "grid_sizes", _of_rate(blocks=blocks), blocks=blocks) for blocks in BLOCKS),
]
