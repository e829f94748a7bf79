"""Launches of lab 11's kernels whose times are recorded: a decoded frame made into planes.

Those of scattered stores are not among them: estimates take a rate from these.
"""

from __future__ import annotations

import functools

import numpy as np

from evidence.estimates.timed_calls import Part, TimedCall, row
from kernels.serving.overlap.streams.preprocess import BLOCK, KERNELS, arguments, grid

HEIGHT, WIDTH = 1080, 1920
SIZES = ((224, 224), (1080, 1920))
SAMPLE = 256  # blocks


def _parts(name: str, rows: int, columns: int) -> list[Part]:
    kernel = KERNELS[name]
    nv12, out = np.full((HEIGHT * 3 // 2, WIDTH), 100, np.uint8), np.zeros((3, rows, columns), np.float32)
    scale, shift = (np.ones(3, np.float32) for _ in range(2))
    given = arguments(kernel, nv12, WIDTH, out, scale, shift)
    # Of a smaller picture a line is read in part; of the frame's own size all of it.
    read = None if (rows, columns) == SIZES[0] else (nv12.nbytes, out.nbytes)
    sample = None if read is None else SAMPLE
    return [Part(kernel.function, grid(rows, columns), BLOCK, lambda: given, footprint=read, sample_blocks=sample)]


TIMED = [
    TimedCall(
        f"{name}, {rows} × {columns}",
        "preprocess",
        row("rows", kernel=name, rows=rows, columns=columns),
        functools.partial(_parts, name, rows, columns),
    )
    for rows, columns in SIZES
    for name in KERNELS
]
