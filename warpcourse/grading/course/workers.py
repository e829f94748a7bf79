"""Judges at work on this machine or on a `dask.distributed` cluster. They never see the gradebook.

Both yield results as they become ready. A judge that ends or hangs is killed with everything it started and replaced.
Its job is tried once more; if that fails too, the result is an infra_error, which a person must look at.
"""

import functools
import hashlib
import logging
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from typing import Any, Protocol

import nbformat

from warpcourse.grading.judge.assembly import refused
from warpcourse.grading.judge.jobs import Job, Key, Result, outcome
from warpcourse.paths import COURSE
from warpcourse.processes.child import Child, ChildFailed, module
from warpcourse.processes.tree import kill_tree, resident_bytes

START_SECONDS = 180.0
SPARE_SECONDS = 60.0  # for a judge beyond all limits of a job: to start a sandbox, to pack the result
ATTEMPTS = 2
MAX_JOBS = 100  # per judge; then a fresh one replaces it, so that no library's cache grows with the class
RESTART_MEMORY = 2 * 2**30  # bytes at its peak, after which a judge is replaced as well
# A judge that exceeds this is killed: hostile PTX must not take down the machine. Lab 01 needs 0.3 GiB.
MAX_MEMORY = 6 * 2**30  # bytes


class Executor(Protocol):
    """An interface that turns jobs into results."""

    def run(self, jobs: Iterable[Job]) -> Iterator[Result]: ...


class JudgeFailure(Exception):
    """A judge ended or hung. The message says which, with its last words."""


class TooMuchMemory(JudgeFailure):
    """A judge needed more than `MAX_MEMORY`. If a fresh one does too, the submission is the cause."""


class NoJudge(Exception):
    """No judge can be started. No submission is at fault, so the grading ends. The message says why."""


class JudgeProcess:
    """One judge in a process of its own. Not thread-safe."""

    command = module("warpcourse.grading.judge.judge")

    def __init__(self) -> None:
        self._child: Child | None = None
        self.protection = ""
        self.closed = False
        self._jobs = 0

    def grade(self, job: Job) -> Result:
        """Return the result of one job, whatever happens to the judge. Raises `NoJudge`."""
        failure = JudgeFailure()
        for _ in range(ATTEMPTS):
            self.start()
            try:
                message = self._exchange(job.as_message(), job.longest_seconds + SPARE_SECONDS)
                result = Result.from_message(message)
            except JudgeFailure as error:
                failure = error
                self.kill()
                continue
            self._jobs += 1
            if self._jobs >= MAX_JOBS or result.memory > RESTART_MEMORY:
                self.kill()
            return result
        if isinstance(failure, TooMuchMemory):
            reason = f"The kernels of this notebook need more than {MAX_MEMORY >> 30} GiB of memory."
            return Result(
                job.key, **outcome("limit", reason, refused(nbformat.reads(job.master, as_version=4), reason))
            )
        return Result(job.key, "infra_error", f"The grader's own process failed {ATTEMPTS} times: {failure}")

    def start(self) -> None:
        """Start the process unless it runs, and wait until it is ready. Raises `NoJudge`."""
        if self.process is not None:
            return
        for attempt in range(ATTEMPTS):
            if self.closed:
                raise NoJudge("the grading is being ended")
            self._spawn()
            try:
                self.protection = self._exchange(None, START_SECONDS)["sandbox"]
                return
            except JudgeFailure as error:
                self.kill()
                if attempt == ATTEMPTS - 1:
                    raise NoJudge(f"the grader's own process does not start: {error}") from error

    def look(self) -> dict[str, Any]:
        """Return what `Judge.look` says there. Raises `NoJudge`."""
        self.start()
        try:
            return self._exchange({"look": True}, START_SECONDS)
        except JudgeFailure as error:
            raise NoJudge(f"the sandbox cannot be tried out: {error}") from error

    def _spawn(self) -> None:
        self._jobs = 0
        self._child = Child(self.command, {"WARPLAB_BACKEND": "simulator"})

    @property
    def process(self) -> subprocess.Popen | None:
        return None if self._child is None else self._child.process

    def kill(self) -> None:
        """End the process and everything below it."""
        if self._child is not None:
            child, self._child = self._child, None
            child.kill()

    def _exchange(self, message: dict[str, Any] | None, seconds: float) -> dict[str, Any]:
        """Send a message and wait for the answer. Raises `JudgeFailure`."""
        assert self._child is not None
        try:
            if message is not None:
                self._child.send(message)
            return self._child.receive(seconds, _check_memory)[0]
        except ChildFailed as error:
            raise JudgeFailure(str(error)) from None


def _check_memory(pid: int) -> None:
    if resident_bytes(pid) > MAX_MEMORY:
        raise TooMuchMemory(f"it needed more than {MAX_MEMORY >> 30} GiB of memory")


class LocalWorkers:
    """`count` judges on this machine."""

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"the number of workers must be positive, got {count}")
        self.count = count
        self._first: list[JudgeProcess] = []

    def look(self) -> dict[str, Any]:
        """Return what the first judge says of its sandbox, as `JudgeProcess.look`. `close` it, or `run`."""
        self._first = [JudgeProcess()]
        return self._first[0].look()

    def close(self) -> None:
        """End the judge that `look` started."""
        while self._first:
            self._first.pop().kill()

    def run(self, jobs: Iterable[Job]) -> Iterator[Result]:
        feed, turn = iter(jobs), threading.Lock()
        ready: queue.SimpleQueue[Result | BaseException | None] = queue.SimpleQueue()
        stopping = threading.Event()
        judges = [self._first.pop() if self._first else JudgeProcess() for _ in range(self.count)]

        def work(judge: JudgeProcess) -> None:
            try:
                while not stopping.is_set():
                    with turn:
                        job = next(feed, None)
                    if job is None:
                        break
                    ready.put(judge.grade(job))
            except BaseException as error:  # of reading the next job, for the coordinator to report
                ready.put(error)
            finally:
                judge.kill()
                ready.put(None)

        threads = [threading.Thread(target=work, args=(judge,), daemon=True) for judge in judges]
        for thread in threads:
            thread.start()
        try:
            running = len(threads)
            while running:
                item = ready.get()
                if item is None:
                    running -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            stopping.set()
            for judge in judges:
                judge.closed = True
                if (process := judge.process) is not None:
                    kill_tree(process)  # its thread notices
            for thread in threads:
                thread.join(30)


class DaskWorkers:
    """The workers of a `dask.distributed` cluster, with one judge per thread.

    Their machines need the same version of this course, bubblewrap, and no files of the class. If a worker is lost,
    another one takes its job. `say` is told of workers that are lost and that replace them.
    """

    def __init__(
        self, address: str, wait_seconds: float = 60.0, say: Callable[[str], None] = lambda text: None
    ) -> None:
        self.address, self.wait_seconds, self._say = address, wait_seconds, say

    def run(self, jobs: Iterable[Job]) -> Iterator[Result]:
        try:
            from distributed import Client, as_completed
        except ModuleNotFoundError as error:
            raise NoJudge(
                f"grading on a cluster needs {error.name}, which is not installed; run `make setup-cluster`, "
                "or outside .venv `python -m pip install -r requirements-cluster.txt`"
            ) from error
        # About a lost scheduler it would log that it waited for a minute, which it did not.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        feed, version = iter(jobs), course_version()
        try:
            client = Client(self.address, timeout=self.wait_seconds, set_as_default=False)
        except (OSError, ValueError) as error:
            raise NoJudge(f"no dask scheduler answers at {self.address} ({error}); start it, then try again") from error
        with client:
            try:
                client.wait_for_workers(1, timeout=self.wait_seconds)
            except TimeoutError as error:
                raise NoJudge(f"the scheduler at {self.address} has no workers; start dask workers for it") from error
            pending = as_completed(loop=client.loop)
            keys: dict[Any, Key] = {}
            client.subscribe_topic("all", _Attendance(self.address, client.nthreads(), keys, self._say))

            def submit() -> bool:
                job = next(feed, None)
                if job is None:
                    return False
                future = client.submit(grade_message, job.as_message(), version, pure=False, retries=ATTEMPTS - 1)
                keys[future.key] = job.key
                pending.add(future)
                return True

            # Only as many as keep every thread busy, because the scheduler holds them all in memory.
            for _ in range(2 * max(4, sum(client.nthreads().values()))):
                if not submit():
                    break
            for future in pending:
                status = future.status  # which may change at any time
                if status in ("lost", "pending"):  # its worker ended with the result; another one repeats the job
                    pending.add(future)
                    continue
                key = keys.pop(future.key)
                lost = NoJudge(f"the scheduler at {self.address} was lost; restart it and run the same command again")
                if status == "finished":
                    try:
                        result = Result.from_message(future.result())
                    except (OSError, CancelledError) as error:  # it is fetched through the scheduler
                        raise lost from error
                elif status == "cancelled":
                    raise lost
                elif isinstance(problem := future.exception(), NoJudge):
                    raise problem
                else:
                    result = Result(key, "infra_error", f"The job failed on the cluster: {problem!r}"[:500])
                future.release()
                submit()
                yield result


class _Attendance:
    """Tells of workers that come and go; a scheduler's events are its input. `keys`: tasks that are not yet done."""

    def __init__(
        self, address: str, present: Iterable[str], keys: Mapping[Any, Key], say: Callable[[str], None]
    ) -> None:
        self._address, self._present, self._keys, self._say = address, set(present), keys, say

    def __call__(self, event: tuple[float, Any]) -> None:
        _, message = event
        if not isinstance(message, dict) or message.get("action") not in ("add-worker", "remove-worker"):
            return
        worker = message["worker"]
        if message["action"] == "add-worker":
            if not self._present:
                self._say(f"Worker {worker} has joined")
            self._present.add(worker)
            return
        self._present.discard(worker)
        had = sorted(key.student for task, key in list(self._keys.items()) if task in message["processing-tasks"])
        told = f"Worker {worker} was lost"
        if not self._present:
            self._say(f"{told}, and none is left: start a dask worker for {self._address}, which goes on then")
        elif had:
            self._say(f"{told}; what it was grading goes to another one: {', '.join(had)}")
        else:
            self._say(f"{told}; it was not grading")


_idle: list[JudgeProcess] = []  # in this process of a worker


def grade_message(message: dict[str, Any], version: str) -> dict[str, Any]:
    """Grade a job on a worker of the cluster, by a judge of its own. Messages in and out."""
    job = Job.from_message(message)
    if course_version() != version:
        where = os.uname().nodename
        reason = f"The course on {where} differs from the coordinator's; update it there and restart the worker."
        return Result(job.key, "infra_error", reason).as_message()
    judge = _idle.pop() if _idle else JudgeProcess()
    try:
        return judge.grade(job).as_message()
    finally:
        _idle.append(judge)


@functools.cache
def course_version() -> str:
    """Return a hash of the course's modules. Results of different versions are not comparable."""
    digest = hashlib.sha256()
    for path in sorted(path for name in ("warplab", "warpcourse") for path in (COURSE / name).rglob("*.py")):
        digest.update(path.relative_to(COURSE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
