"""Launches whose counters are compared with Nsight Compute's (`tools.ncu`): what a lab declares of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


class Difference(NamedTuple):
    """Why counters of a launch need not be equal. `counters`: the beginning of their names.

    `within`: largest difference, as a share of ncu's number (of a warp's lanes for the warp efficiency).
    """

    counters: str
    within: float
    reason: str


@dataclass(frozen=True)
class Launch:
    """One launch to compare.

    `kernel()`: the kernel object (Numba dispatcher or CuPy function). `arguments`: NumPy scalars, and NumPy
    arrays, which are copied to the device for the launch. `section`: the table of docs/counters.md it belongs to.
    """

    name: str
    simulate: Callable[[], Any]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple
    shared_bytes: int = 0
    section: str = ""
    differences: tuple[Difference, ...] = ()

    def allowed(self, counter: str) -> Difference | None:
        """What the launch says about a counter's difference."""
        return next((d for d in self.differences if counter.startswith(d.counters)), None)
