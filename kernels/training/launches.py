"""Launches of lab 07's kernels whose counters are compared with Nsight Compute's (`make compare-ncu`)."""

import numpy as np

from kernels.training.bias_gelu import BACKWARD, BLOCK, FORWARD, arguments, layout
from warpcourse.bench.compared_launches import Launch


def _launches(rows: int, columns: int) -> list[Launch]:
    rng = np.random.default_rng(7)
    x, dy = (rng.standard_normal((rows, columns), dtype=np.float32) for _ in range(2))
    bias, out = rng.standard_normal(columns, dtype=np.float32), np.full((rows, columns), np.nan, np.float32)
    ways = {"forward": (FORWARD, (x, bias, out)), "backward": (BACKWARD, (x, bias, dy, out, np.zeros_like(bias)))}
    return [
        Launch(
            f"{name} {way}, {rows} x {columns}",
            kernel.function,
            layout(kernel, rows, columns)[0],
            BLOCK,
            arguments(kernel, *arrays),
        )
        for way, (table, arrays) in ways.items()
        for name, kernel in table.items()
    ]


LAUNCHES = _launches(256, 256) + _launches(100, 132)
