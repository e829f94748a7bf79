"""Launches of lab 13's kernels whose counters are compared with Nsight Compute's (`make compare-ncu`)."""

from __future__ import annotations

import numpy as np

from kernels.attention.scaling import BLOCK, KERNELS, arguments, blocks
from warpcourse.bench.compared_launches import Launch


def _launches(n: int) -> list[Launch]:
    x, out = np.arange(n, dtype=np.float32), np.full(n, np.nan, np.float32)
    return [
        Launch(f"{kernel.name}, n = {n}", kernel.function, blocks(n), BLOCK, arguments(kernel, x, 2.0, out))
        for kernel in KERNELS.values()
    ]


LAUNCHES = [launch for n in (4096, 1003) for launch in _launches(n)]
