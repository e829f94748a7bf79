"""One run of a program under the checks, over all its processes: settings, what each has collected, the whole report.

The first process makes a folder, which the others find in the environment (WARPLAB_SESSION, JSON). Each process writes
its report there, after each launch without the estimates, which it adds when it ends.
"""

import atexit
import concurrent.futures.thread  # noqa: F401 - and difflib: here, as a program's queue.py would hide Python's, and as
import contextlib
import difflib  # noqa: F401 - nothing can be imported once Python ends, which estimates' SciPy would
import fcntl
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplab.dropin import imports
from warplab.running.strictness import BOOKS, DEFAULT, SECONDS

VARIABLE = "WARPLAB_SESSION"


@dataclass
class Settings:
    """How launches run and what is reported. `cards`: for which times are estimated. `seconds`: for one launch, None
    for the simulator's own limits. `suppressions`: kernel, error, place."""

    strict: str = DEFAULT
    cards: list[str] = field(default_factory=lambda: ["H100"])
    seconds: float | None = SECONDS
    suppressions: list[list[str]] = field(default_factory=list)


class Session:
    """What this process takes part in. `first`: whether it is the process that reports in the end."""

    def __init__(self, settings: Settings, folder: str | None = None) -> None:
        self.settings, self.first = settings, folder is None
        self.folder = folder or _new_folder()
        self.collected: Any = None  # made when a stand-in is loaded first, as a program may need none
        self._process = os.getpid()
        os.register_at_fork(after_in_child=self._forked)
        imports.before_first_use(self._begin)
        if self.first:
            os.environ[VARIABLE] = json.dumps({"folder": self.folder, "settings": vars(settings)})

    def _begin(self) -> None:
        from warplab.launch import policy, profiling
        from warplab.running.collected import Collected, places

        book, seconds = BOOKS[self.settings.strict], self.settings.seconds
        policy.choose(
            [policy.Suppression(*columns) for columns in self.settings.suppressions],
            places,
            **book,
            trace_warps=0,
            max_seconds=seconds,
        )
        imports.look_like(self.settings.cards[0])
        self.collected = Collected(self.settings.cards, self._changed)
        profiling.collect(self.collected, every_thread=True)
        if not self.first:
            self._write_at_the_end()

    def _forked(self) -> None:
        """In a process that was forked: what the other one has launched is not this one's."""
        self.first, self._process = False, os.getpid()
        if self.collected is not None:
            self.collected.forget()
            self._write_at_the_end()

    def _write_at_the_end(self) -> None:
        from multiprocessing import util

        # A process of multiprocessing does not run what atexit has; exit priority 0 comes last.
        util.Finalize(None, self._write, kwargs={"estimates": True}, exitpriority=0)
        atexit.register(self._write, estimates=True)

    def _changed(self) -> None:
        if not self.first:
            self._write(estimates=False)

    def _write(self, *, estimates: bool) -> None:
        if not os.path.isdir(self.folder) or self._process != os.getpid():
            return
        report = self.collected.report(estimates=estimates)
        if not estimates:  # stays if nobody lets the process end, as a Pool does not
            for kernel in report["kernels"]:
                kernel["notes"] = ["no time: the process that launched it was ended before it estimated any"]
        file = Path(self.folder, f"{os.getpid()}.json")
        part = file.with_suffix(".part")
        part.write_text(json.dumps(report), encoding="utf-8")
        part.replace(file)

    def report(self) -> dict:
        """Return the report of all processes so far, and of this one with its estimates. `unmet`: suppressions of no
        defect, as their patterns."""
        from warplab.running.collected import merged

        own = [] if self.collected is None else [self.collected.report()]
        report = merged([*own, *self._others("**/*.json")])
        met = {entry for defect in report["defects"] for entry in defect["suppressed_by"]}
        return {**report, "unmet": [entry for entry in map(" ".join, self.settings.suppressions) if entry not in met]}

    def _others(self, pattern: str) -> list[dict]:
        files = sorted(Path(self.folder).glob(pattern))
        return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.stem != str(os.getpid())]

    def defects(self) -> list[dict]:
        """Return those of this process, then those of processes that it has started."""
        own = [] if self.collected is None else self.collected.defects
        return [*own, *(defect for report in self._others("*.json") for defect in report["defects"])]

    def part(self) -> None:
        """Keep the reports of processes that this one starts apart from those of its siblings: workers of xdist."""
        self.folder = tempfile.mkdtemp(dir=self.folder)
        os.environ[VARIABLE] = json.dumps({"folder": self.folder, "settings": vars(self.settings)})

    def finish(self) -> None:
        """Write what this process has to tell, if another one reports it."""
        if not self.first and self.collected is not None:
            self._write(estimates=True)

    def close(self) -> None:
        """End the session: processes that go on report to nobody."""
        if self.collected is not None:
            from warplab.launch import policy, profiling

            profiling.stop(self.collected)
            policy.choose()
        if self.first:
            os.environ.pop(VARIABLE, None)
            shutil.rmtree(self.folder, ignore_errors=True)


def _new_folder() -> str:
    """Make a folder that is locked for as long as this process or a fork lives; remove those whose processes do not,
    as they were killed or replaced."""
    for lock in Path(tempfile.gettempdir()).glob("warplab-run-*/lock"):
        with contextlib.suppress(OSError), open(lock, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix="warplab-run-")
    fcntl.flock(os.open(Path(folder, "lock"), os.O_CREAT | os.O_RDWR, 0o600), fcntl.LOCK_EX)
    return folder


_current: list[Session] = []


def begin(settings: Settings) -> Session:
    """Install the hook, and take part in the session of the process that started this one, or begin one."""
    imports.install()
    if not _current:
        known = _inherited()
        _current.append(Session(settings) if known is None else known)
    return _current[0]


def join() -> None:
    """Install the hook in a process that a program has started, and take part in its session if there is one."""
    imports.install()
    known = None if _current else _inherited()
    if known is not None:
        _current.append(known)


def current() -> Session | None:
    return _current[0] if _current else None


def _inherited() -> Session | None:
    try:
        told = json.loads(os.environ.get(VARIABLE, ""))
        return Session(Settings(**told["settings"]), told["folder"]) if os.path.isdir(told["folder"]) else None
    except ValueError:
        return None
    except (KeyError, TypeError) as error:
        print(f"{VARIABLE} in the environment is not one of this version ({error}); ignored", file=sys.stderr)
        return None
