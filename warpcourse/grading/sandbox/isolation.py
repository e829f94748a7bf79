"""Kinds of isolation: bubblewrap's namespaces where bubblewrap works, limits alone elsewhere.

    sandbox = find()                     # Bubblewrap or LimitsOnly; print(sandbox.describe())
    with ZygoteClient(sandbox) as ...    # starts a process in it, see zygote_client

WARPLAB_SANDBOX=limits: as if bubblewrap were not installed. WARPLAB_SUBMISSIONS_READ=all: also where they can then read
every file.

Sources: bwrap(1), user_namespaces(7), pid_namespaces(7), unix(7).
"""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

from warpcourse.grading.frameworks import FRAMEWORKS
from warpcourse.grading.sandbox.users import POOL, pooled_user
from warpcourse.paths import COURSE

SWITCH = "WARPLAB_SANDBOX"
READS = "WARPLAB_SUBMISSIONS_READ"
# Folders of the course that a submission sees: not solutions, tests, submissions or the gradebook.
SHOWN = ("warplab", "warpcourse", "kernels")

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "fonts", "localtime")
# A relative path of the interpreter leaves ".." in it, which the sandbox, where that path is another, would resolve.
_PYTHON = os.path.abspath(sys.executable)
_PREFIX_PARTS = ("bin", "lib", "lib32", "lib64", "share", "etc", "nvvm", "targets", "pyvenv.cfg")


class Sandbox:
    """A way to start a zygote. `kind` is "bubblewrap" or "limits"; `isolation` is as in `child.Place`."""

    kind: str
    isolation: str

    def describe(self) -> str:
        """Return what it protects, and what it does not, for the instructor."""
        raise NotImplementedError

    def refusal(self) -> str:
        """Return why no submission runs in it, and what to do; "" if they may."""
        return ""

    def command(self, descriptor: int, scratch: Path, user: int | None, disk_bytes: int) -> list[str]:
        """Return the command that starts a zygote on the socket `descriptor`, inside the sandbox.

        `scratch`: folder for private folders of submissions, where there is no private /tmp. `user`: the pooled user.
        """
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Return a zygote's complete environment."""
        raise NotImplementedError


def _environment(course: Path, home: str, temporary: str) -> dict[str, str]:
    packages = [entry for entry in sys.path if _holds_packages(entry)]  # the user's own folder too
    return {
        "PATH": f"{Path(_PYTHON).parent}:/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": temporary,
        "USER": "student",
        "LOGNAME": "student",
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join([str(course), *packages]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "WARPLAB_BACKEND": "simulator",
        "WARPLAB_KEEP_CODE": "no",  # machine code from one submission to the next
        # One thread: a submission must not take the cores of the others, and a zygote with threads cannot fork.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
        "CUDA_VISIBLE_DEVICES": "-1",
        **{name: value for framework in FRAMEWORKS for name, value in framework.environment.items()},
    }


def _zygote(descriptor: int, isolation: str, root: str) -> list[str]:
    module = ["-P", "-m", "warpcourse.grading.sandbox.zygote"]
    return [_PYTHON, *module, isolation, "--socket", str(descriptor), "--root", root]


class Bubblewrap(Sandbox):
    """Bubblewrap's namespaces around the zygote, and inner ones around each submission where Linux allows them."""

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
        """Return bwrap and its options, up to the command."""
        arguments = [self.program, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
        arguments += ["--unshare-cgroup-try", "--new-session"]
        # Linux takes the end of the thread that started a child for the end of the parent. A zygote started by a
        # thread of shorter life ends with its socket instead.
        if threading.current_thread() is threading.main_thread():
            arguments += ["--die-with-parent"]
        if as_root:
            # To uncover /proc (see zygote.uncover_proc), then to become the pooled user.
            arguments += ["--cap-drop", "ALL"]
            for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SYS_ADMIN"):
                arguments += ["--cap-add", capability]
        else:
            arguments += ["--unshare-user"]
        arguments += ["--clearenv"]
        for name, value in self.environment().items():
            arguments += ["--setenv", name, value]
        arguments += self._mounts()
        # /dev/full reads as /dev/zero does, but cannot be mapped, as memory that belongs to no process.
        arguments += ["--proc", "/proc", "--dev", "/dev", "--dev-bind", "/dev/full", "/dev/zero"]
        arguments += ["--remount-ro", "/dev", "--remount-ro", "/"]
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
        # Bubblewrap would make the parent folders readable for their owner only.
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
    """No bubblewrap: processes under limits, nothing hidden. `why`: what is missing, in words."""

    kind = "limits"
    isolation = "limits"

    def __init__(self, why: str = "bubblewrap was not asked for") -> None:
        self.why = why

    def describe(self) -> str:
        read = "whatever every user can read" if os.geteuid() == 0 else "whatever you can read"
        if only_root_reads():
            read = "every file of this machine"
        return (
            f"NOT SANDBOXED ({self.why}). Only limits on time, memory, processes and the size of each file hold. "
            f"Submissions can use the network and read {read}: solutions, hidden tests, other submissions, the "
            "gradebook. "
            + (
                "They can fill the disk through folders that every user may write to, such as /tmp."
                if os.geteuid() == 0
                else "They can change and delete your files, fill the disk, and signal or trace your other processes, "
                "the grader among them."
            )
            + " Install bubblewrap (Debian, Ubuntu: sudo apt install bubblewrap) for grading that can be trusted."
        )

    def refusal(self) -> str:
        if os.environ.get(READS) == "all" or not (closed := only_root_reads()):
            return ""
        return (
            f"nothing is graded: {self.why}, and only root can read {closed}, which submissions need, so they could "
            "read every file of this machine. Install bubblewrap (Debian, Ubuntu: sudo apt install bubblewrap), or use "
            f"a Python and a course that all users can read, or set {READS}=all to grade all the same."
        )

    def environment(self) -> dict[str, str]:
        return _environment(COURSE, "/nonexistent", tempfile.gettempdir())

    def command(self, descriptor: int, scratch: Path, user: int | None, disk_bytes: int) -> list[str]:
        command = _zygote(descriptor, self.isolation, str(scratch))
        return command if user is None else [*command, "--uid", str(user)]


@functools.cache
def only_root_reads() -> str:
    """Return, for root, the first path that a zygote needs and no other user can read, "" if there is none.

    There a submission keeps the right to read everything, as `child.interpreter_is_readable` decides.
    """
    if os.geteuid() != 0:
        return ""
    own = [path for path in sys.path if os.path.isdir(path) and _within(path, (sys.base_prefix, sys.prefix))]
    for path in dict.fromkeys([os.__file__, sys.prefix, str(COURSE), *own, *filter(_holds_packages, sys.path)]):
        look = ["test", "-r", path]
        if subprocess.run(look, user=POOL[0], group=POOL[0], extra_groups=[], cwd="/").returncode:
            return path
    return ""


def interpreter_paths() -> list[str]:
    """Return files and folders of this Python, its packages, and the symlinks that lead to its executable, sorted.

    Folders inside the system's own (/usr and so on) are left out. A prefix contributes only the parts that hold
    programs and libraries: beside them may lie a user's other files, such as the course.
    """
    found: dict[str, None] = {}

    def add(path: str) -> None:
        if os.path.exists(path) and not _within(path, (*_SYSTEM, *found)):
            found[path] = None

    for prefix in (sys.base_prefix, os.path.realpath(sys.base_prefix), sys.prefix, os.path.realpath(sys.prefix)):
        for part in _PREFIX_PARTS:
            add(os.path.join(prefix, part))
    step = _PYTHON
    while os.path.islink(step):
        step = os.path.normpath(os.path.join(os.path.dirname(step), os.readlink(step)))
        add(step)
    for entry in sys.path:
        if _holds_packages(entry):
            add(entry)
    return sorted(found)


def _inside(path: str) -> str:
    """Return where the sandbox shows a path of this machine: /tmp is private there, so paths below it move."""
    return f"/outside{path}" if _within(path, ("/tmp",)) else path


def _holds_packages(entry: str) -> bool:
    return os.path.basename(entry) in ("site-packages", "dist-packages") and os.path.isdir(entry)


def _within(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


@functools.lru_cache(maxsize=1)
def find() -> Sandbox:
    """Return the best sandbox that works here, tried out. LimitsOnly says why it is not Bubblewrap."""
    if os.environ.get(SWITCH) == "limits":
        return LimitsOnly(f"{SWITCH}=limits switches bubblewrap off")
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
    """Return "" if bubblewrap works, with inner namespaces if `sandbox` uses them; otherwise what went wrong."""
    with pooled_user() as user:
        as_root = user is not None
        wrapped = sandbox.wrapped(as_root, 1 << 20)
        command = [
            *wrapped,
            "--",
            _inside(_PYTHON),
            "-P",
            "-m",
            "warpcourse.grading.sandbox.zygote",
            "--try",
            sandbox.isolation,
        ]
        command += ["--become", str(user)] if as_root else []
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env={}, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    return "" if ran.returncode == 0 else (ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"])[-1]
