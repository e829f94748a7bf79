"""Jobs: processes that work in a folder of plain files, and outlive the page that started them.

lock         held by the process while it lives; it inherits it, so at no moment is the folder anybody else's
state.json   how far it is; says "running", with the lock free, where the process was killed
wanted       what the user asked of it: run, pause, stop
log.txt      what it printed
"""

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from digits.files import DigitsError, Lock, delete_folder, explained, is_locked, open_log, open_plain, write_file
from warpcourse.learner.waiting import waiting
from warpcourse.paths import COURSE
from warpcourse.processes.child import module as command_of

STATE, WANTED, LOCK, LOG = "state.json", "wanted", "lock", "log.txt"
ALIVE = ("waiting", "running")
REFUSED = 2  # exit status: another process works in the folder
_MOST_LOG = 100_000  # characters
_children: list[subprocess.Popen[bytes]] = []  # that this process started, to be reaped when they end


class Job:
    """The job in `folder`. Every question reads the files, so the answer is the same in every process.

    A subclass says how it is: `state()`, a dict with "status", and which statuses are the ends: `ENDED`.
    """

    ENDED: tuple[str, ...] = ()
    BUSY = ""  # why it cannot be deleted now, with {name}

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.id = self.folder.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    @property
    def name(self) -> str:
        return self.id

    @property
    def alive(self) -> bool:
        """Return whether a process works on it."""
        return is_locked(self.folder / LOCK)

    def state(self) -> dict[str, Any]:
        """Return how it is."""
        raise NotImplementedError

    def settled(self, read: Callable[[], dict[str, Any]], killed: Callable[[], str]) -> dict[str, Any]:
        """Return `read()`, or with the status "killed" and that message where the process is gone without a word."""
        while True:
            alive = self.alive  # asked first: a process writes its last state before it gives the lock back
            state = read()
            if state["status"] not in ALIVE or alive:
                return state
            if read()["status"] == state["status"] and not self.alive:  # otherwise one began, or ended, in between
                return state | {"status": "killed", "message": killed()}

    def log(self) -> str:
        """Return what the process printed, at most the last 100,000 characters."""
        try:
            with explained(f"read the log of {self.id}"), contextlib.suppress(FileNotFoundError):
                return _read(self.folder / LOG)[-_MOST_LOG:]
        except DigitsError as error:
            return str(error)
        return ""

    def ask(self, wanted: str) -> None:
        """Ask the process for something."""
        write_wanted(self.folder, wanted)

    def delete(self) -> None:
        """Delete it with its files. Raises DigitsError while its process lives."""
        with self.locked("delete"):
            delete_folder(self.folder)

    @contextlib.contextmanager
    def locked(self, doing: str) -> Iterator[None]:
        """Hold the lock. Raises DigitsError with `BUSY`, in which {doing} and {name} stand, while the process lives."""
        lock = Lock(self.folder / LOCK)
        if not lock.acquire(0.5):
            raise DigitsError(self.BUSY.format(doing=doing, name=self.name))
        try:
            yield
        finally:
            lock.release()

    def wait(self, timeout: float, until: Iterable[str] | None = None) -> dict[str, Any]:
        """Return the state once its status is one of `until` (of `ENDED`), or as it is after `timeout` seconds."""
        until, deadline = tuple(self.ENDED if until is None else until), time.monotonic() + timeout
        with waiting() as say:
            while True:
                state = self.state()
                _reap()
                ended = state["status"] in self.ENDED
                if time.monotonic() >= deadline or (state["status"] in until and not (ended and self.alive)):
                    return state
                steps = f": step {state['step']} of {state['steps']}" if state.get("steps") else ""
                say(f"{self.name} is {state['status']}{steps}")
                time.sleep(0.05)


def launch(
    folder: Path,
    lock: Lock,
    module: str,
    doing: str,
    *,
    anew: bool = False,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Start `python -m module FOLDER --lock DESCRIPTOR`, detached; it inherits the lock, which is held.

    `doing`: for the sentence where it cannot. `anew`: whether the log begins anew.
    """
    with explained(doing), open_log(folder / LOG, anew=anew) as log:
        _children.append(
            subprocess.Popen(
                command_of(module, str(folder), "--lock", str(lock.descriptor)),
                cwd=COURSE,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock.descriptor,),
                start_new_session=True,  # neither Ctrl-C nor the end of a terminal reaches it
            )
        )
    _reap()


def work(
    module: str,
    busy: str,
    do: Callable[[Path], int],
    arguments: Sequence[str] | None = None,
    first: Callable[[Path], Any] = lambda folder: None,
) -> int:
    """Be the process that `launch` starts: `do(folder)` while the folder is locked. Returns the exit status.

    That is what `do` returns, 1 for a DigitsError, which is printed, and 2 where another process has the lock, with
    the sentence `busy`, in which {name} stands. `first`: called before `do` where the parent did not take the lock.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("folder", type=Path, help="the folder of what is worked on")
    parser.add_argument("--lock", type=int, help="the open file that holds its lock, if the parent took it")
    asked = parser.parse_args(arguments)
    folder, lock = asked.folder.absolute(), Lock(asked.folder / LOCK)
    if asked.lock is not None:
        os.set_inheritable(asked.lock, False)
    elif not lock.acquire():
        print(busy.format(name=folder.name), file=sys.stderr)
        return REFUSED
    try:
        if asked.lock is None:
            first(folder)
        return do(folder)
    except DigitsError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        lock.release() if asked.lock is None else os.close(asked.lock)


def write_wanted(folder: Path, wanted: str) -> None:
    """Note what is wanted of the job in `folder`."""
    write_file(folder / WANTED, lambda stream: stream.write(wanted.encode()))


def wanted(folder: Path) -> str:
    """Return what is wanted: "pause", "stop", or "run" where nothing else is noted."""
    try:
        found = _read(folder / WANTED, 100).strip()
    except OSError:
        return "run"
    return found if found in ("pause", "stop") else "run"


def _read(path: Path, most: int = -1) -> str:
    with os.fdopen(open_plain(path, os.O_RDONLY), errors="replace") as stream:
        return stream.read(most)


def _reap() -> None:
    _children[:] = [child for child in _children if child.poll() is None]
