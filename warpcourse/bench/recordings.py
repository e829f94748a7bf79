"""Measurements that a notebook shows: live on a GPU, else those recorded on a named GPU, and labelled so.

    recordings = Recordings("kernels.vector_multiply")  # kernels/vector_multiply/recordings.json
    m = recordings.measure("ten_launches", ten_launches)
    print(m.label)  # recorded on NVIDIA H100 80GB HBM3, 2026-11-21
    m.value["finished_seconds"]

The file holds for each key its value and the machine that measured it: GPU, number of GPUs, date, versions.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from warpcourse.bench import random_inputs, timing
from warpcourse.bench.lab_kernels import NotOnThisCard, Size, is_numba, launch
from warpcourse.paths import COURSE
from warplab.estimating.beside import KnownTime
from warplab.hardware import backend

OWN_RUNS = 5  # of a learner's own launch, which may take a second


class MissingRecording(LookupError):
    """There is no GPU to measure on, and nobody recorded this measurement."""


@dataclass(frozen=True)
class Measurement:
    """`value` as the measuring function returned it (in JSON types), the GPU and the date it is from.

    `live`: measured now. `machine`: all that is known of the machine, as `timing.machine` gives it. `lack`: why it was
    not measured on the GPU that is there.
    """

    value: Any
    device: str
    date: str
    live: bool
    machine: Mapping[str, Any] = field(default_factory=dict)
    lack: str = ""

    @property
    def origin(self) -> str:
        """Return GPU and date, such as "NVIDIA H100 80GB HBM3, 2026-11-21"."""
        return f"{self.device}, {self.date}"

    @property
    def label(self) -> str:
        """Return what a table or a plot of this measurement must say of its origin."""
        lack = f" (not on this card: {self.lack})" if self.lack else ""
        return f"{'measured' if self.live else 'recorded'} on {self.origin}{lack}"

    def known_time(self, seconds: float, of: str = "") -> KnownTime:
        """Return a time from this measurement, to stand beside an estimate. `of`: which launch it was."""
        return KnownTime(seconds, self.device, self.date, self.live, of)

    def step_times(self, names: Iterable[str]) -> dict[str, KnownTime]:
        """Return the times of steps in a measured ladder, by name, as `known_time` gives them."""
        return {name: self.known_time(step_seconds(name)(self.value)) for name in names}


def step_seconds(name: str) -> Callable[[Any], float]:
    """Return a function that finds a step's seconds in a ladder's value, {"rows": [{"name", "seconds", ...}]}."""
    return lambda value: next(row["seconds"] for row in value["rows"] if row["name"] == name)


class Recordings:
    """The recordings of one lab. `package`: the lab's, such as "kernels.matmul"; `gpus`: how many it measures on."""

    NOT_MEASURED = "Not measured yet: that takes a GPU, and nobody has recorded it on one."

    def __init__(self, package: str, *, gpus: int = 1, course: Path = COURSE) -> None:
        self.package = package
        self.gpus = gpus
        self.path = course.joinpath(*package.split(".")) / "recordings.json"

    @property
    def topic(self) -> str:
        """Return the last word of the package's name."""
        return self.package.rpartition(".")[2]

    def measure(self, key: str, function: Callable[[], Any]) -> Measurement:
        """Call `function` on a GPU, or give the recorded value of `key`, also where a kernel cannot run on the GPU.

        Raise MissingRecording where there is neither a GPU nor a recording.
        """
        if backend.name() == "gpu":
            random_inputs.restart()
            try:
                return self._measured(timing.rounded(function()), timing.machine(self.gpus), live=True)
            except NotOnThisCard as error:
                return replace(self.recorded(key), lack=str(error))
        return self.recorded(key)

    def measure_if_possible(self, key: str, function: Callable[[], Any]) -> Measurement | None:
        """Do as `measure`, but return None where there is neither a GPU nor a recording."""
        try:
            return self.measure(key, function)
        except MissingRecording:
            return None

    def recorded(self, key: str) -> Measurement:
        """Return the recorded value of `key`, also on a GPU. Raise MissingRecording where there is none."""
        found = self.load()
        if key not in found:
            raise MissingRecording(
                f"{key!r} was never recorded for {self.topic}; recorded are: {', '.join(sorted(found)) or 'none'}. "
                f"Check the name, or run `{self._command} --only {key}` on a machine with a GPU."
            )
        return found[key]

    def recorded_if_any(self, key: str) -> Measurement | None:
        """Do as `recorded`, but return None where there is no such recording."""
        try:
            return self.recorded(key)
        except MissingRecording:
            return None

    def time_of(
        self,
        function: Any,
        grid: Size,
        block: Size,
        arguments: Callable[[], tuple],
        *,
        key: str = "",
        find: Callable[[Any], float] | None = None,
        of: str = "",
    ) -> KnownTime | None:
        """Return how long a learner's own launch takes: measured on a GPU (a median), else as recorded.

        `function`: a Numba or CuPy kernel. `arguments()`: its arguments, device arrays and numbers, made only where
        there is a GPU. `find`: takes the seconds from the recorded value of `key`, `of`: names the launch that was
        recorded in place of the learner's. None where nothing is recorded, and where a GPU lacks the memory.
        """
        if backend.name() == "gpu":
            return self._time_here(function, grid, block, arguments)
        m = self.recorded_if_any(key) if find else None
        return m.known_time(find(m.value), of) if m and find else None

    def _time_here(self, function: Any, grid: Size, block: Size, arguments: Callable[[], tuple]) -> KnownTime | None:
        language = "Numba" if is_numba(function) else "CUDA C++"
        try:
            given = [timing.native(language, x) if hasattr(x, "dtype") and x.shape else x for x in arguments()]
        except MemoryError:  # of the GPU: CuPy's error is one
            return None
        run = timing.time_gpu(lambda: launch(function, grid, block, tuple(given)), runs=OWN_RUNS)
        machine = timing.machine(self.gpus)
        return KnownTime(run.seconds, machine["device"], machine["date"], live=True)

    def here_and_recorded(self, key: str, here: Measurement | None) -> dict[str, Any]:
        """Return values by label: of `here`, which `measure` gave, and those recorded, if there are any."""
        found = {here.label: here.value} if here else {}
        recorded = self.recorded_if_any(key)
        return found | {recorded.label: recorded.value} if recorded else found

    def load(self) -> dict[str, Measurement]:
        """Return all recorded measurements by key. Raise MissingRecording where the file does not exist."""
        if not self.path.exists():
            raise MissingRecording(
                f"there is no GPU here and {self.path} does not exist; run `{self._command}` on a machine with a GPU."
            )
        return {key: self._measured(entry["value"], entry["machine"]) for key, entry in self._entries().items()}

    def values(self) -> dict[str, Any]:
        """Return the values of all recorded measurements by key; {} where nothing is recorded."""
        return {key: entry["value"] for key, entry in self._entries().items()}

    def write(self, key: str, value: Any, machine: Mapping[str, Any]) -> None:
        """Record one value; all other keys stay. The file is replaced as a whole, so it is never half written."""
        with self._locked():
            entries = {**self._entries(), key: {"machine": dict(machine), "value": value}}
            unfinished = self.path.with_suffix(f".{os.getpid()}.tmp")
            unfinished.write_text(json.dumps(entries, indent=1) + "\n")
            os.replace(unfinished, self.path)

    @property
    def _command(self) -> str:
        return f"python -m {self.package}.benchmark --record"

    def _entries(self) -> dict[str, Any]:
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from writing between our reading and our writing."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _measured(self, value: Any, machine: Mapping[str, Any], live: bool = False) -> Measurement:
        return Measurement(value, machine["device"], machine["date"], live, machine)
