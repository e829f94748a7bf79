"""What lesson 05 shows beside estimates of products of 8192 × 8192 × 8192: measured, or recorded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kernels.tensor_core import recordings
from kernels.tensor_core.measurements import SIDE, operands
from warplab.bench.recordings import Measurement
from warplab.estimating.beside import KnownTime


def product_time(kernel: Any, side: int, recorded: str = "") -> KnownTime | None:
    """The time of `kernel(a, b, d, n)`, one warp per `side` × `side` elements of d, float32.

    `recorded`: the course's step that does the same, whose time is shown without a GPU; "" for none.
    """
    return recordings.time_of(
        kernel,
        (SIDE // side, SIDE // side),
        32,
        lambda: (*operands(SIDE, SIDE, SIDE, np.float32), np.int32(SIDE)),
        key="ladder",
        find=(lambda value: _seconds(value, recorded)) if recorded else None,
        of=f"the course's {recorded}, whose result is float16",
    )


def step_times(ladder: Measurement, names: Iterable[str]) -> dict[str, KnownTime]:
    """The times of the course's steps in the ladder, by name."""
    return {name: ladder.known_time(_seconds(ladder.value, name)) for name in names}


def _seconds(value: Any, name: str) -> float:
    return next(r["seconds"] for r in value["rows"] if r["name"] == name)
