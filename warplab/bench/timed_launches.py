"""Calls whose times are recorded, as a lab lists them for `tools.estimate_error`, and how each is simulated.

A lab with a module `timed_launches` holds there `TIMED`, a list of `TimedCall`. Large launches are simulated smaller:
of a launch whose blocks all do alike fewer blocks run and their counters are multiplied (`blocks`), of one whose
threads loop shorter loops (`work`), and of any other a sample of its blocks (`sample_blocks`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from warplab.bench.lab_kernels import Size


@dataclass(frozen=True)
class Part:
    """One launch of a call, at the size that is simulated.

    `kernel()`: the kernel object. `arguments()`: what it takes, NumPy arrays and numbers. `blocks`: the timed launch
    has so many times the blocks. `work`: each of its blocks does so many times as much. `footprint`: distinct bytes
    that the timed launch loads and stores, where they do not grow with both. `sample_blocks`: as in
    `simulator.Options`. `times`: how many such launches the call makes.
    """

    kernel: Callable[[], Any]
    grid: Size
    block: Size
    arguments: Callable[[], tuple]
    shared_bytes: int = 0
    blocks: float = 1.0
    work: float = 1.0
    footprint: tuple[int, int] | None = None
    sample_blocks: int | None = None
    times: int = 1


@dataclass(frozen=True)
class TimedCall:
    """A call with a recorded time. `name`: unique among all labs'. `key`: of the lab's recordings; `seconds` finds the
    time in its value. `parts()`: its launches. `fills`: launches besides that only set a few words. `warm`: it was
    timed again and again on the same data, so that what fits into the L2 was there.
    """

    name: str
    key: str
    seconds: Callable[[Any], float]
    parts: Callable[[], Sequence[Part]]
    fills: int = 0
    warm: bool = False


def row(where: Callable[[Any], list[dict]], column: str = "seconds", **named: Any) -> Callable[[Any], float]:
    """A function that finds a number in a table: `column` of the one row whose other columns are as `named`."""

    def find(value: Any) -> float:
        found = [r for r in where(value) if all(r.get(k) == v for k, v in named.items())]
        if len(found) != 1:
            raise LookupError(f"{len(found)} rows of the recording have {named}; there must be one")
        return float(found[0][column])

    return find
