"""What lab 13 measures on a GPU: one function per table or plot, each returning numbers in JSON types.

Keys end in their unit: `seconds`, `gbps` (1e9 bytes per second). Times are medians. `MEASUREMENTS` names the functions
as `recordings.json` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.attention.scaling import BLOCK, KERNELS, arguments, blocks
from warpcourse.bench import timing
from warpcourse.bench.timing import Candidate

N = 2**28


def kernel_table(n: int = N) -> dict[str, Any]:
    """Time every kernel at n elements beside the device-to-device copy, timed in turns, each output checked."""
    cupy = timing.cupy_on_gpu()
    n = timing.fitting(n, 3)
    x, out = cupy.random.random(n, dtype=np.float32), cupy.empty(n, np.float32)
    candidates = {"copy": Candidate(timing.copy_on_device, [(out, x)])}
    correct = {"copy": True}
    for name, kernel in KERNELS.items():
        given = arguments(kernel, timing.native(kernel.language, x), 2.0, timing.native(kernel.language, out))
        candidates[name] = Candidate(lambda *a, k=kernel: k.launch(blocks(n), BLOCK, a), [given])
        out.fill(np.nan)
        candidates[name].function(*given)
        correct[name] = bool((out == 2 * x).all())
    timings = timing.time_together(candidates)
    rows = [
        {"kernel": name, "seconds": t.seconds, "gbps": t.bandwidth(8 * n), "correct": correct[name]}
        for name, t in timings.items()
    ]
    return {"n": n, "rows": rows}


MEASUREMENTS: dict[str, Callable[[], Any]] = {"kernel_table": kernel_table}
