"""The warmed parent process of all submissions: it imports once what every notebook needs, then forks.

    python -m warpcourse.grading.sandbox.zygote ISOLATION --socket DESCRIPTOR --root FOLDER [--become UID | --uid UID]

It runs inside the sandbox, holds no secret, has one thread, and takes one submission at a time. The judge
(`zygote_client`) sends commands as JSON over the socket, one per message (SOCK_SEQPACKET), and each gets one answer:

    start      {"program", "limits"} and descriptors: the payload, then the kernel's sockets    {"ok": true}
    status                                                        {"running": true, "waited"} or {"ended": {...}}
    interrupt                                                                                   {"ok": true}
    kill       {"reason"}                                                                       {"ended": {...}}

The payload holds the student's files. The zygote does not read them, because the next student could find them in its
memory. When the socket closes, the zygote kills what runs and ends.
"""

import argparse
import array
import contextlib
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from warpcourse.grading.frameworks import FRAMEWORKS
from warpcourse.grading.sandbox import linux
from warpcourse.grading.sandbox.child import INTERRUPT, Place, launch, try_namespaces
from warpcourse.grading.sandbox.limits import WIDE, SubmissionLimits
from warpcourse.processes.tree import descendants, processes, socket_bytes, threads, usage, waited_seconds

TICK = 0.1  # seconds between two looks at a submission's processor time and memory; more where looking is slow
_LOOKING_SHARE = 0.05  # of the time, at most
_HASTE = 0.01  # seconds between two looks at a submission that has half of its memory
_FEW = 2  # threads at work at once, or sessions, with which a submission keeps its priority
_EVERYBODYS = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")  # folders; what stays in the third is memory
_START_SECONDS = 60.0
_INTERRUPT_SECONDS = 5.0  # for the submission's first process to pass an interrupt on
_PROGRAMS = {
    "kernel": ("warpcourse.grading.student.kernel_app", "run"),
    "probe": ("warpcourse.grading.sandbox.preflight", "probe"),
    "script": ("warpcourse.grading.student.script", "run"),
}

# What a zygote imports in advance: each with what comes before it, and one framework on top of the course.
WARMTHS = ("nothing", "kernel", "course", *(framework.warmth for framework in FRAMEWORKS))
_KERNEL = ("numpy", "IPython", "ipykernel.ipkernel", "warplab.dropin.magic", "warpcourse.grading.student.kernel_app")
_COURSE = ("numba.cuda", "warplab.launch.simulate")
_USEFUL = (
    "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
    "warplab.checks",
    "warplab.draw.grid",
    "warplab.draw.heat_map",
    "warplab.draw.roofline",
    "warplab.dropin.magic",
    "warplab.launch.profiling",
    "warplab.estimating.roofline",
    "warpcourse.grading.student.agent",
)


class RunningSubmission:
    """The processes of one submission. `ended` is None while they run. `waited`: seconds for want of a processor."""

    def __init__(self, place: Place, limits: SubmissionLimits, report: int, forked: int) -> None:
        self.place, self.limits = place, limits
        self.ended: dict | None = None
        self._report, self._forked, self._init = report, forked, 0
        self._started, self._rest, self._untaken = time.monotonic(), b"", list[bytes]()
        self._cpu, self._peak, self._memory, self.waited = 0.0, 0, 0, 0.0
        self._kernel: list[int] = []
        self._nice, self._lowered = 0, set[int]()
        self._nice_session, self._lowered_sessions = 0, set[str]()

    def wait_until_up(self) -> str | None:
        """Wait until the program is ready for the student's code. Return None, or what went wrong."""
        deadline = time.monotonic() + _START_SECONDS
        problem = f"it was not ready after {_START_SECONDS:g} s"
        while time.monotonic() < deadline:
            for message in self._messages(deadline - time.monotonic()):
                if "init" in message and not self._init:
                    self._init = message["init"]
                    if self._init != self._forked:
                        os.waitpid(self._forked, 0)
                elif "ready" in message:
                    self._kernel = descendants(self._init, processes())[:1]
                    return None
                elif "error" in message or "code" in message:
                    self._bury("lost")
                    return message.get("error") or f"its program ended with {message['code']}"
            if self._report < 0:
                problem = "its first process ended"
                break
        self._bury("lost")
        return problem

    def _messages(self, timeout: float) -> Iterator[dict]:
        """Yield what is reported within `timeout` seconds; what is not taken is kept: several may come at once."""
        if not self._untaken and self._report >= 0 and select.select([self._report], [], [], max(0.0, timeout))[0]:
            data = os.read(self._report, 1 << 16)
            if not data:
                os.close(self._report)
                self._report = -1
            *self._untaken, self._rest = (self._rest + data).split(b"\n")
        while self._untaken:
            yield json.loads(self._untaken.pop(0))

    def fileno(self) -> int:
        return self._report

    @property
    def is_large(self) -> bool:
        """Return whether it may reach its limit of memory soon."""
        return self._memory > self.limits.memory_bytes // 2

    def look(self) -> None:
        """Note whether it has ended by itself, and end it if it is over a limit."""
        if self.ended is not None:
            return
        self._read(0)
        if self.ended is not None:
            return
        # Without a network namespace of its own its sockets are not told from those of others.
        sockets = socket_bytes(self._init) if self.place.isolation != "limits" else 0
        # The sockets leave less for the rest. Were that measured roughly up to the whole limit, shared pages that count
        # several times and the sockets could together pass a limit that the submission is far from.
        tree, seconds, memory = usage(self._init, self.limits.memory_bytes - sockets)
        memory += sockets
        self._memory = memory
        self._give_way(tree)
        self._note_waits()
        self._cpu, self._peak = max(self._cpu, seconds), max(self._peak, memory)
        if memory > self.limits.memory_bytes:
            self._bury("memory")
        elif seconds > self.limits.cpu_seconds:
            self._bury("cpu")
        elif time.monotonic() - self._started - self.waited > self.limits.wall_seconds:
            self._bury("wall")

    def _read(self, timeout: float) -> bool:
        """Note what init reports within `timeout` seconds. Return whether it has passed an interrupt on."""
        passed_on = False
        for message in self._messages(timeout):
            passed_on |= "interrupted" in message
            if "code" in message:
                self._cpu = max(self._cpu, message["cpu_seconds"])
                self._peak = max(self._peak, message["peak_bytes"])
                cpu = message["code"] in (-signal.SIGXCPU, -signal.SIGKILL) and self._cpu >= self.limits.cpu_seconds
                self._bury("cpu" if cpu else "exit", message["code"])
                return passed_on
        if self._report < 0:  # init was killed, which only the submission or a lack of memory can do
            self._bury("exit")
        return passed_on

    def _give_way(self, tree: dict[int, list[str]]) -> None:
        """Lower the priority of a crowd: Linux divides the processors among threads or sessions, not submissions."""
        known = {pid: threads(pid) for pid in tree}
        if (nice := _niceness(sum(at_work for each in known.values() for at_work in each.values()))) > self._nice:
            self._nice, self._lowered = nice, set()
        tasks = {task for each in known.values() for task in each} if self._nice else set()
        for task in tasks - self._lowered:
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, task, self._nice)
        self._lowered = tasks
        # Where Linux groups by session (sched(7), autogroups), the above only counts within a session.
        sessions = {fields[3]: pid for pid, fields in tree.items() if any(known[pid].values())}
        if (nice := _niceness(len(sessions))) > self._nice_session:
            self._nice_session, self._lowered_sessions = nice, set()
        for session in sessions.keys() - self._lowered_sessions if self._nice_session else ():
            try:
                with open(f"/proc/{sessions[session]}/autogroup", "w") as file:
                    file.write(str(self._nice_session))
                self._lowered_sessions.add(session)
            except BlockingIOError:  # Linux takes one in a tenth of a second
                break
            except OSError:  # it has ended, or Linux does not group
                continue

    def _note_waits(self) -> None:
        """Note how long the notebook has waited for a processor; children that it starts may wait for each other."""
        most = (1 - 1 / WIDE) * (time.monotonic() - self._started)
        self.waited = max(self.waited, min(most, sum(map(waited_seconds, self._kernel))))

    def interrupt(self) -> None:
        """Interrupt the program, and return once its process has the signal: a late one would strike the next cell."""
        if self.ended is None and self._init:
            os.kill(self._init, INTERRUPT)
            deadline = time.monotonic() + _INTERRUPT_SECONDS
            while self.ended is None and time.monotonic() < deadline:
                if self._read(deadline - time.monotonic()):
                    return

    def kill(self, reason: str = "killed") -> None:
        if self.ended is None:
            self._bury(reason)

    def _bury(self, reason: str, code: int | None = None) -> None:
        """End it without leaving a process or a file. `reason`: as in `zygote_client.Ended`."""
        if self._init:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._init, signal.SIGKILL)
        if self.place.isolation != "nested":
            _hunt(self.place)
        # Orphans become the zygote's children, so once no child is left to reap, no descendant is left.
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        if self._report >= 0:
            os.close(self._report)
            self._report = -1
        if self.place.isolation == "limits":
            _clear(self.place)
        self.ended = {
            "reason": reason,
            "code": code,
            "cpu_seconds": self._cpu,
            "peak_bytes": self._peak,
            "wall_seconds": time.monotonic() - self._started,
        }


def _niceness(crowd: int) -> int:
    """Return the nice value of each of so many, who from five on weigh less than one alone."""
    return min(19, 3 * max(0, crowd - _FEW))


def _hunt(place: Place) -> None:
    """Kill everything, daemons too, that a submission without a namespace of its own has left."""
    if place.isolation == "once":
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # everything inside bubblewrap but the zygote, at once
        return
    if place.uid is not None:
        hunter = os.fork()
        if hunter == 0:
            with contextlib.suppress(OSError):
                linux.become(place.uid)
                os.kill(-1, signal.SIGKILL)  # every process of that user
            os._exit(0)
        os.waitpid(hunter, 0)
        return
    for number in (signal.SIGSTOP, signal.SIGKILL):  # a stopped process starts no other
        known: set[int] = set()
        while left := set(descendants(os.getpid(), processes())) - known:
            known |= left
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)


def _clear(place: Place) -> None:
    """Remove a submission's folder, however deep, and what its user left where everybody may write."""
    commands = [["rm", "-rf", "--", str(place.root)]]
    if place.uid is not None:
        left = ["-maxdepth", "2", "-uid", str(place.uid), "-prune", "-exec", "rm", "-rf", "--", "{}", "+"]
        commands.append(["find", *_EVERYBODYS, *left])
    for command in commands:
        with contextlib.suppress(OSError):
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)


class Zygote:
    """The process itself: obeys the judge and looks after the submission that runs."""

    def __init__(self, channel: socket.socket, isolation: str, root: Path, uid: int | None) -> None:
        self._channel, self._isolation, self._root, self._uid = channel, isolation, root, uid
        self._submission: RunningSubmission | None = None
        self._started, self._pause = 0, TICK

    def serve(self) -> None:
        """Obey until the judge closes the socket or is gone. Nothing of the submission is left then."""
        try:
            while self._serve_once():
                pass
        except ConnectionError:  # the judge ended before it had its answer
            pass
        finally:
            if self._submission is not None:
                self._submission.kill()

    def _serve_once(self) -> bool:
        """Wait for a command or for the next look at the submission. Return False once the socket is closed."""
        running = self._submission if self._submission is not None and self._submission.ended is None else None
        waiting = [self._channel.fileno(), *([] if running is None else [running.fileno()])]
        ready = select.select(waiting, [], [], None if running is None else self._pause)[0]
        if running is not None:
            looked = time.monotonic()
            running.look()
            took = time.monotonic() - looked
            self._pause = max(_HASTE, took) if running.is_large else max(TICK, took / _LOOKING_SHARE)
        if self._channel.fileno() in ready:
            try:
                message, descriptors = receive(self._channel)
            except EOFError:
                return False
            try:
                answer = self._obey(message, descriptors)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            send(self._channel, answer)
        return True

    def _obey(self, message: dict, descriptors: list[int]) -> dict:
        operation, submission = message["op"], self._submission
        if operation == "start":
            if submission is not None and submission.ended is None:
                return {"error": "a submission is running"}
            return self._start(message, descriptors)
        if submission is None:
            return {"error": "nothing was started"}
        if operation == "interrupt":
            submission.interrupt()
            return {"ok": True}
        if operation == "kill":
            submission.kill(message["reason"])
        return {"ended": submission.ended} if submission.ended else {"running": True, "waited": submission.waited}

    def _start(self, message: dict, descriptors: list[int]) -> dict:
        limits = SubmissionLimits(**message["limits"])
        module, name = _PROGRAMS[message["program"]]
        program = getattr(importlib.import_module(module), name)
        self._started += 1
        root = self._root / str(self._started) if self._isolation == "limits" else self._root
        place = Place(self._isolation, root, self._uid, self._bystanders())
        reading, writing = os.pipe()
        payload, *channels = descriptors
        zygote = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            self._channel.close()
            launch(place, limits, payload, channels, program, writing, zygote)
        os.close(writing)
        self._submission = RunningSubmission(place, limits, reading, pid)
        problem = self._submission.wait_until_up()
        return {"ok": True} if problem is None else {"error": problem}

    def _bystanders(self) -> int:
        """Return how many tasks of other work by the same user the process limit counts."""
        if self._isolation == "nested":
            return 0
        user, count = self._uid if self._uid is not None else os.getuid(), 0
        for pid in processes():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{pid}").st_uid == user:
                    count += len(os.listdir(f"/proc/{pid}/task"))
        return count


def send(channel: socket.socket, message: dict, descriptors: Sequence[int] = ()) -> None:
    """Send one message, with copies of file descriptors."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    channel.sendmsg([json.dumps(message).encode()], rights)


def receive(channel: socket.socket) -> tuple[dict, list[int]]:
    """Return the next message and its descriptors. Raises EOFError once the other side has closed."""
    descriptors = array.array("i")
    data, ancillary, _, _ = channel.recvmsg(1 << 17, socket.CMSG_LEN(16 * descriptors.itemsize))
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
    if not data:
        raise EOFError
    return json.loads(data), list(descriptors)


def warm_kernel() -> None:
    """Import IPython's kernel, which every notebook needs."""
    sys.modules["debugpy"] = None  # type: ignore[assignment]  # skips a second of imports for a debugger nobody uses
    import ipykernel.debugger  # noqa: F401

    del sys.modules["debugpy"]
    for name in _KERNEL:
        importlib.import_module(name)


def warm_course() -> None:
    """Import what the course's notebooks import, and compile a kernel of each kind, which loads the compilers."""
    for name in _COURSE:
        importlib.import_module(name)
    for name in _USEFUL:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    _warm_outputs()
    _warm_compilers()


def _warm_outputs() -> None:
    from IPython.core.ultratb import AutoFormattedTB

    try:
        raise ValueError
    except ValueError:
        AutoFormattedTB(mode="Context").stb2text(AutoFormattedTB(mode="Context").structured_traceback(*sys.exc_info()))
    with contextlib.suppress(ImportError):
        from matplotlib.figure import Figure

        figure = Figure()
        figure.subplots().plot([0, 1], label="x")
        figure.savefig(io.BytesIO(), format="png")


def _warm_compilers() -> None:
    import numpy as np

    from warplab.dropin import choice

    cp, cuda = choice.load("cp"), choice.load("cuda")

    @cuda.jit
    def add_one(x, y, n):
        shared = cuda.shared.array(32, np.float32)
        i = cuda.grid(1)
        if i < n:
            shared[cuda.threadIdx.x] = x[i]
            y[i] = shared[cuda.threadIdx.x] * x[i] + 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = cuda.to_device(np.arange(32, dtype=np.float32))
        add_one[1, 32](x, cuda.device_array_like(x), 32)
    code = 'extern "C" __global__ void twice(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }'
    cp.RawModule(code=code).get_function("twice")((1,), (32,), (cp.asarray(np.ones(32, np.float32)), np.int32(32)))


def uncover_proc() -> None:
    """Unmount what bubblewrap, started by root, mounts over parts of /proc.

    With them in place Linux refuses to mount a new /proc in an inner namespace. The user that the zygote becomes next
    cannot write to those parts anyway.
    """
    for point in reversed(linux.mount_points()):
        if point.startswith("/proc/"):
            linux.unmount(point)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="zygote")
    parser.add_argument("isolation", choices=("nested", "once", "limits"))
    parser.add_argument("--socket", type=int)
    parser.add_argument("--root", type=Path, help="where submissions have their private folders")
    parser.add_argument("--try", action="store_true", dest="trial", help="only try whether the isolation works")
    parser.add_argument("--warmth", choices=WARMTHS, default="course", help="what to import in advance")
    parser.add_argument("--become", type=int, help="the zygote itself becomes this user")
    parser.add_argument("--uid", type=int, help="submissions become this user")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    os.umask(0o077)
    if options.become is not None:
        uncover_proc()
        linux.become(options.become)
    linux.no_new_privileges()
    if options.trial:
        return try_namespaces() if options.isolation == "nested" else 0
    linux.become_subreaper()
    channel = socket.socket(fileno=options.socket)
    channel.set_inheritable(False)
    if options.isolation != "limits":
        os.makedirs(os.environ["HOME"], exist_ok=True)
    if options.warmth != "nothing":
        warm_kernel()
    if options.warmth not in ("nothing", "kernel"):
        warm_course()
    for framework in FRAMEWORKS:
        if options.warmth == framework.warmth:
            framework.warm()
    # A garbage collection in a child would write to, and so copy, every page of these objects.
    gc.collect()
    gc.freeze()
    if options.isolation != "limits":
        linux.set_dumpable(False)
    threads = len(os.listdir("/proc/self/task"))
    send(channel, {"ready": True, "threads": threads, "seconds": time.monotonic() - began})
    Zygote(channel, options.isolation, options.root, options.uid).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
