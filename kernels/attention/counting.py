"""What the steps move and compute, counted in the simulator: by length, naive beside fused."""

from typing import Any

import numpy as np

from kernels.attention.forward_pass import STEPS, forward
from warplab import cp, profile


def counted(
    step: str | int, length: int, size: int = 64, heads: int = 1, shared_by: int = 1, causal: bool = False
) -> dict[str, Any]:
    """Return counters of a forward pass over random operands, summed over its launches.

    `loaded`, `stored`: bytes of global memory that warps asked for, an address that lanes share once; `sectors`: those
    of 32 bytes that they touched; `stored_once`: bytes that any exact attention must write, output and logarithms of
    sums; `instructions`: of warps. Step 4 loads by TMA, which the simulator does not count in bytes: ValueError.
    """
    chosen = next(s for s in STEPS.values() if step in (s.name, s.number))
    if chosen.name == "wgmma":
        raise ValueError("wgmma loads by TMA, whose bytes are not counted; choose another step")
    random, dtype = np.random.default_rng(length), chosen.dtypes[0]
    q, k, v = (
        cp.asarray(random.standard_normal((1, n, length, size)).astype(dtype))
        for n in (heads, *[heads // shared_by] * 2)
    )
    with profile() as profiled:
        forward(q, k, v, causal, step=chosen.name)
    counts = profiled.counts
    return {
        "step": chosen.name,
        "length": length,
        "launches": len(profiled),
        "loaded": counts.global_load_bytes,
        "stored": counts.global_store_bytes,
        "sectors": counts.global_load_sectors + counts.global_store_sectors,
        "stored_once": heads * length * (size * dtype.itemsize + 4),
        "instructions": counts.warp_instructions,
    }
