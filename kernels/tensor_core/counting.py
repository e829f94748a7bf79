"""What the second lesson counts of each step: one product in the simulator, of whole tiles."""

import numpy as np

from kernels.tensor_core.ladder import STEPS
from kernels.tensor_core.product import multiply
from warplab import cp, profile

SIDE = 256


def table() -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return head and rows, a step each. Steps 5 and 6 bring their tiles by TMA, which no load and no pass counts."""
    factors, rows, flop = [cp.ones((SIDE, SIDE), np.float16)] * 2, [], 2 * SIDE**3
    for name in STEPS:
        with profile() as p:
            multiply(*factors, step=name)
        c = p.counts
        passes = c.shared_load_wavefronts + c.shared_copy_wavefronts
        each = (f"{flop / n:,.1f}" if n else "" for n in (c.global_load_bytes, passes))
        counts = c.shared_load_conflicts, c.shared_load_wavefronts, c.warp_instructions, c.tensor_operations
        rows.append((name, *each, *map("{:,}".format, counts)))
    per_byte, per_pass = "FLOP per byte of global loads", "FLOP per pass through shared memory"
    head = "step", per_byte, per_pass, "load conflicts", "passes to load fragments", "warp instructions"
    return (*head, "of the tensor cores"), rows
