"""What lesson 01 shows beside estimates of a learner's own launches on 2^28 elements: measured, or recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.vector_multiply import recordings
from kernels.vector_multiply.measurements import BYTES_PER_ELEMENT, N, buffers
from warplab.estimating.beside import KnownTime


def multiply_time(kernel: Any, block: int, blocks: int | None = None) -> KnownTime | None:
    """The time of `kernel(a, b, out, n)` with blocks of `block` threads, on 2^28 elements.

    `blocks`: of the grid; None for one thread per element, whose recorded time is that of the course's cuda_scalar.
    """

    def seconds(value: Any) -> float:
        rate = next(r["gbps"] for r in value["rows"] if r["kernel"] == "cuda_scalar" and r["block"] == block)
        return BYTES_PER_ELEMENT * value["n"] / rate / 1e9

    return recordings.time_of(
        kernel,
        N // block if blocks is None else blocks,
        block,
        lambda: (*buffers(N), np.int32(N)),
        key="block_sizes",
        find=seconds if blocks is None else None,
        of="the course's cuda_scalar, whose indices have 64 bits",
    )
