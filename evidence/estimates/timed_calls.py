"""Calls whose times are recorded, and how each is simulated.

A module of `of_labs` holds those of a lab in `TIMED`, a list of `TimedCall`. Large launches are simulated smaller: of a
launch whose blocks all do alike fewer blocks run and their counters are multiplied (`blocks`), of one whose threads
loop shorter loops (`work`), and of any other a sample of its blocks (`sample_blocks`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpcourse.bench.lab_kernels import Size
from warpcourse.bench.recordings import Recordings


@dataclass(frozen=True)
class Part:
    """One launch of a call, at the size that is simulated.

    `kernel()`: the kernel object. `arguments()`: what it takes, NumPy arrays and numbers. `blocks`: the timed launch
    has so many times the blocks. `work`: each of its blocks does so many times as much. `footprint`: distinct bytes
    that the timed launch loads and stores, where they do not grow with both. `sample_blocks`: as in
    `simulator.Options`.
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


@dataclass(frozen=True)
class TimedCall:
    """A call with a recorded time. `name`: unique in its lab. `key`: of the lab's recordings; `seconds` finds the
    time in its value. `parts()`: its launches. `fills`: launches besides that only set a few words. `warm`: it was
    timed again and again on the same data, so that what fits into the L2 was there. `recordings`: those that have it,
    where they are not the lab's.
    """

    name: str
    key: str
    seconds: Callable[[Any], float]
    parts: Callable[[], Sequence[Part]]
    fills: int = 0
    warm: bool = False
    recordings: Recordings | None = None


def row(table: str = "", column: str = "seconds", **named: Any) -> Callable[[Any], float]:
    """Return a function that finds a number in a recorded value: in the one row whose columns are as `named`.

    `table`: the rows' name in the value; "" where it is the rows itself. `column`: the number's; "a.b" for b in a.
    """

    def find(value: Any) -> float:
        found = [r for r in (value[table] if table else value) if all(r.get(k) == v for k, v in named.items())]
        if len(found) != 1:
            raise LookupError(f"{len(found)} rows of the recording have {named}; there must be one")
        cell = found[0]
        for name in column.split("."):
            cell = cell[name]
        return float(cell)

    return find


def ones(*shape: int) -> np.ndarray:
    """Return an array of float32, for kernels that do the same whatever the numbers are."""
    return np.ones(shape, np.float32)


def product(
    of: Callable[..., tuple[Callable[[], Any], Sequence[int], Size, int]],
    shape: tuple[int, int, int],
    deep: int,
    types: tuple[Any, Any],
) -> Part:
    """Return a product A · B = C of a `shape` (m, n, k), of which four blocks are simulated.

    Every block does the same, so of many rows and columns 512 are simulated, and of a large k `deep`.
    `of(m, n)`: the kernel, its grid, block and bytes of shared memory. `types`: of A and B, and of C.
    """
    m, n, k = shape
    p, q, depth = (s if x >= 2 * s and x % s == 0 else x for x, s in zip(shape, (512, 512, deep), strict=True))
    (kernel, grid, block, shared_bytes), small = of(m, n), of(p, q)[1]
    operand, result = types

    def arguments() -> tuple:
        a, b, c = np.ones((p, depth), operand), np.ones((depth, q), operand), np.ones((p, q), result)
        return a, b, c, *map(np.int32, (p, q, depth))

    return Part(
        *(kernel, small, block, arguments, shared_bytes),
        blocks=math.prod(grid) / math.prod(small),
        work=k / depth,
        footprint=(np.dtype(operand).itemsize * (m * k + k * n), np.dtype(result).itemsize * m * n),
        sample_blocks=4,
    )
