"""What the launches of a process did, added up by kernel, and the defects that stopped some: the report, as plain data.

The report is a dict that JSON can hold; text, JUnit and SARIF are written from it (`report_text`, `report_files`), and
those of several processes are merged.

    {"kernels": [{kernel, file, launches, threads, grid, block, counters, ratios, lines, estimates, notes}],
     "defects": [{error, what, message, reason, kernel, kernel_file, file, path, line, source, block, thread, array,
                  index, launched_at, times, suppressed, suppressed_by, refused}], "unmet": [suppressions of no defect]}

A kernel is known by its name and its file: `kernel` and `file` in its own entry, `kernel` and `kernel_file` in that of
a defect, whose `path` may be another file's.
`refused`: nothing is wrong that the simulator could tell; it knows no such instruction, or the launch took too long.
"""

from __future__ import annotations

import linecache
import math
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from warplab.compile.source_files import path_of
from warplab.launch import policy
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.profile_queries import bank_conflicts, sectors_per_request, source_lines
from warplab.launch.profiling import RecordedLaunches, place_of_launch
from warplab.simulator.count.counters import Counts
from warplab.simulator.errors import InstructionLimit, SimulatorError, UnsupportedInstruction

LINES = 3  # the costliest of a kernel
Report = dict[str, Any]
_Compiled = tuple[str, tuple[tuple[str, str], ...]]  # a kernel's name, and its files' labels and texts
_ENGINE = str(Path(__file__).parents[1]) + os.sep
_INSTALLED = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_MOST_FILES = 2000  # that are looked through for a kernel's text
# Python takes it away before it calls what atexit has, when reports of processes are made.
_SCRIPT = getattr(sys.modules["__main__"], "__file__", None)

# Counters that are no sums, by name: what assert_counters and reports know beside those of `COUNTERS`.
RATIOS: dict[str, Callable[[Counts], float | None]] = {
    "sectors_per_request": sectors_per_request,
    "sectors_per_load_request": lambda counts: counts.sectors_per_load_request,
    "sectors_per_store_request": lambda counts: counts.sectors_per_store_request,
    "load_efficiency": lambda counts: counts.load_efficiency,
    "store_efficiency": lambda counts: counts.store_efficiency,
    "warp_efficiency": lambda counts: counts.warp_efficiency,
    "bank_conflicts": bank_conflicts,
}


@dataclass
class _Kernel:
    """All launches of one kernel. `costliest`: the launch with most warp instructions."""

    launches: int = 0
    threads: int = 0
    counts: Counts = field(default_factory=Counts)
    costliest: LaunchRecord | None = None

    @classmethod
    def of(cls, launch: LaunchRecord) -> _Kernel:
        return cls(1, math.prod(launch.grid) * math.prod(launch.block), launch.counts, launch)

    def add(self, more: _Kernel) -> None:
        self.launches += more.launches
        self.threads += more.threads
        self.counts = self.counts + more.counts
        most = self.costliest
        assert more.costliest is not None
        if most is None or more.costliest.counts.warp_instructions >= most.counts.warp_instructions:
            self.costliest = more.costliest


class Collected(RecordedLaunches):
    """The launches of this process, of which only what the report needs is kept. `changed` is called after each."""

    def __init__(self, cards: Sequence[str], changed: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.cards, self.changed = cards, changed
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.by_source: dict[_Compiled, _Kernel] = {}
        self.defects: list[Report] = []
        self._latest: dict[_Compiled, LaunchRecord] = {}  # the latest of all comes last
        self._queued: list[LaunchRecord] = []  # counted later: those of virtual devices
        self._lock = threading.RLock()

    def add(self, launch: LaunchRecord) -> None:
        with self._lock:
            if launch.counts.warp_instructions:
                self._add(launch)
            else:
                self._queued.append(launch)
        self.changed()

    def _add(self, launch: LaunchRecord) -> None:
        compiled = launch.kernel, tuple(launch.sources.items())
        self.by_source.setdefault(compiled, _Kernel()).add(_Kernel.of(launch))
        self._latest.pop(compiled, None)
        self._latest[compiled] = launch

    def failed(self, error: SimulatorError) -> None:
        found = _defect(error)
        error.in_report = True
        with self._lock:
            same = next((d for d in self.defects if _identity(d) == _identity(found)), None)
            if same is None:
                self.defects.append(found)
            else:
                same["times"] += 1
        self.changed()

    def latest(self, kernel: str | None = None) -> list[LaunchRecord]:
        """List the last launch of each kernel, of those of this name if one is given, in the order of the launches."""
        return [launch for launch in self._latest.values() if kernel in (None, launch.kernel)]

    def report(self, *, estimates: bool = True) -> Report:
        """Return what has been collected so far. `estimates`: with times on the cards, which take a while."""
        with self._lock:
            for launch in self._queued:
                self._add(launch)
            self._queued.clear()
            compiled = list(self.by_source.items())
            defects = [dict(defect) for defect in self.defects]
        kernels: dict[tuple[str, str], _Kernel] = {}
        for (name, sources), kernel in compiled:
            kernels.setdefault((name, kernel_file(dict(sources))), _Kernel()).add(kernel)
        cards = self.cards if estimates else ()
        return {"kernels": [_kernel_report(*key, kernel, cards) for key, kernel in kernels.items()], "defects": defects}


def merged(reports: Sequence[Report]) -> Report:
    """Return one report of those of several processes: kernels of one name and file are added up."""
    kernels: dict[tuple[str, str], Report] = {}
    defects: dict[tuple, Report] = {}
    for report in reports:
        for kernel in report["kernels"]:
            key = kernel["kernel"], kernel["file"]
            kernels[key] = _sum(kernels[key], kernel) if key in kernels else kernel
        for defect in report["defects"]:
            same = defects.setdefault(_identity(defect), {**defect, "times": 0})
            same["times"] += defect["times"]
    return {"kernels": list(kernels.values()), "defects": list(defects.values())}


def _sum(a: Report, b: Report) -> Report:
    most = max((a, b), key=lambda kernel: (bool(kernel["estimates"]), kernel["counters"]["warp_instructions"]))
    counts = Counts(*(a["counters"][name] + b["counters"][name] for name in vars(Counts())))
    return {
        **most,
        **{name: a[name] + b[name] for name in ("launches", "threads")},
        "counters": counts.as_dict(),
        "ratios": _ratios(counts),
    }


def _identity(defect: Report) -> tuple:
    launched_at = tuple(defect["launched_at"] or ())
    return (*(defect[name] for name in ("error", "kernel", "kernel_file", "path", "line", "suppressed")), launched_at)


def _ratios(counts: Counts) -> dict[str, float]:
    found = {name: ratio(counts) for name, ratio in RATIOS.items()}
    return {name: value for name, value in found.items() if value is not None}


def _kernel_report(name: str, file: str, kernel: _Kernel, cards: Sequence[str]) -> Report:
    launch = kernel.costliest
    assert launch is not None
    estimates: list[Report] = []
    notes: list[str] = []
    lines: list[Report] = []
    for card in cards:
        found = _estimated(launch, card)
        if isinstance(found, str):
            notes.append(found)
            continue
        estimates.append(
            {"card": found.card.name, "seconds": found.seconds, "limit": found.limit, "worth": found.label}
        )
        if not lines:
            lines = [_line(launch, one.file, one.line, one.code, one.share, found.limit) for one in found.lines[:LINES]]
    return {
        "kernel": name,
        "file": file,
        "launches": kernel.launches,
        "threads": kernel.threads,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "counters": kernel.counts.as_dict(),
        "ratios": _ratios(kernel.counts),
        "lines": lines or _by_instructions(launch),
        "estimates": estimates,
        "notes": notes,
    }


def _estimated(launch: LaunchRecord, card: str):
    """Return the estimate, or a sentence that says why there is none."""
    from warplab.compile.errors import CompilerNotFound
    from warplab.estimating.estimate import estimate

    try:
        return estimate(launch, card)
    except (CompilerNotFound, ImportError, RuntimeError, ValueError, OSError) as error:
        name = card.partition("=")[0].strip()
        return f"no time on the {name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"


def _by_instructions(launch: LaunchRecord) -> list[Report]:
    total = sum(counts.warp_instructions for counts in launch.lines.values())
    places = sorted((p for p in launch.lines if p[1]), key=lambda p: -launch.lines[p].warp_instructions)[:LINES]
    return [
        _line(launch, file, line, "", launch.lines[file, line].warp_instructions / max(1, total), "warp instructions")
        for file, line in places
    ]


def _line(launch: LaunchRecord, file: str, line: int, code: str, share: float, of: str) -> Report:
    path, before = located(file, launch.sources.get(file, ""))
    code = code or source_lines(launch, file, [line])[line].strip()
    return {"file": file, "path": path, "line": line + before, "code": code, "share": share, "of": of}


def kernel_file(sources: Mapping[str, str]) -> str:
    """Return the path of a kernel's own file, which compilers name first, as `located` does; "" if none is named."""
    return located(*next(iter(sources.items()), ("", "")))[0]


def _defect(error: SimulatorError) -> Report:
    file, line = error.file or "", error.line or 0
    path, before = located(file, error.sources.get(file, ""))
    return {
        "error": type(error).__name__,
        "what": error.what,
        "message": str(error),
        "reason": error.reason,
        "kernel": error.kernel or "",
        "kernel_file": kernel_file(error.sources),
        "file": file,
        "path": path,
        "line": line + before if line else 0,
        "source": (error.source or "").strip(),
        "block": error.block and [int(n) for n in error.block],
        "thread": error.thread and [int(n) for n in error.thread],
        "array": error.array,
        "index": None if error.index is None else int(error.index),
        "launched_at": launched_at(),
        "times": 1,
        "suppressed": bool(policy.suppressed_by(error)),
        "suppressed_by": policy.suppressed_by(error),
        "refused": isinstance(error, UnsupportedInstruction)
        or (isinstance(error, InstructionLimit) and not error.one_path),
    }


def places(error: SimulatorError) -> tuple[str, ...]:
    """Return where an error is in the program's own file, as the report tells it: "bad.py:7", and with the path."""
    path, before = located(error.file or "", error.sources.get(error.file or "", ""))
    line = f":{(error.line or 0) + before}"
    return os.path.basename(path) + line, path + line


def is_program(path: str) -> bool:
    """Return whether a file is a program's own: not of this package, of Python or of what is installed."""
    return not path.startswith(("<", _ENGINE, *_INSTALLED))


def launched_at() -> list | None:
    """Return file and line of the program that is running; None if it is not to be seen, as in a library's thread."""
    place = place_of_launch()
    if place is not None:
        return place()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_program(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else [os.path.abspath(frame.f_code.co_filename), frame.f_lineno]


def located(label: str, text: str) -> tuple[str, int]:
    """Return the path of a kernel's file, and how many lines of that file come before `text`.

    CUDA C++ that a program holds as text is looked for in the program's files; (`label`, 0) if it is in none.
    """
    path = path_of(label, text)
    if path is not None and os.path.exists(path):
        return os.path.abspath(path), 0
    if len(text.strip()) > 20:
        for file in _files():
            lines = linecache.getlines(file)
            content = "".join(lines)
            at = content.find(text)
            if at >= 0:
                return file, content.count("\n", 0, at)
    return label, 0


def _files() -> Iterator[str]:
    """Yield the program's files that may hold CUDA C++: its modules, and what lies beside its script."""
    loaded = [_SCRIPT, *(getattr(module, "__file__", None) for module in list(sys.modules.values()))]
    modules = [os.path.abspath(file) for file in loaded if file and file.endswith(".py") and is_program(file)]
    yield from modules
    folders = dict.fromkeys(os.path.dirname(file) for file in modules[:1] + modules[-20:])
    beside = (p for folder in folders for p in Path(folder).glob("*.cu*"))
    for _, file in zip(range(_MOST_FILES), beside, strict=False):
        yield str(file)
