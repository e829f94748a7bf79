"""What holds for all launches of a process: options that they do not choose themselves, and defects that are excused.

`warplab run`, `pytest --warplab` and the judge set it; lessons never do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from warplab.simulator.errors import DataRace, SimulatorError, UninitializedRead
from warplab.simulator.run.options import Options

_FRESH = Options()
# What is switched off, so that a launch goes on that met one of these; after any other defect nothing sensible follows.
_WITHOUT = ((DataRace, {"races": False}), (UninitializedRead, {"unwritten_reads": False}))


@dataclass(frozen=True)
class Suppression:
    """A defect that is known: patterns of the kernel's name, the error's class and its place, "file:line"."""

    kernel: str = "*"
    error: str = "*"
    place: str = "*"

    def covers(self, error: SimulatorError) -> bool:
        places = f"{error.file or ''}:{error.line or ''}", *(place for tell in _telling for place in tell(error))
        classes = [kind.__name__ for kind in type(error).__mro__ if issubclass(kind, SimulatorError)]
        return (
            fnmatchcase(error.kernel or "", self.kernel)
            and any(fnmatchcase(name, self.error) for name in classes)
            and any(fnmatchcase(place, self.place) for place in places)
        )


_Places = Callable[[SimulatorError], tuple[str, ...]]
_telling: list[_Places] = []
_chosen: dict[str, Any] = {}
_suppressions: list[Suppression] = []


def choose(suppressions: Sequence[Suppression] = (), places: _Places | None = None, **options: Any) -> None:
    """Let launches have these fields of `simulator.Options` from now on, where they do not ask for another value.

    `places`: what tells of an error's place in the program's own files.
    """
    replace(_FRESH, **options)  # raises for what they cannot be
    _chosen.clear()
    _chosen.update(options)
    _suppressions[:] = suppressions
    _telling[:] = [places] if places else []


def applied(options: Options) -> Options:
    """Return the options of a launch with those of the process."""
    more = {name: value for name, value in _chosen.items() if getattr(options, name) == getattr(_FRESH, name)}
    return replace(options, **more) if more else options


def may_excuse(kernel: str) -> bool:
    """Return whether a defect of this kernel may be one that is suppressed."""
    return any(fnmatchcase(kernel, one.kernel) for one in _suppressions)


def suppressed_by(error: SimulatorError) -> list[str]:
    """Return the entries that excuse it, each as its three patterns."""
    return [f"{one.kernel} {one.error} {one.place}" for one in _suppressions if one.covers(error)]


def without(error: SimulatorError) -> dict[str, Any] | None:
    """Return the options with which a launch goes on that met this error; None if it cannot or must not."""
    found: dict[str, Any] | None = next((options for kind, options in _WITHOUT if isinstance(error, kind)), None)
    return found if suppressed_by(error) else None
