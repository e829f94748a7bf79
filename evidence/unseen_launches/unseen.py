"""What this package is made of: kernels, their cases by size, and the launches of them that are timed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evidence.estimates.timed_calls import Part
from warpcourse.bench.lab_kernels import Size, Sources

SEED = 20
NUMBA = "numba_kernels.py"
SOURCES = Sources(__package__, cuda_headers=True)

Footprint = tuple[int, int] | Callable[[], tuple[int, int]]  # distinct bytes loaded and stored


@dataclass(frozen=True)
class Case:
    """A launch of a kernel at one size.

    `arguments()`: NumPy arrays and numbers. `expected(*arguments)`: what they hold after the launch, by NumPy, under
    their numbers; it gets copies from before the launch.
    """

    grid: Size
    block: Size
    arguments: Callable[[], tuple]
    expected: Callable[..., Mapping[int, np.ndarray]]
    shared_bytes: int = 0

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return math.prod(self.grid) if isinstance(self.grid, Sequence) else self.grid


@dataclass(frozen=True)
class UnseenLaunch:
    """A launch that is timed. `timed`, `simulated`: the case's parameters on the GPU and in the simulator.

    `work`, `sample_blocks`: as in `Part`. `footprint`: distinct bytes loaded and stored by the timed launch, where they
    are not those of the simulated one multiplied.
    """

    timed: Mapping[str, Any]
    simulated: Mapping[str, Any]
    work: float = 1.0
    sample_blocks: int | None = None
    footprint: Footprint | None = None

    @property
    def label(self) -> str:
        """The parameters of the timed launch: "n = 1024, m = 16"."""
        return ", ".join(f"{name} = {value}" for name, value in self.timed.items())


@dataclass(frozen=True, eq=False)
class UnseenKernel:
    """A kernel. `name`: what decides about its half. `file`: a .cu file or the module of Numba kernels.

    `case`: makes a case from its parameters. `tested`: parameters of the case whose results are checked. `warm`: timed
    again and again on the same data; otherwise on sets of data in turns, so that none is found in the L2.
    `of_set`: 1 to 6, in the order in which they were made; all but the first was held out as a whole.
    """

    name: str
    file: str
    case: Callable[..., Case]
    tested: Mapping[str, Any]
    launches: Sequence[UnseenLaunch]
    warm: bool = False
    tolerance: float = 1e-5
    entry: str = ""
    of_set: int = 1

    @property
    def language(self) -> str:
        """ "CUDA C++" or "Numba"."""
        return "Numba" if self.file.endswith(".py") else "CUDA C++"

    def function(self) -> Any:
        """Return the compiled kernel of the active backend."""
        return SOURCES.function(self.file, self.entry or self.name)

    def launch_name(self, launch: UnseenLaunch) -> str:
        """Return a name unique among all launches."""
        return f"unseen, {self.name}, {launch.label}"

    def part(self, launch: UnseenLaunch) -> Part:
        """Return how the simulator stands in for a timed launch: by fewer blocks or shorter loops where that says the
        same."""
        timed, small = dict(launch.timed), dict(launch.simulated)
        case = self.case(**small)
        blocks = 1.0 if timed == small else self.case(**timed).blocks / case.blocks
        return Part(
            self.function,
            case.grid,
            case.block,
            case.arguments,
            case.shared_bytes,
            blocks=blocks,
            work=launch.work,
            footprint=launch.footprint() if callable(launch.footprint) else launch.footprint,
            sample_blocks=launch.sample_blocks,
        )


def launch(
    timed: Mapping[str, Any],
    simulated: Mapping[str, Any] | None = None,
    *,
    work: float = 1.0,
    sample: int | None = None,
    footprint: Footprint | None = None,
) -> UnseenLaunch:
    """Return a launch with the parameters `timed`, of which the simulator takes those in `simulated` instead."""
    return UnseenLaunch(timed, {**timed, **(simulated or {})}, work, sample, footprint)


def ceil(n: int, size: int) -> int:
    """Return how many pieces of `size` hold n."""
    return -(-n // size)


def random() -> np.random.Generator:
    """Return the generator of a case's data, always with the same seed."""
    return np.random.default_rng(SEED)


def floats(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """float32 between `low` and `high`. Of large arrays the first 2^22 numbers come again and again."""
    n = math.prod(shape)
    some = np.random.default_rng(SEED + seed).random(min(n, 2**22), np.float32)
    return np.resize(some * np.float32(high - low) + np.float32(low), n).reshape(shape)


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Return an output."""
    return np.zeros(shape, dtype)


def int32(*values: int) -> tuple[np.int32, ...]:
    """Return numbers as kernels in CUDA C++ take an int."""
    return tuple(map(np.int32, values))


def distinct(numbers: np.ndarray) -> int:
    """Return how many different ones there are of numbers from 0 on."""
    seen = np.zeros(int(numbers.max()) + 1, bool)
    seen[numbers] = True
    return int(seen.sum())


def equal(found: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    """Return whether a result is as expected: whole numbers exactly, others within a relative and absolute
    tolerance."""
    if expected.dtype == np.float16 and found.dtype == np.uint32:  # pairs of halves that a kernel takes as words
        found = found.view(np.float16)
    if found.dtype.kind != "f":
        return bool(np.array_equal(found, expected))
    return bool(np.allclose(found, expected, rtol=tolerance, atol=tolerance))
