"""What lesson 03 shows beside estimates of a learner's own branches, on 2^22 elements.

Nobody recorded the learner's kernels: they have a time on a GPU alone. The course's `paths` was recorded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.warp_divergence import divergence, recordings
from kernels.warp_divergence.kernel_table import BLOCK, blocks, kernel
from kernels.warp_divergence.measurements import PATHS_N, PATHS_STEPS
from warplab.bench.timing import cupy_on_gpu
from warplab.estimating.beside import KnownTime


def ways_time(own: Any, shift: int) -> KnownTime | None:
    """The time of `own(x, out, shift)` in blocks of 256 threads; None without a GPU."""

    def arguments() -> tuple:
        x = cupy_on_gpu().random.random(PATHS_N, dtype=np.float32)
        return x, x.copy(), shift

    return recordings.time_of(own, PATHS_N // 256, 256, arguments)


def paths_time(ways: int, by: str) -> KnownTime | None:
    """The time of the course's paths with `ways` ways by "lane" or "warp"."""

    def arguments() -> tuple:
        x = cupy_on_gpu().random.random(PATHS_N, dtype=np.float32)
        return divergence.paths_arguments(x, x.copy(), by, PATHS_STEPS)

    return recordings.time_of(
        kernel(f"cuda_paths<{ways}>").function(),
        blocks(PATHS_N),
        BLOCK,
        arguments,
        key="path_costs",
        find=lambda value: next(r[f"by_{by}_seconds"] for r in value["rows"] if r["ways"] == ways),
        of=f"paths<{ways}> by {by}",
    )
