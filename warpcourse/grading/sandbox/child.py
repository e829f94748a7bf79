"""From the warmed zygote to a student's kernel: everything between the fork and the first cell.

    zygote ── M: enters new namespaces, forks, ends
                └─ init, their pid 1: mounts, unpacks the submission's files, drops capabilities; then reaps and reports
                     └─ the kernel: sets limits, filters system calls, then runs the student's code

Init and the kernel run as the same user. Therefore init is not dumpable (no tracing), takes no signal, and reports
through a pipe that the kernel does not have. When init ends, Linux kills everything left in the namespace. Without
namespaces there is no M, and the zygote hunts down what is left.
"""

import contextlib
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from warpcourse.grading.sandbox import linux
from warpcourse.grading.sandbox.limits import SubmissionLimits

# The zygote sends this to init, which sends SIGINT to the kernel.
INTERRUPT = signal.SIGUSR1
INNER_UID = 1000
_NAMESPACES = (
    linux.CLONE_NEWUSER
    | linux.CLONE_NEWNS
    | linux.CLONE_NEWPID
    | linux.CLONE_NEWIPC
    | linux.CLONE_NEWNET
    | linux.CLONE_NEWUTS
)


@dataclass(frozen=True)
class Place:
    """Where and how a submission runs.

    `isolation`: "nested" (namespaces of its own inside bubblewrap's), "once" (bubblewrap's namespaces, which serve one
    submission) or "limits" (no namespaces). `root`: its private folder. `uid`: the user to become first, or None.
    `bystanders`: tasks of that user that belong to other work.
    """

    isolation: str
    root: Path
    uid: int | None = None
    bystanders: int = 0

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def home(self) -> Path:
        return self.root / "home"


def launch(
    place: Place,
    limits: SubmissionLimits,
    payload: int,
    channels: list[int],
    program: Callable,
    report: int,
    zygote: int,
) -> None:
    """Become a submission's processes, in a fresh fork of the zygote. Never returns.

    `payload`, `channels`, `report`: file descriptors. `zygote`: its process, whose end is the submission's.
    `program(header, channels, ready)` runs in the sandbox and must call `ready` before any code of the student's runs.
    """
    try:
        if place.isolation == "nested":
            _enter_namespaces()
            init = os.fork()
            if init:
                _write(report, {"init": init})
                os._exit(0)
        else:
            _write(report, {"init": os.getpid()})
        _init(place, limits, payload, channels, program, report, zygote)
    except BaseException:
        _write(report, {"error": traceback.format_exc()})
    os._exit(70)


def try_namespaces() -> int:
    """Return 0 if inner namespaces with their own mounts work. Otherwise raise OSError or have a child print why."""
    _enter_namespaces()
    init = os.fork()
    if init == 0:
        try:
            _mount(Place("nested", Path("/tmp")), SubmissionLimits(disk_bytes=1 << 20))
            os._exit(0)
        except OSError as error:
            print(error, file=sys.stderr)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(init, 0)[1])


def _enter_namespaces() -> None:
    uid, gid = os.getuid(), os.getgid()
    linux.set_dumpable(True)  # otherwise /proc/self belongs to root
    linux.unshare(_NAMESPACES)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{INNER_UID} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{INNER_UID} {gid} 1")


def _init(
    place: Place,
    limits: SubmissionLimits,
    payload: int,
    channels: list[int],
    program: Callable,
    report: int,
    zygote: int,
) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    linux.set_dumpable(False)
    os.setsid()
    if place.isolation == "nested":
        _mount(place, limits)
    else:
        linux.become_subreaper()
    if place.uid is not None:
        _become(place.uid, place.root)
    if place.isolation != "nested":
        linux.die_with_parent(zygote)  # not before: Linux forgets it when a process becomes another user
    for folder in (place.work, place.home):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    header = _unpack(payload, place.work)
    os.close(payload)
    if place.isolation == "nested" or place.uid is None:
        linux.drop_capabilities()
    linux.no_new_privileges()
    linux.leave_session_keyring()

    init = os.getpid()
    kernel = os.fork()
    if kernel == 0:
        _kernel(place, limits, header, channels, program, report, init)
    for channel in channels:
        os.close(channel)
    _watch(kernel, report)


def _mount(place: Place, limits: SubmissionLimits) -> None:
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    size = f"size={limits.disk_bytes},nr_inodes=20000,mode=700"
    linux.mount("tmpfs", "/tmp", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, size)
    os.mkdir("/tmp/shm", 0o700)
    linux.mount("/tmp/shm", "/dev/shm", None, linux.MS_BIND)
    with contextlib.suppress(OSError):
        linux.raise_loopback()
    for kind in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"):
        with contextlib.suppress(OSError):
            Path(f"/proc/sys/user/max_{kind}_namespaces").write_text("0")


def _become(uid: int, root: Path) -> None:
    """Stop being root. If only root can read the interpreter's files, the right to read everything stays."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chown(root, uid, uid)
    linux.become(uid, keep=(linux.CAP_DAC_READ_SEARCH,))
    linux.set_dumpable(False)
    if interpreter_is_readable():
        linux.drop_capabilities()


def interpreter_is_readable() -> bool:
    """Return whether this process's real user, without capabilities, can read this Python and its packages."""
    needed = (os.__file__, sys.prefix, *(folder for folder in sys.path if os.path.isdir(folder)))
    return all(os.access(path, os.R_OK) for path in needed)


def _unpack(payload: int, folder: Path) -> dict:
    """Write the submission's files. They follow a JSON header, which is returned, with their paths and sizes."""
    with os.fdopen(os.dup(payload), "rb") as file:
        file.seek(0)
        header = json.loads(file.read(int.from_bytes(file.read(8), "big")))
        for name, size in header["files"]:
            path = folder / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(file.read(size))
    return header


def _watch(kernel: int, report: int) -> None:
    """Act as pid 1: reap, pass interrupts on, report how the kernel ended. Returning ends the whole namespace."""
    while True:
        got = signal.sigwait({signal.SIGCHLD, INTERRUPT})
        if got == INTERRUPT:
            with contextlib.suppress(ProcessLookupError):
                os.kill(kernel, signal.SIGINT)
            _write(report, {"interrupted": True})
            continue
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid == kernel:
                code = os.waitstatus_to_exitcode(status)
                seconds = usage.ru_utime + usage.ru_stime
                _write(report, {"code": code, "cpu_seconds": seconds, "peak_bytes": usage.ru_maxrss * 1024})
                os._exit(0)


def _kernel(
    place: Place, limits: SubmissionLimits, header: dict, channels: list[int], program: Callable, report: int, init: int
) -> None:
    """Run the program. Until it calls `ready`, the working folder holds none of the student's files."""

    def ready() -> None:
        _write(report, {"ready": True})
        os.close(report)
        os.chdir(place.work)

    try:
        os.setsid()
        linux.set_dumpable(True)
        if place.isolation != "nested":
            linux.die_with_parent(init)
        os.environ.update(HOME=str(place.home), TMPDIR=str(place.root))
        tempfile.tempdir = None  # forget the zygote's
        sys.argv = ["kernel"]
        os.chdir(place.home)
        _keep_only([*channels, report])
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
        if linux.can_filter():
            linux.filter_system_calls()
        limits.apply(place.bystanders)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
        program(header, channels, ready)
    except SystemExit as error:
        os._exit(error.code if isinstance(error.code, int) else int(error.code is not None))
    except BaseException:
        _write(report, {"error": traceback.format_exc()})  # goes nowhere once `ready` has been called
        os._exit(70)
    os._exit(0)


def _keep_only(wanted: list[int]) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    for entry in os.listdir("/proc/self/fd"):
        number = int(entry)
        if number > 2 and number not in wanted:
            with contextlib.suppress(OSError):
                os.close(number)


def _write(report: int, message: dict) -> None:
    with contextlib.suppress(OSError):
        os.write(report, json.dumps(message).encode() + b"\n")
