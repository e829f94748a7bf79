"""One launch of the kernel under check: what it is launched with, and failures that say so."""

import contextlib
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from warplab.checks.cases import Case, Dimensions, Size
from warplab.checks.errors import CheckFailed
from warplab.checks.session import device
from warplab.simulator.count.counters import LaunchProfile
from warplab.simulator.observer import Observer

_MOST_LINES = 8  # of what a launch prints


class Printed:
    """What the kernel printed in its last launch, of which the first lines are shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Keep what is printed meanwhile, if anything is, in place of what an earlier launch printed."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                yield
            finally:
                self.lines = printed.getvalue().splitlines(keepends=True) or self.lines

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show at the end, also of a failure, what the last launch meanwhile printed."""
        try:
            yield
        finally:
            more = len(self.lines) - _MOST_LINES
            rest = [f"… {more:,} more lines\n"] if more > 0 else []
            print(*self.lines[:_MOST_LINES], *rest, sep="", end="")


class ActiveLanes(Observer):
    """Sees whether a kernel asks which lanes are active."""

    asked = False

    def watch(self, chunk) -> Observer:
        self.asked |= any(i.opcode == "activemask" for i in chunk.translation.entry.instructions)
        return self


@dataclass(frozen=True)
class KernelRun:
    """A kernel, its name, and one launch of it.

    `size`: what `case` was made for, such as the number of elements. `seed`: of the check, not of this case alone.
    `sample_blocks`, `lanes_apart`: see `simulator.Options`.
    """

    kernel: Any
    name: str
    case: Case
    size: Size
    grid: Dimensions
    block: Dimensions
    seed: int
    rtol: float
    atol: float
    sample_blocks: int | None = None
    lanes_apart: bool = True
    active_lanes: ActiveLanes = field(default_factory=ActiveLanes)
    printed: Printed = field(default_factory=Printed)

    @property
    def blocks(self) -> int:
        return _product(self.grid)

    @property
    def threads_per_block(self) -> int:
        return _product(self.block)

    @property
    def threads(self) -> int:
        return self.blocks * self.threads_per_block

    def simulate(self, arguments: tuple, *, path_limit: int = 0, **options: Any) -> LaunchProfile:
        """Launch the kernel on the simulator; `options` are fields of `simulator.Options`.

        `path_limit`: as there, if it is more than the elements of the arguments suggest. What the kernel prints is kept
        in `printed`.
        """
        from warplab.launch.simulate import simulate

        path_limit = max(path_limit, 10_000 + 64 * max(np.size(value) for value in arguments))
        # The trace is for pictures. A shared array made volatile is a wrong answer to a missing barrier.
        options = {
            "path_limit": path_limit,
            "trace_warps": 0,
            "max_seconds": 0,  # what is too long must not depend on the machine
            "sample_blocks": self.sample_blocks,
            "lanes_apart": self.lanes_apart,
            "fenced_barriers": True,
        } | options
        options["observers"] = (*options.get("observers", ()), self.active_lanes)
        with self.printed.taken(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nbgrader takes anything on stderr for a failed test
            return simulate(self.kernel, self.grid, self.block, arguments, device=device(), **options)

    def failed(self, problem: str, **parts: Any) -> CheckFailed:
        """Return the failure of this launch; `problem` is a whole sentence, `parts` are as CheckFailed takes them."""
        return CheckFailed(problem, where=self._where(), **parts)

    def _where(self) -> str:
        launch = f"{_dimensions(self.grid, 'block')} of {_dimensions(self.block, 'thread')}"
        return f"{_named(self.size)}, {launch}, seed {self.seed}"


def _named(size: Size) -> str:
    """Return a size with its name or names: "n = 7", "size 2 × 3", or "rows = 2, columns = 3" for a named tuple."""
    if isinstance(size, int):
        return f"n = {size}"
    fields = getattr(size, "_fields", None)
    if fields is None:
        return f"size {_times(size)}"
    return ", ".join(f"{name} = {value}" for name, value in zip(fields, size, strict=True))


def counted(number: int, what: str) -> str:
    """Return a number of things, such as "1 size" or "2 sizes"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def _dimensions(value: Dimensions, what: str) -> str:
    return counted(value, what) if isinstance(value, int) else f"{_times(value)} {what}s"


def _times(numbers: tuple[int, ...]) -> str:
    return " × ".join(map(str, numbers))


def _product(dimensions: Dimensions) -> int:
    return dimensions if isinstance(dimensions, int) else prod(dimensions)
