"""Launches of lab 08's kernels whose counters are compared with Nsight Compute's (`make compare-ncu`)."""

import numpy as np

from kernels.recomputation.silu import BLOCK, KERNELS, MOVED, arguments, blocks
from warpcourse.bench.compared_launches import EFFICIENCY, Difference, Launch

# By the name of the launch.
DIFFERENCES = {
    "silu_storing_backward, cuda_float4, n = 1003": Difference(
        EFFICIENCY,
        0.05,
        "What the last thread takes one by one has more instructions in machine code than in PTX, and so a larger "
        "share of this short kernel.",
    )
}


def _launches(n: int) -> list[Launch]:
    rng = np.random.default_rng(8)
    given = {name: rng.standard_normal(n, dtype=np.float32) for name in ("x", "dy", "s")}
    found = []
    for entry, kernels in KERNELS.items():
        read, written = MOVED[entry]
        for kernel in kernels.values():
            arrays = [given[name] for name in read] + [np.full(n, np.nan, np.float32) for _ in written]
            name = f"{entry}, {kernel.name}, n = {n}"
            its_own = arguments(kernel, *arrays)
            allowed = (DIFFERENCES[name],) if name in DIFFERENCES else ()
            found.append(Launch(name, kernel.function, blocks(kernel, n), BLOCK, its_own, differences=allowed))
    return found


LAUNCHES = [launch for n in (4096, 1003) for launch in _launches(n)]
