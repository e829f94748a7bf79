"""Launches whose counters are compared with Nsight Compute's (`tools.ncu`), as a lab declares them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

EFFICIENCY = "warp_efficiency"  # compared like a counter: a share of a warp's lanes


class Difference(NamedTuple):
    """Why counters of a launch need not be equal. `counters`: the beginning of their names.

    `within`: largest difference, as a share of ncu's number (of a warp's lanes for the warp efficiency).
    """

    counters: str
    within: float
    reason: str


def is_array(argument: Any) -> bool:
    """Return whether an argument of a launch is an array, to be copied to the device; structures go by value."""
    return isinstance(argument, np.ndarray) and argument.dtype.kind != "V"


@dataclass(frozen=True)
class Launch:
    """One launch to compare.

    `kernel()`: the kernel object (Numba dispatcher or CuPy function). `grid`, `block`: one to three numbers; they are
    kept as three. `arguments`: NumPy scalars, structures (arrays of one record), None for a null pointer, tuples for
    Numba, NumPy arrays, which are copied to the device for the launch, and arrays that are there, as tensor maps want.
    `section`: where the launches of one file are many, the heading under which their differences are listed. `held`:
    what must live as long, such as arrays of which tensor maps know the addresses alone.
    """

    name: str
    kernel: Callable[[], Any]
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    arguments: tuple
    shared_bytes: int = 0
    section: str = ""
    differences: tuple[Difference, ...] = ()
    held: Any = None

    def __post_init__(self) -> None:
        """Keep grid and block as three numbers each."""
        for name in ("grid", "block"):
            size = getattr(self, name)
            x, y, z = (*((size,) if isinstance(size, int) else size), 1, 1)[:3]
            object.__setattr__(self, name, (x, y, z))

    def allowed(self, counter: str) -> Difference | None:
        """Return what the launch says about a counter's difference."""
        return next((d for d in self.differences if counter.startswith(d.counters)), None)


def with_differences(launches: Iterable[Launch], by_name: Mapping[str, tuple[Difference, ...]]) -> list[Launch]:
    """Return the launches, each with the differences of the first beginning of its name that `by_name` has."""

    def of(name: str) -> tuple[Difference, ...]:
        return next((differences for start, differences in by_name.items() if name.startswith(start)), ())

    return [replace(launch, differences=of(launch.name)) for launch in launches]
