"""Recording launches: what each launch did goes to every profile that is open.

On the simulator counters and the trace of accesses are on while a profile is open and off otherwise; checks are
always on. On a GPU each launch runs there, timed with events, and is simulated on copies of its arguments for the
counters (`warplab.launch.on_gpu`). Profiles may be nested; each gets the launches made while it was open, by its thread
and by those that have no profile open.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from warplab.launch.launch_record import LaunchRecord
from warplab.simulator.count.counters import Counts
from warplab.simulator.errors import SimulatorError


@dataclass(repr=False, eq=False)
class RecordedLaunches:
    """The launches made inside `with profile():`, in order; `len(p)`, `p[i]` and iteration go over them.

    `notes`: what a reader of the counters must know, for example that a launch was too large to be simulated.
    """

    launches: list[LaunchRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, launch: LaunchRecord) -> None:
        """Take a launch that has ended."""
        self.launches.append(launch)

    def failed(self, error: SimulatorError) -> None:
        """Take note of a launch that the simulator has stopped. A profile has no use for it."""

    @property
    def counts(self) -> Counts:
        """Return counters summed over the launches."""
        return sum((launch.counts for launch in self.launches), Counts())

    @property
    def kernels(self) -> list[str]:
        """Return names of the kernels launched, each once, in the order of their first launch."""
        return list(dict.fromkeys(launch.kernel for launch in self.launches))

    def __len__(self) -> int:
        return len(self.launches)

    def __getitem__(self, index):
        return self.launches[index]

    def __iter__(self) -> Iterator[LaunchRecord]:
        return iter(self.launches)


@dataclass(eq=False)
class _Open:
    """An open profile, and the thread that opened it; None if it is for the launches of all threads."""

    launches: RecordedLaunches
    thread: int | None


_open: list[_Open] = []
_paused = threading.local()  # `count`: how many `paused` this thread is in; `place`: see `launched_from`


def collect(launches: RecordedLaunches, *, every_thread: bool = False) -> None:
    """Add the launches made from now on to `launches`. `every_thread`: also those of threads with a profile open."""
    _open.append(_Open(launches, None if every_thread else threading.get_ident()))


def stop(launches: RecordedLaunches) -> None:
    """Add no more launches to `launches`."""
    _open.remove(next(profile for profile in _open if profile.launches is launches))


def active() -> bool:
    """Return whether a profile is open, for which the simulator counts."""
    return not getattr(_paused, "count", 0) and bool(_open)


def record(launch: LaunchRecord, note: str | None = None) -> None:
    """Add a launch, and a note on it, to the open profiles: those of this thread, or if it has none, to all."""
    if not getattr(_paused, "count", 0):
        _record(launch, note)


def _record(launch: LaunchRecord, note: str | None = None) -> None:
    for profile in _open_here():
        profile.launches.add(launch)
        if note is not None and note not in profile.launches.notes:
            profile.launches.notes.append(note)


def failed(error: SimulatorError) -> None:
    """Tell the open profiles of a launch that the simulator has stopped."""
    for profile in _open_here():
        profile.launches.failed(error)


@contextmanager
def launched_from(place: Callable[[], list | None]) -> Iterator[None]:
    """Let what is recorded inside have been launched at the file and line that `place` returns: no line of Python."""
    _paused.place = place
    try:
        yield
    finally:
        del _paused.place


def place_of_launch() -> Callable[[], list | None] | None:
    """Return what tells where this thread's launch is made, None where that is a line of Python."""
    return getattr(_paused, "place", None)


def _open_here() -> list[_Open]:
    """List the open profiles that get this thread's launches: its own, or if it has none, all."""
    profiles, here = _open[:], threading.get_ident()
    own = any(profile.thread == here for profile in profiles)
    return [profile for profile in profiles if profile.thread in (here, None)] if own else profiles


@contextmanager
def paused() -> Iterator[Callable[..., None]]:
    """Record no launches of this thread meanwhile, but for those given to the function that this yields."""
    _paused.count = getattr(_paused, "count", 0) + 1
    try:
        yield _record
    finally:
        _paused.count -= 1
