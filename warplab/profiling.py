"""`with warplab.profile() as p:` collects what the launches inside did.

On the simulator counters and the trace of accesses are on inside a profile and off outside; checks are always on.
On a GPU each launch runs there, timed with events, and is simulated on copies of its arguments for the counters
(`warplab.gpu`). Profiles may be nested: each collects the launches made while it was open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from warplab.simulator.counters import Counts, LaunchProfile


@dataclass(repr=False)
class Profile:
    """The launches made inside `with profile():`, in order; `len(p)`, `p[i]` and iteration go over them.

    `notes`: what a reader of the counters must know, for example that a launch was too large to be simulated.
    """

    launches: list[LaunchProfile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def counts(self) -> Counts:
        """Counters summed over the launches."""
        return sum((launch.counts for launch in self.launches), Counts())

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels launched, each once, in the order of their first launch."""
        return list(dict.fromkeys(launch.kernel for launch in self.launches))

    def __len__(self) -> int:
        return len(self.launches)

    def __getitem__(self, index):
        return self.launches[index]

    def __iter__(self) -> Iterator[LaunchProfile]:
        return iter(self.launches)

    def __str__(self) -> str:
        from warplab import report

        return "\n".join([report.text(self) if self.launches else EMPTY, *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        from warplab import report

        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return (report.html(self) if self.launches else f"<p>{escape(EMPTY)}</p>") + notes


EMPTY = (
    "No launch was recorded. A kernel is recorded when it is launched inside the `with` block: "
    "kernel[grid, block](...) of numba.cuda, kernel(grid, block, args) of CuPy's RawKernel or of a %%cuda cell. "
    "Array operations of CuPy and calls of other libraries are not."
)

_open: list[Profile] = []


class profile:
    """Collect the kernel launches of a `with` block in a `Profile`.

    >>> with profile() as p:
    ...     kernel[grid, block](a, b)
    >>> p  # a table in a notebook; print(p) elsewhere
    """

    def __enter__(self) -> Profile:
        self._profile = Profile()
        _open.append(self._profile)
        return self._profile

    def __exit__(self, *_) -> None:
        _open.remove(self._profile)


def active() -> bool:
    return bool(_open)


def launch_options() -> dict[str, bool]:
    """Options of the simulator for a launch made now."""
    return {"counters": active()}


def record(launch: LaunchProfile, note: str | None = None) -> None:
    """Add a launch, and a note on it, to the open profiles."""
    for collected in _open:
        collected.launches.append(launch)
        if note is not None and note not in collected.notes:
            collected.notes.append(note)


@contextmanager
def paused() -> Iterator[Callable[..., None]]:
    """Within it launches are not recorded, but for those given to the function it yields."""
    open_profiles = _open[:]
    _open.clear()

    def record_anyway(launch: LaunchProfile, note: str | None = None) -> None:
        _open[:] = open_profiles
        record(launch, note)

    try:
        yield record_anyway
    finally:
        _open[:] = open_profiles
