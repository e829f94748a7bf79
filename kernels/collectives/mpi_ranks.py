"""Start the ranks of an MPI program by mpiexec, listen to them, and end all of them if one fails.

`launch` starts `python -m MODULE --as-rank ...` as often as there are ranks, each of which makes a `Rank` and reports
by lines on its output: that it has started, that it waits for another one for too long, that it failed, or its result.
A rank that ends without a result, or is not heard of in time, is an error that names it; no process is left then.

MPI is MPICH, a wheel with its mpiexec. On several machines: `hosts`, reached by ssh, the course in the same folder.
"""

import contextlib
import json
import os
import queue
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernels.collectives.sizes import rank_names
from warpcourse.paths import COURSE
from warpcourse.processes.child import course_path

SECONDS = 60.0  # time limit of the ranks' work, if none is given
STARTING = 60.0  # for all ranks to start, Python and NumPy to be loaded, on a busy machine
GRACE = 2.0  # for other ranks to say what they wait for, and for processes to end
_SIGN = "@rank "
_TICK = 0.05
_LETTERS = 3000  # of a traceback: a pipe takes 4096 bytes as one piece
_LINES = 20  # of the ranks' other output, in an error


class MpiMissing(RuntimeError):
    """MPI is not there."""


class RankFailed(RuntimeError):
    """Processes of ranks that died, failed, hang or never started. `ranks`: their numbers."""

    def __init__(self, message: str, ranks: Sequence[int]) -> None:
        super().__init__(message)
        self.ranks = tuple(ranks)


class RankLate(TimeoutError):
    """Raised in a rank whose messages have not come. `waits_for`: ranks; `step`: of the schedule."""

    def __init__(self, waits_for: Sequence[int], step: int) -> None:
        super().__init__(f"waits for {rank_names(waits_for)} in step {step}")
        self.waits_for, self.step = tuple(waits_for), step


# --- In a rank -----------------------------------------------------------------------------------------------------


@dataclass
class Rank:
    """This process in the MPI program. `deadline`: on the monotonic clock, when its waiting must end."""

    communicator: Any
    deadline: float

    @property
    def number(self) -> int:
        """Return its rank."""
        return self.communicator.Get_rank()

    @property
    def ranks(self) -> int:
        """Return how many there are."""
        return self.communicator.Get_size()


def _say(**event: Any) -> None:
    sys.stdout.flush()
    # In one piece, so that the lines of several ranks do not mix.
    os.write(sys.stdout.fileno(), f"{_SIGN}{json.dumps(event)}\n".encode())


def be_rank(seconds: float, work: Callable[[Rank], Mapping[str, Any]]) -> int:
    """Do a rank's work and report its result, in JSON types. Returns the exit code; ends the process if it failed."""
    signal.alarm(int(seconds + STARTING + 30))  # ends this process even if nobody is left to do so
    from mpi4py import MPI

    communicator = MPI.COMM_WORLD
    number = communicator.Get_rank()
    _say(rank=number, event="started", pid=os.getpid(), host=socket.gethostname())
    try:
        result = work(Rank(communicator, time.monotonic() + seconds))
    except RankLate as late:
        _say(rank=number, event="late", waits_for=late.waits_for, step=late.step)
    except BaseException:
        _say(rank=number, event="failed", text=traceback.format_exc()[-_LETTERS:])
    else:
        _say(rank=number, event="finished", result=result)
        return 0
    sys.stdout.flush()
    os._exit(1)  # MPI_Finalize would wait for the others


# --- Outside -------------------------------------------------------------------------------------------------------


def mpiexec() -> str:
    """Return the path of MPICH's mpiexec: the wheel's, beside this Python, or the machine's. Raise MpiMissing."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    remedy = "the wheel mpich has it: run `make setup`, or `pip install mpi4py mpich`"
    if not found:
        raise MpiMissing(f"there is no mpiexec; {remedy}")
    if not beside.exists() and not _is_hydra(found):
        raise MpiMissing(f"the mpiexec on PATH is not MPICH's, whose options are used here; {remedy}")
    return found


def _is_hydra(mpiexec: str) -> bool:
    """Return whether it is Hydra, MPICH's; Open MPI's has other options."""
    try:
        said = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "HYDRA" in said.upper()


def launch(
    module: str,
    arguments: Sequence[str],
    ranks: int,
    *,
    seconds: float = SECONDS,
    hosts: str | None = None,
    starting: float = STARTING,
) -> list[dict[str, Any]]:
    """Run `python -m module --as-rank *arguments` as so many ranks; the result of each, in their order.

    `seconds`: limit of the work once all have started. `hosts`: such as "a,b", comma separated; this machine if None.
    Raise RankFailed within that time if a rank dies, fails, hangs or does not start; MpiMissing without MPI.
    """
    if ranks < 1:
        raise ValueError(f"an MPI program has at least one rank, not {ranks}")
    where = ["-hosts", hosts] if hosts else []
    # Without its own clean-up mpiexec leaves it to us to see which rank ended first.
    command = [mpiexec(), "-disable-auto-cleanup", *where, "-n", str(ranks)]
    program = [sys.executable, "-m", module, "--as-rank", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": course_path()}
    process = subprocess.Popen(
        [*command, *program],
        cwd=COURSE,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    job = _Job(process, ranks, seconds, starting)
    try:
        return job.results()
    finally:
        job.end()


@dataclass
class _Job:
    process: subprocess.Popen
    ranks: int
    seconds: float
    starting: float
    events: dict[int, dict[str, Any]] = field(default_factory=dict)  # the latest of each rank
    pids: dict[int, int] = field(default_factory=dict)
    handles: dict[int, int] = field(default_factory=dict)  # pidfds by rank, of processes on this machine
    ended: list[int] = field(default_factory=list)  # ranks whose processes have ended, in that order
    other: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ends = select.epoll()
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line)

    def results(self) -> list[dict[str, Any]]:
        """Listen until all have finished. Raise RankFailed."""
        end = time.monotonic() + self.starting
        working = False
        while True:
            self._listen()
            if len(self._with("finished")) == self.ranks:
                return [self.events[rank]["result"] for rank in range(self.ranks)]
            self._raise_failures()
            if not working and len(self.events) == self.ranks:
                working, end = True, time.monotonic() + self.seconds + GRACE
            if self.process.poll() is not None:
                self._reader.join(GRACE)
                self._listen()
                if len(self._with("finished")) < self.ranks:
                    self._raise_failures()
                    self._raise_unfinished(f"mpiexec ended with code {self.process.returncode}")
            elif time.monotonic() > end:
                limit = self.seconds if working else self.starting
                self._raise_unfinished(f"the time limit of {limit:g} s is over")

    def _listen(self) -> None:
        """Take what has come; wait a little if that is nothing."""
        wait = _TICK
        while True:
            try:
                line = self._lines.get(timeout=wait)
            except queue.Empty:
                return
            wait = 0.001
            start = line.find(_SIGN)
            if start < 0:
                self.other.append(line)
                continue
            event = json.loads(line[start + len(_SIGN) :])
            self.events[event["rank"]] = event
            if event["event"] == "started":
                self._follow(event["rank"], event["pid"], event["host"])

    def _follow(self, rank: int, pid: int, host: str) -> None:
        """Be told when a rank's process ends."""
        self.pids[rank] = pid
        if host != socket.gethostname():
            return
        try:
            # A handle stays this process's when the number is used again.
            self.handles[rank] = os.pidfd_open(pid)
        except ProcessLookupError:
            self.ended.append(rank)
        else:
            self._ends.register(self.handles[rank], select.EPOLLIN)

    def _note_ends(self) -> None:
        """Note which processes have ended. One at a time: epoll keeps the order; mpiexec may end others soon."""
        ranks = {handle: rank for rank, handle in self.handles.items()}
        while found := self._ends.poll(0, 1):
            self._ends.unregister(found[0][0])
            self.ended.append(ranks[found[0][0]])

    def _with(self, *kinds: str) -> list[int]:
        return sorted(rank for rank, event in self.events.items() if event["event"] in kinds)

    def _raise_failures(self) -> None:
        """Raise RankFailed if a rank has failed, has died, or is waited for in vain."""
        self._note_ends()
        if not set(self.ended) & set(self._with("started")) and not self._with("failed", "late"):
            return
        if not self._with("failed"):
            self._hear_the_others()  # what a process wrote before it ended; what others wait for
        if failed := self._with("failed"):
            self._fail(f"rank {failed[0]} failed:\n{self.events[failed[0]]['text']}", failed[:1])
        for rank in self.ended:
            if self.events[rank]["event"] == "started":
                self._fail(f"rank {rank} (process {self.pids[rank]}) died before the work was done", [rank])
        if late := self._with("late"):
            waits = {rank: self.events[rank]["waits_for"] for rank in late}
            text = "; ".join(
                f"rank {rank} waited for {rank_names(waits[rank])} in step {self.events[rank]['step']}" for rank in late
            )
            blamed = sorted(set().union(*waits.values()) - set(late) - set(self._with("finished")))
            what = f"{rank_names(blamed)} did not answer" if blamed else f"{rank_names(late)} had not done"
            self._fail(f"{what} within {self.seconds:g} s: {text}", blamed or late)

    def _hear_the_others(self) -> None:
        end = time.monotonic() + (GRACE if self._with("late") else 5 * _TICK)
        while time.monotonic() < end and self._with("started") and not self._with("failed"):
            self._listen()

    def _raise_unfinished(self, why: str) -> None:
        if silent := [rank for rank in range(self.ranks) if rank not in self.events]:
            self._fail(
                f"{rank_names(silent)} of {self.ranks} did not start: {why}. Look whether the machines can be reached "
                "and hold the course in the same folder",
                silent,
            )
        unfinished = self._with("started")
        self._fail(f"{rank_names(unfinished)} had not finished: {why}", unfinished)

    def _fail(self, text: str, ranks: Sequence[int]) -> None:
        said = "".join(self.other[-_LINES:]).strip()
        raise RankFailed(f"{text}; all ranks were ended" + (f". They wrote:\n{said}" if said else ""), ranks)

    def end(self) -> None:
        """Leave no process behind."""
        if self.process.poll() is None and len(self._with("finished")) == self.ranks:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE)
        for stop in (signal.SIGTERM, signal.SIGKILL):
            for handle in self.handles.values():
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            if self.process.poll() is None:
                self.process.send_signal(stop)  # mpiexec ends what it has started, also elsewhere
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(GRACE)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(GRACE)
        self.process.stdout.close()
        self._ends.close()
        for handle in self.handles.values():
            os.close(handle)
