"""What lesson 04 shows beside estimates of products of 4096 × 4096 × 4096: measured, or recorded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kernels.matmul import recordings
from kernels.matmul.measurements import SIDE
from warplab.bench.recordings import Measurement
from warplab.bench.timing import cupy_on_gpu
from warplab.estimating.beside import KnownTime


def product_time(kernel: Any, block: tuple[int, int], recorded: str = "") -> KnownTime | None:
    """The time of a Numba `kernel(a, b, c)` whose blocks compute 32 × 32 elements.

    `recorded`: the course's step that does the same, whose time is shown without a GPU; "" for none.
    """

    def arguments() -> tuple:
        cupy = cupy_on_gpu()
        return *(cupy.random.random((SIDE, SIDE), dtype=np.float32) for _ in range(2)), cupy.empty((SIDE, SIDE), "f4")

    return recordings.time_of(
        kernel,
        (SIDE // 32, SIDE // 32),
        block,
        arguments,
        key="ladder",
        find=(lambda value: _seconds(value, recorded)) if recorded else None,
        of=f"the course's {recorded}, in CUDA C++",
    )


def step_times(ladder: Measurement, names: Iterable[str]) -> dict[str, KnownTime]:
    """The times of the course's steps in the ladder, by name."""
    return {name: ladder.known_time(_seconds(ladder.value, name)) for name in names}


def _seconds(value: Any, name: str) -> float:
    return next(r["seconds"] for r in value["rows"] if r["name"] == name)
