"""What lesson 02 shows beside estimates of a learner's own transposes, 16384 × 16384: measured, or recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.memory_access import recordings
from kernels.memory_access.tables import SIDE
from warplab.bench.timing import cupy_on_gpu
from warplab.estimating.beside import KnownTime


def transpose_time(kernel: Any, block_rows: int, recorded: str) -> KnownTime | None:
    """The time of `kernel(in, out, rows, columns)` with blocks of 32 × 8 threads that move 32 × `block_rows` elements.

    `recorded`: the course's kernel that has such blocks, whose time is shown without a GPU.
    """

    def arguments() -> tuple:
        cupy = cupy_on_gpu()
        a = cupy.random.random((SIDE, SIDE), dtype=np.float32)
        return a, cupy.empty_like(a), np.int32(SIDE), np.int32(SIDE)

    return recordings.time_of(
        kernel,
        (SIDE // 32, SIDE // block_rows),
        (32, 8),
        arguments,
        key="transpose_table",
        find=lambda value: next(r["seconds"] for r in value["kernels"] if r["kernel"] == recorded),
        of=f"the course's {recorded}",
    )
