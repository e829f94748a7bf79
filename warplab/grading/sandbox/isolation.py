"""Where a student's code runs: in bubblewrap's namespaces where bubblewrap works, under limits alone elsewhere.

    sandbox = find()                       # Bubblewrap or LimitsOnly; print(sandbox.describe())
    with Zygote(sandbox) as zygote:        # a warmed parent; one submission at a time
        zygote.start(files, limits, ...)   # usually through kernel_manager.SandboxedKernelManager

Sources: bwrap(1), user_namespaces(7), pid_namespaces(7), unix(7).
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from warplab.grading.sandbox.limits import Limits
from warplab.grading.sandbox.users import pooled_user
from warplab.grading.sandbox.zygote import receive, send
from warplab.paths import COURSE

SHOWN = ("warplab", "kernels")  # of the course; not its solutions, tests, submissions or gradebook

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "fonts", "localtime")
_PREFIX_PARTS = ("bin", "lib", "lib32", "lib64", "share", "etc", "nvvm", "targets", "pyvenv.cfg")

_START_SECONDS = 120.0
_ANSWER_SECONDS = 60.0

_TEXTS = {
    "exit": "the kernel ended by itself",
    "killed": "the grader ended the kernel",
    "wall": "the notebook took longer than {wall_seconds:g} seconds in all",
    "cpu": "the notebook used more than {cpu_seconds:g} seconds of processor time in all",
    "memory": "the notebook used more than {memory} MiB of memory",
    "output": "the notebook sent more than {traffic} MiB in all, or {message} MiB at once",
    "lost": "the processes of the notebook were lost",
}
_KILLED = "all processes of the kernel were killed at once, by itself or for want of memory"


class SandboxError(RuntimeError):
    """The sandbox itself failed: a failure of the grader, not of the student's code."""


@dataclass(frozen=True)
class Ended:
    """Why a submission's processes ended.

    `reason`: exit (by itself, with `code`: an exit status, or minus the signal; None if all its processes were killed
    at once), killed (by the grader), wall, cpu, memory or output (a limit), or lost (a failure of the sandbox). `text`
    may be shown to a student. Seconds; bytes.
    """

    reason: str
    text: str
    code: int | None = None
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    wall_seconds: float = 0.0

    @property
    def is_limit(self) -> bool:
        return self.reason in ("wall", "cpu", "memory", "output")

    @classmethod
    def of(cls, data: dict, limits: Limits) -> Ended:
        mebibytes = {name: getattr(limits, f"{name}_bytes") >> 20 for name in ("memory", "traffic", "message")}
        text = _TEXTS[data["reason"]].format(**limits.as_dict(), **mebibytes)
        code = data["code"]
        if data["reason"] == "exit" and code is None:
            text = _KILLED
        elif data["reason"] == "exit" and code < 0:
            with contextlib.suppress(ValueError):
                text = f"the kernel died of signal {signal.Signals(-code).name}"
        elif data["reason"] == "exit":
            text += f", with exit status {code}"
        return cls(text=text, **data)


class Sandbox:
    """How to start a zygote. `kind` is "bubblewrap" or "limits"; `isolation` as in `child.Place`."""

    kind: str
    isolation: str

    def describe(self) -> str:
        raise NotImplementedError

    def command(self, descriptor: int, scratch: Path, user: int | None, disk_bytes: int) -> list[str]:
        """The command that starts a zygote on the socket `descriptor`; for bubblewrap, inside it."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """All of a zygote's environment."""
        raise NotImplementedError


def _environment(course: Path, home: str, temporary: str) -> dict[str, str]:
    packages = [entry for entry in sys.path if _holds_packages(entry)]  # also those of a user's own folder
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": temporary,
        "USER": "student",
        "LOGNAME": "student",
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join([str(course), *packages]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "WARPLAB_BACKEND": "simulator",
        # One thread: a submission must not take the cores of the others, and a zygote that has threads cannot fork.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
    }


def _zygote(descriptor: int, isolation: str, root: str) -> list[str]:
    module = ["-P", "-m", "warplab.grading.sandbox.zygote"]
    return [sys.executable, *module, isolation, "--socket", str(descriptor), "--root", root]


class Bubblewrap(Sandbox):
    """Bubblewrap's namespaces around the zygote, and inner ones around each submission where Linux grants them."""

    kind = "bubblewrap"

    def __init__(self, program: str, isolation: str = "nested", course: Path = COURSE) -> None:
        self.program, self.isolation, self._course = program, isolation, course

    def describe(self) -> str:
        each = "its own namespaces" if self.isolation == "nested" else "a bubblewrap of its own"
        return (
            f"Submissions run in bubblewrap, each in {each}: no network, a private /tmp of limited size, everything "
            "else read-only, no sight of other processes, of other submissions, of solutions, tests or the gradebook, "
            "an empty environment, an unprivileged user, and limits on time, memory, processes and files."
        )

    def environment(self) -> dict[str, str]:
        environment = _environment(Path("/course"), "/tmp/home", "/tmp")
        for name in ("PATH", "PYTHONPATH"):
            environment[name] = os.pathsep.join(map(_inside, environment[name].split(os.pathsep)))
        return {**environment, "NUMBA_CACHE_DIR": "/tmp/numba"}

    def command(self, descriptor: int, scratch: Path, user: int | None, disk_bytes: int) -> list[str]:
        zygote = _zygote(descriptor, self.isolation, "/tmp")
        zygote[0] = _inside(zygote[0])
        if user is not None:
            zygote += ["--become", str(user)]
        return [*self.wrapped(user is not None, disk_bytes), "--", *zygote]

    def wrapped(self, as_root: bool, disk_bytes: int) -> list[str]:
        """bwrap and its options, up to the command."""
        arguments = [self.program, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
        arguments += ["--unshare-cgroup-try", "--new-session"]
        # Linux tells a child of its parent's end when the thread that started it ends. The zygote also ends with its
        # socket, so a thread that does not live as long loses nothing.
        if threading.current_thread() is threading.main_thread():
            arguments += ["--die-with-parent"]
        if as_root:
            # To become the pooled user, and to uncover /proc (see zygote.uncover_proc) before that.
            arguments += ["--cap-drop", "ALL"]
            for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SYS_ADMIN"):
                arguments += ["--cap-add", capability]
        else:
            arguments += ["--unshare-user"]
        arguments += ["--clearenv"]
        for name, value in self.environment().items():
            arguments += ["--setenv", name, value]
        arguments += self._mounts()
        arguments += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--remount-ro", "/"]
        shared = disk_bytes // 4
        for size, folder in ((shared, "/dev/shm"), (disk_bytes - shared, "/tmp")):
            arguments += ["--perms", "1777", "--size", str(size), "--tmpfs", folder]
        return [*arguments, "--chdir", "/tmp"]

    def _mounts(self) -> list[str]:
        arguments: list[str] = ["--dir", "/tmp"]
        for path in _SYSTEM:
            if os.path.islink(path):
                arguments += ["--symlink", os.readlink(path), path]
            elif os.path.isdir(path):
                arguments += ["--ro-bind", path, path]
        paths = interpreter_paths()
        # Bubblewrap would make the folders on the way for their owner only.
        for folder in sorted(
            {str(parent) for path in (*map(_inside, paths), "/course/x", "/etc/x") for parent in Path(path).parents}
            - {"/"}
        ):
            arguments += ["--perms", "0755", "--dir", folder]
        for name in _ETC:
            arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        for path in paths:
            arguments += ["--ro-bind", path, _inside(path)]
        for name in SHOWN:
            if (self._course / name).is_dir():
                arguments += ["--ro-bind", str(self._course / name), f"/course/{name}"]
        return arguments


class LimitsOnly(Sandbox):
    """No bubblewrap: processes under limits, nothing hidden. `why`: what was missing, in words."""

    kind = "limits"
    isolation = "limits"

    def __init__(self, why: str = "bubblewrap was not asked for") -> None:
        self.why = why

    def describe(self) -> str:
        return (
            f"NOT SANDBOXED ({self.why}). Submissions run under limits on time, memory, processes and the size of "
            "each file, and that is all. They can use the network and read whatever the user who grades can read: "
            "solutions, hidden tests, other submissions, the gradebook. "
            + (
                "They can fill the disk through folders that every user may write, such as /tmp."
                if os.geteuid() == 0
                else "They can change and delete what that user can, fill the disk, and signal or trace that user's "
                "other processes, the grader among them."
            )
            + " Install bubblewrap (Debian, Ubuntu: sudo apt install bubblewrap) for grading that can be trusted."
        )

    def environment(self) -> dict[str, str]:
        return _environment(COURSE, "/nonexistent", tempfile.gettempdir())

    def command(self, descriptor: int, scratch: Path, user: int | None, disk_bytes: int) -> list[str]:
        command = _zygote(descriptor, self.isolation, str(scratch))
        return command if user is None else [*command, "--uid", str(user)]


def interpreter_paths() -> list[str]:
    """Files and folders of this Python, its packages, and the symlinks on the way to its executable, sorted.

    Folders that the system's own (/usr and so on) contain are left out. Of a prefix only the parts that programs and
    libraries are in: around them may lie a user's other files, such as the course.
    """
    found: dict[str, None] = {}

    def add(path: str) -> None:
        if os.path.exists(path) and not _within(path, (*_SYSTEM, *found)):
            found[path] = None

    for prefix in (sys.base_prefix, os.path.realpath(sys.base_prefix), sys.prefix, os.path.realpath(sys.prefix)):
        for part in _PREFIX_PARTS:
            add(os.path.join(prefix, part))
    step = sys.executable
    while os.path.islink(step):
        step = os.path.normpath(os.path.join(os.path.dirname(step), os.readlink(step)))
        add(step)
    for entry in sys.path:
        if _holds_packages(entry):
            add(entry)
    return sorted(found)


def _inside(path: str) -> str:
    """Where a path of this machine is in the sandbox: what lies in /tmp, which is private there, is elsewhere."""
    return f"/outside{path}" if _within(path, ("/tmp",)) else path


def _holds_packages(entry: str) -> bool:
    return os.path.basename(entry) in ("site-packages", "dist-packages") and os.path.isdir(entry)


def _within(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


@functools.lru_cache(maxsize=1)
def find() -> Sandbox:
    """The best sandbox that works here, tried out. LimitsOnly says why it is not Bubblewrap."""
    program = shutil.which("bwrap")
    if program is None:
        return LimitsOnly("bubblewrap is not installed")
    problem = ""
    for isolation in ("nested", "once"):
        sandbox = Bubblewrap(program, isolation)
        problem = try_out(sandbox)
        if not problem:
            return sandbox
    return LimitsOnly(f"bubblewrap does not work here: {problem}")


def try_out(sandbox: Bubblewrap) -> str:
    """Empty where bubblewrap, and the inner namespaces if `sandbox` uses them, work; otherwise what went wrong."""
    with pooled_user() as user:
        as_root = user is not None
        wrapped = sandbox.wrapped(as_root, 1 << 20)
        command = [
            *wrapped,
            "--",
            _inside(sys.executable),
            "-P",
            "-m",
            "warplab.grading.sandbox.zygote",
            "--try",
            sandbox.isolation,
        ]
        command += ["--become", str(user)] if as_root else []
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env={}, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    return "" if ran.returncode == 0 else (ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"])[-1]


class Zygote:
    """The judge's handle of a warmed, sandboxed parent process, which runs one submission at a time.

    Raises SandboxError where it does not start. `warm_seconds`: what its imports took. `used`: submissions started.
    """

    def __init__(self, sandbox: Sandbox | None = None, warmed: bool = True, disk_bytes: int | None = None) -> None:
        """`warmed`: import what notebooks need; otherwise each submission does so itself, by and by.

        `disk_bytes`: the disk limit of the one submission of a sandbox whose `isolation` is "once".
        """
        self.sandbox = sandbox or find()
        self._disk_bytes = disk_bytes or Limits().disk_bytes
        self._warmed = warmed
        self.used = 0
        self._limits = Limits()
        self._broken = False
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()
        try:
            self._start_process()
        except BaseException:
            self.close()
            raise

    def _start_process(self) -> None:
        user = self._stack.enter_context(pooled_user())
        scratch = Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="warplab-", ignore_cleanup_errors=True))
        )
        scratch.chmod(0o711)  # the pooled user passes through
        self._errors = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel = self._stack.enter_context(ours)
        with theirs:
            self._process = subprocess.Popen(
                self.sandbox.command(theirs.fileno(), scratch, user, self._disk_bytes)
                + ["--cold"] * (not self._warmed),
                pass_fds=[theirs.fileno()],
                env=self.sandbox.environment(),
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                start_new_session=True,
            )
        ready = self._receive(_START_SECONDS)
        if ready.get("threads") != 1:
            raise SandboxError(f"the zygote has {ready.get('threads')} threads, and so cannot fork safely: {ready}")
        self.warm_seconds: float = ready["seconds"]

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process that was started: bubblewrap, or the zygote itself."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None and not self._broken

    @property
    def fresh(self) -> bool:
        """May it take another submission?"""
        return self.alive and not (self.used and self.sandbox.isolation == "once")

    def start(
        self,
        files: dict[str, bytes],
        limits: Limits,
        header: dict | None = None,
        descriptors: Iterable[int] = (),
        program: str = "kernel",
    ) -> None:
        """Start a submission: `files` by relative path go to its working folder, `header` and copies of `descriptors`
        to the program. Raises ValueError for a path that leads elsewhere and for files that fill the submission's disk,
        SandboxError where it does not start.
        """
        if sum(map(len, files.values())) > limits.disk_bytes // 2:
            raise ValueError(f"the submission's files take more than half of its {limits.disk_bytes >> 20} MiB of disk")
        for name in files:
            if not name or "\0" in name or os.path.isabs(name) or ".." in Path(name).parts:
                raise ValueError(f"a submission's file must have a relative path without '..', got {name!r}")
        self._limits = limits
        self.used += 1
        head = json.dumps({**(header or {}), "files": [[name, len(data)] for name, data in files.items()]}).encode()
        with tempfile.TemporaryFile() as payload:
            payload.write(len(head).to_bytes(8, "big") + head)
            for data in files.values():
                payload.write(data)
            payload.flush()
            message = {"op": "start", "program": program, "limits": limits.as_dict()}
            answer = self._ask(message, [payload.fileno(), *descriptors])
        if "error" in answer:
            raise SandboxError(f"a submission could not be started: {answer['error']}")

    def status(self) -> Ended | None:
        """None while the submission runs."""
        return self._ended({"op": "status"})

    def interrupt(self) -> None:
        """As Ctrl-C in a notebook; a student's code may ignore it."""
        self._ask({"op": "interrupt"})

    def kill(self, reason: str = "killed") -> Ended:
        """End the submission, if it has not ended yet. When this returns, none of its processes is left."""
        ended = self._ended({"op": "kill", "reason": reason})
        assert ended is not None
        return ended

    def close(self) -> None:
        """End the zygote and all that it started."""
        if hasattr(self, "_channel"):
            self._channel.close()
        if hasattr(self, "_process"):
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._stack.close()

    def _ended(self, message: dict) -> Ended | None:
        try:
            answer = self._ask(message)
        except SandboxError:
            if self.sandbox.isolation != "nested" and self.used:
                return Ended("exit", _KILLED)  # its processes could reach the zygote
            return Ended("lost", _TEXTS["lost"])
        return Ended.of(answer["ended"], self._limits) if "ended" in answer else None

    def _ask(self, message: dict, descriptors: list[int] = ()) -> dict:
        with self._lock:
            self._broken, broken = True, self._broken  # until it has answered
            if broken:
                raise SandboxError("the zygote is gone")
            try:
                send(self._channel, message, descriptors)
            except OSError as error:
                raise SandboxError(f"the zygote is gone ({error})") from error
            answer = self._receive(_ANSWER_SECONDS)
            self._broken = False
            return answer

    def _receive(self, seconds: float) -> dict:
        try:
            if not select.select([self._channel], [], [], seconds)[0]:
                raise SandboxError(f"the zygote did not answer within {seconds:g} s{self._last_words()}")
            return receive(self._channel)[0]
        except (OSError, EOFError, ValueError) as error:
            time.sleep(0.05)  # its last words may be on their way
            raise SandboxError(f"the zygote ended{self._last_words()}") from error

    def _last_words(self) -> str:
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 2000))
        text = self._errors.read().decode(errors="replace").strip()
        return f": {text}" if text else ""
