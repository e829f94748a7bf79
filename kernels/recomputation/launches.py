"""Launches of lab 08's kernels whose counters are compared with Nsight Compute's (`make compare-ncu`)."""

from __future__ import annotations

import numpy as np

from kernels.recomputation.silu import BLOCK, KERNELS, MOVED, arguments, blocks
from warplab.bench.compared_launches import Launch


def _launches(n: int) -> list[Launch]:
    rng = np.random.default_rng(8)
    given = {name: rng.standard_normal(n, dtype=np.float32) for name in ("x", "dy", "s")}
    found = []
    for entry, kernels in KERNELS.items():
        read, written = MOVED[entry]
        for kernel in kernels.values():
            arrays = [given[name] for name in read] + [np.full(n, np.nan, np.float32) for _ in written]
            name = f"{entry}, {kernel.name}, n = {n}"
            found.append(Launch(name, kernel.function, blocks(kernel, n), BLOCK, arguments(kernel, *arrays)))
    return found


LAUNCHES = [launch for n in (4096, 1003) for launch in _launches(n)]
