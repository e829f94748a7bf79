"""The warmed parent of all submissions' kernels: it imports once what every notebook needs, then forks.

    python -m warplab.grading.sandbox.zygote ISOLATION --socket DESCRIPTOR --root FOLDER [--become UID | --uid UID]

It runs inside the sandbox, holds no secret, has one thread, and takes one submission at a time. Commands come from the
judge as JSON over the socket, one a message (SOCK_SEQPACKET), and each gets one answer:

    start      {"program", "limits"} and descriptors: the payload, then the kernel's sockets    {"ok": true}
    status                                                                    {"running": true} or {"ended": {...}}
    interrupt                                                                                   {"ok": true}
    kill       {"reason"}                                                                       {"ended": {...}}

The payload holds the student's files, which the zygote does not read: what it read could be found in its memory by the
next student. When the socket closes, the zygote kills what runs and ends.
"""

from __future__ import annotations

import argparse
import array
import contextlib
import gc
import importlib
import io
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
import warnings
from pathlib import Path

from warplab.grading.sandbox import linux
from warplab.grading.sandbox.child import INTERRUPT, Place, launch, try_namespaces
from warplab.grading.sandbox.limits import Limits

TICK = 0.1  # seconds between two looks at a submission's CPU time and memory, or longer where looking takes long
_LOOKING_SHARE = 0.05  # of the time
_CROWD = 8  # processes of a submission; with more, all of them give way to other submissions
_START_SECONDS = 30.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
_JIFFY = os.sysconf("SC_CLK_TCK")
_PROGRAMS = {
    "kernel": ("warplab.grading.student.kernel_app", "run"),
    "probe": ("warplab.grading.sandbox.preflight", "probe"),
}

_NEEDED = (
    "numpy",
    "numba.cuda",
    "IPython",
    "ipykernel.ipkernel",
    "warplab.grading.student.kernel_app",
    "warplab.launch.simulate",
)
_USEFUL = (
    "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
    "warplab.checks",
    "warplab.draw.grid",
    "warplab.draw.heat_map",
    "warplab.draw.roofline",
    "warplab.dropin.magic",
    "warplab.launch.profiling",
    "warplab.estimate.roofline",
    "warplab.grading.student.agent",
)


class Submission:
    """One submission's tree of processes. `ended` is None while it runs."""

    def __init__(self, place: Place, limits: Limits, report: int, forked: int) -> None:
        self.place, self.limits = place, limits
        self.ended: dict | None = None
        self._report, self._forked, self._init = report, forked, 0
        self._started, self._rest = time.monotonic(), b""
        self._cpu, self._peak = 0.0, 0
        self._reniced: set[int] = set()

    def wait_until_up(self) -> str | None:
        """None once the program is ready for the student's code; otherwise why it is not."""
        deadline = time.monotonic() + _START_SECONDS
        problem = f"it was not ready after {_START_SECONDS:g} s"
        while time.monotonic() < deadline:
            for message in self._messages(deadline - time.monotonic()):
                if "init" in message and not self._init:
                    self._init = message["init"]
                    if self._init != self._forked:
                        os.waitpid(self._forked, 0)
                elif "ready" in message:
                    return None
                elif "error" in message or "code" in message:
                    self._bury("lost")
                    return message.get("error") or f"its program ended with {message['code']}"
            if self._report < 0:
                problem = "its first process ended"
                break
        self._bury("lost")
        return problem

    def _messages(self, timeout: float) -> list[dict]:
        if self._report < 0 or not select.select([self._report], [], [], max(0.0, timeout))[0]:
            return []
        data = os.read(self._report, 1 << 16)
        if not data:
            os.close(self._report)
            self._report = -1
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def fileno(self) -> int:
        return self._report

    def look(self) -> None:
        """Has it ended by itself, or used up what it may?"""
        if self.ended is not None:
            return
        for message in self._messages(0):
            if "code" in message:
                self._cpu = max(self._cpu, message["cpu_seconds"])
                self._peak = max(self._peak, message["peak_bytes"])
                cpu = message["code"] in (-signal.SIGXCPU, -signal.SIGKILL) and self._cpu >= self.limits.cpu_seconds
                return self._bury("cpu" if cpu else "exit", message["code"])
        if self._report < 0:  # init was killed, which only the submission or a lack of memory can do
            return self._bury("exit")
        tree, cpu, memory = usage(self._init, self.limits.memory_bytes)
        self._give_way(tree)
        self._cpu, self._peak = max(self._cpu, cpu), max(self._peak, memory)
        if memory > self.limits.memory_bytes:
            self._bury("memory")
        elif cpu > self.limits.cpu_seconds:
            self._bury("cpu")
        elif time.monotonic() - self._started > self.limits.wall_seconds:
            self._bury("wall")
        return None

    def _give_way(self, tree: list[int]) -> None:
        """Linux shares the processors among processes, so a fork bomb would leave the others' notebooks nearly none."""
        if len(tree) > _CROWD:
            for pid in set(tree) - self._reniced:
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, pid, 19)
        self._reniced = set(tree) if len(tree) > _CROWD else set()

    def interrupt(self) -> None:
        if self.ended is None and self._init:
            os.kill(self._init, INTERRUPT)

    def kill(self, reason: str = "killed") -> None:
        if self.ended is None:
            self._bury(reason)

    def _bury(self, reason: str, code: int | None = None) -> None:
        """Leave no process and no file of it. The reasons are those of `sandbox.Ended`."""
        if self._init:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._init, signal.SIGKILL)
        if self.place.isolation != "nested":
            _hunt(self.place)
        # With the last of the descendants reaped, none is left: orphans become the zygote's children.
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        if self._report >= 0:
            os.close(self._report)
            self._report = -1
        if self.place.isolation == "limits":
            shutil.rmtree(self.place.root, ignore_errors=True)
        self.ended = {
            "reason": reason,
            "code": code,
            "cpu_seconds": self._cpu,
            "peak_bytes": self._peak,
            "wall_seconds": time.monotonic() - self._started,
        }


def _processes() -> dict[int, list[str]]:
    """pid -> the fields of /proc/PID/stat that follow the command: state, parent, ..."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                found[int(entry)] = Path(f"/proc/{entry}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return found


def descendants(of: int, processes: dict[int, list[str]]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, fields in processes.items():
        children.setdefault(int(fields[1]), []).append(pid)
    found = list(children.get(of, ()))
    for pid in found:
        found += children.get(pid, ())
    return found


def usage(init: int, enough: int) -> tuple[list[int], float, int]:
    """The processes of init's tree, the CPU seconds and the bytes of memory that they use.

    Shared pages are divided among their users only where the sum of all that is resident, which is quick to find, is
    more than `enough`.
    """
    processes = _processes()
    tree = descendants(init, processes)
    times = (int(time_) for pid in {init, *tree} & processes.keys() for time_ in processes[pid][11:15])
    resident = sum(max(0, int(processes[pid][21])) * _PAGE for pid in tree)
    if resident > enough:
        resident = sum(_proportional_bytes(pid, int(processes[pid][21]) * _PAGE) for pid in tree)
    return tree, sum(times) / _JIFFY, resident


def _proportional_bytes(pid: int, resident: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # a process that hides its maps counts in full
        return resident
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), resident)


def _hunt(place: Place) -> None:
    """Kill all that a submission without a namespace of its own has left, daemons too."""
    if place.isolation == "once":
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # all that bubblewrap holds but the zygote, at one stroke
        return
    if place.uid is not None:
        hunter = os.fork()
        if hunter == 0:
            with contextlib.suppress(OSError):
                linux.become(place.uid)
                os.kill(-1, signal.SIGKILL)  # all of that user
            os._exit(0)
        os.waitpid(hunter, 0)
        return
    for number in (signal.SIGSTOP, signal.SIGKILL):  # what is stopped starts nothing new
        known: set[int] = set()
        while left := set(descendants(os.getpid(), _processes())) - known:
            known |= left
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)


class Zygote:
    def __init__(self, channel: socket.socket, isolation: str, root: Path, uid: int | None) -> None:
        self._channel, self._isolation, self._root, self._uid = channel, isolation, root, uid
        self._submission: Submission | None = None
        self._started = 0

    def serve(self) -> None:
        pause = TICK
        while True:
            running = self._submission is not None and self._submission.ended is None
            waiting = [self._channel, *([self._submission] if running else [])]
            ready = select.select(waiting, [], [], pause if running else None)[0]
            if running:
                looked = time.monotonic()
                self._submission.look()
                pause = max(TICK, (time.monotonic() - looked) / _LOOKING_SHARE)
            if self._channel in ready:
                try:
                    message, descriptors = receive(self._channel)
                except EOFError:
                    break
                try:
                    answer = self._obey(message, descriptors)
                finally:
                    for descriptor in descriptors:
                        os.close(descriptor)
                send(self._channel, answer)
        if self._submission is not None:
            self._submission.kill()

    def _obey(self, message: dict, descriptors: list[int]) -> dict:
        match message["op"], self._submission:
            case "start", submission if submission is None or submission.ended is not None:
                return self._start(message, descriptors)
            case "start", _:
                return {"error": "a submission is running"}
            case _, None:
                return {"error": "nothing was started"}
            case "interrupt", submission:
                submission.interrupt()
                return {"ok": True}
            case "kill", submission:
                submission.kill(message["reason"])
        return {"ended": self._submission.ended} if self._submission.ended else {"running": True}

    def _start(self, message: dict, descriptors: list[int]) -> dict:
        limits = Limits(**message["limits"])
        module, name = _PROGRAMS[message["program"]]
        program = getattr(importlib.import_module(module), name)
        self._started += 1
        root = self._root / str(self._started) if self._isolation == "limits" else self._root
        place = Place(self._isolation, root, self._uid, self._bystanders())
        reading, writing = os.pipe()
        payload, *channels = descriptors
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            self._channel.close()
            launch(place, limits, payload, channels, program, writing)
        os.close(writing)
        self._submission = Submission(place, limits, reading, pid)
        problem = self._submission.wait_until_up()
        return {"ok": True} if problem is None else {"error": problem}

    def _bystanders(self) -> int:
        """Tasks of the submission's user that are not the submission's and that the process limit counts."""
        if self._isolation == "nested":
            return 0
        user, count = self._uid if self._uid is not None else os.getuid(), 0
        for pid in _processes():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{pid}").st_uid == user:
                    count += len(os.listdir(f"/proc/{pid}/task"))
        return count


def send(channel: socket.socket, message: dict, descriptors: list[int] = ()) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    channel.sendmsg([json.dumps(message).encode()], rights)


def receive(channel: socket.socket) -> tuple[dict, list[int]]:
    """Raises EOFError when the other side has closed, TimeoutError as the socket is set to."""
    descriptors = array.array("i")
    data, ancillary, _, _ = channel.recvmsg(1 << 17, socket.CMSG_LEN(16 * descriptors.itemsize))
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
    if not data:
        raise EOFError
    return json.loads(data), list(descriptors)


def warm() -> None:
    """Import what notebooks import, and compile a kernel of each kind, so that the compilers are loaded and typed."""
    sys.modules["debugpy"] = None  # a second of imports, for a debugger that nobody will use
    import ipykernel.debugger  # noqa: F401

    del sys.modules["debugpy"]
    for name in _NEEDED:
        importlib.import_module(name)
    for name in _USEFUL:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    _warm_outputs()
    _warm_compilers()
    # A collection in a child would touch, and so copy, every page of what is here.
    gc.collect()
    gc.freeze()


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
    """Take away what bubblewrap, started by root, mounts over parts of /proc: with it Linux lets no one mount a new
    /proc in an inner namespace. They are not writable for the user that the zygote becomes next.
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
    parser.add_argument("--cold", action="store_true", help="import nothing in advance")
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
    if not options.cold:
        warm()
    if options.isolation != "limits":
        linux.set_dumpable(False)
    threads = len(os.listdir("/proc/self/task"))
    send(channel, {"ready": True, "threads": threads, "seconds": time.monotonic() - began})
    Zygote(channel, options.isolation, options.root, options.uid).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
