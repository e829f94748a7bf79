"""A check from the inside, as a submission, that the sandbox holds on this machine.

    for finding in preflight(find()):
        print(finding)

The judge plants what a submission must not reach: a file, a variable in the environment, listening sockets. A probe
then runs in the place of a student's kernel, tries everything and reports how far it got.
"""

import contextlib
import dataclasses
import errno
import json
import mmap
import os
import re
import secrets
import socket
import struct
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.paths import COURSE

PROBE_LIMITS = SubmissionLimits(
    wall_seconds=30, cpu_seconds=20, memory_bytes=1 << 30, processes=40, file_bytes=1 << 20, disk_bytes=8 << 20
)
_UNPRIVILEGED = "user unprivileged"
_BLOCK = 1 << 18
_EXPECTED_VARIABLES = re.compile(
    "PATH|HOME|TMPDIR|USER|LOGNAME|LANG|LC_.*|PWD|SHLVL|PYTHON.*|MPL.*|WARPLAB_BACKEND|WARPLAB_KEEP_CODE|MALLOC_.*|KMP_.*"
    "|.*_NUM_THREADS|NUMBA_CACHE_DIR|CUDA_.*|TF_.*"
)


@dataclass(frozen=True)
class Finding:
    """One promise of a sandbox. `holds`: whether it is kept. `detail`: what the probe saw."""

    promise: str
    holds: bool
    detail: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.holds else 'NOT '} {self.promise}: {self.detail}"


def preflight(sandbox=None) -> list[Finding]:
    """Try out a sandbox, by default the best that works here. Raises SandboxError if it cannot start.

    Under limits alone most promises do not hold, as the findings then say.
    """
    from warpcourse.grading.sandbox.isolation import find
    from warpcourse.grading.sandbox.zygote_client import ZygoteClient

    sandbox = sandbox or find()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warplab-preflight-")))
        folder.chmod(0o777)  # only the sandbox stands between
        (folder / "secret").write_text("secret")
        listeners = {str(folder / "socket"): socket.AF_UNIX, f"\0{secrets.token_hex(8)}": socket.AF_UNIX}
        for address, family in listeners.items():
            listener = stack.enter_context(socket.socket(family))
            listener.bind(address)
            listener.listen(1)
        ours, theirs = socket.socketpair()
        stack.enter_context(ours)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        zygote = stack.enter_context(ZygoteClient(sandbox, "nothing", disk_bytes=PROBE_LIMITS.disk_bytes))
        header = {
            "folder": str(folder),
            "sockets": list(listeners),
            "hidden": [
                str(COURSE / name) for name in ("solutions", "tests", ".git", "pyproject.toml", "nbgrader_config.py")
            ],
            "limits": PROBE_LIMITS.as_dict(),
        }
        with theirs:
            zygote.start({"submitted.txt": b"mine"}, PROBE_LIMITS, header, [theirs.fileno()], program="probe")
        findings, user = _receive(ours)
        return [_seen_from_outside(Finding(**finding), user) for finding in findings]


def _receive(channel: socket.socket) -> tuple[list[dict], int]:
    """Return what the probe found, and its user on this machine, which Linux tells a socket's reader."""
    data, ancillary, _, _ = channel.recvmsg(1 << 16, socket.CMSG_SPACE(12))
    _, user, _ = struct.unpack("3i", next(content for _, kind, content in ancillary if kind == socket.SCM_CREDENTIALS))
    while chunk := channel.recv(1 << 16):
        data += chunk
    return json.loads(data), user


def _seen_from_outside(finding: Finding, user: int) -> Finding:
    if finding.promise != _UNPRIVILEGED:
        return finding
    return Finding(finding.promise, finding.holds and user != 0, f"user {user} of this machine; {finding.detail}")


def probe(header: dict, channels: list[int], ready: Callable[[], None]) -> None:
    """Write the findings as JSON to the first of `channels`. Runs inside the sandbox."""
    ready()
    limits = SubmissionLimits(**header["limits"])
    findings = []
    for promise, look in (
        ("no network", lambda: _network(header)),
        ("sees only its own files", lambda: _files(header)),
        ("writes only into its private folder", lambda: _writes(header)),
        ("disk limited", lambda: _disk(limits)),
        ("file size limited", lambda: _file_size(limits)),
        ("memory limited", lambda: _memory(limits)),
        ("processes limited", lambda: _processes(limits)),
        ("no other processes visible", lambda: _others(header)),
        ("environment empty", _environment),
        (_UNPRIVILEGED, _user),
        ("system calls filtered", _calls),
    ):
        try:
            holds, detail = look()
        except Exception as error:
            holds, detail = False, f"the probe itself failed: {error!r}"
        findings.append(dataclasses.asdict(Finding(promise, holds, detail)))
    with socket.socket(fileno=channels[0]) as out:
        out.sendall(json.dumps(findings).encode())


def _network(header: dict) -> tuple[bool, str]:
    reached = []
    interfaces = [name for _, name in socket.if_nameindex() if name != "lo"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe_, contextlib.suppress(OSError):
        probe_.connect(("192.0.2.1", 9))  # reserved for documentation: tells whether there is a route
        reached.append("a route out")
    for address in header["sockets"]:
        with socket.socket(socket.AF_UNIX) as probe_, contextlib.suppress(OSError):
            probe_.connect(address)
            reached.append("an abstract socket" if address.startswith("\0") else "a socket in the file system")
    with contextlib.suppress(OSError, AttributeError):
        socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
        reached.append("sockets to the machine's host (AF_VSOCK)")
    problems = [*(f"interface {name}" for name in interfaces), *reached]
    return not problems, ", ".join(problems) or "no interface but lo, no route, no socket of others"


def _files(header: dict) -> tuple[bool, str]:
    seen = [path for path in (f"{header['folder']}/secret", *header["hidden"]) if os.path.exists(path)]
    mine = Path("submitted.txt").read_bytes() == b"mine"
    if not mine:
        return False, "its own file is not there"
    return not seen, f"sees {', '.join(seen)}" if seen else "no planted file, none of the course's private ones"


def _writes(header: dict) -> tuple[bool, str]:
    folders = ["/", "/usr", "/etc", "/dev", "/var/tmp", "/run", "/proc/sys/kernel", header["folder"]]
    folders += [sys.prefix, os.path.dirname(os.__file__), *(str(COURSE / name) for name in ("warplab", "warpcourse"))]
    written = []
    for folder in folders:
        path = os.path.join(folder, f"warplab-probe-{os.getpid()}")
        with contextlib.suppress(OSError):
            Path(path).write_bytes(b"x")
            written.append(folder)
            os.unlink(path)
    return not written, f"wrote into {', '.join(written)}" if written else f"{len(folders)} folders refused"


def _disk(limits: SubmissionLimits) -> tuple[bool, str]:
    """Fill every folder that can be written to, up to twice the limit."""
    written = 0
    folder = Path(os.environ["TMPDIR"], "fill")
    folder.mkdir()
    block = bytes(_BLOCK)
    try:
        for place in (folder, Path("/dev/shm")):
            for number in range(2 * limits.disk_bytes // _BLOCK):
                written += (place / f"warplab-probe-{number}").write_bytes(block)
    except OSError as error:
        reason = str(error.strerror)
    else:
        reason = "nothing stopped it"
    finally:
        for place in (folder, Path("/dev/shm")):
            for path in place.glob("warplab-probe-*"):
                path.unlink()
    held = written <= limits.disk_bytes
    return held, f"wrote {written >> 10} KiB of {limits.disk_bytes >> 10}: {reason}"


def _file_size(limits: SubmissionLimits) -> tuple[bool, str]:
    path = Path(os.environ["TMPDIR"], "big")
    try:
        with open(path, "wb") as file:
            file.truncate(limits.file_bytes + 1)
    except OSError as error:
        return error.errno == errno.EFBIG, str(error.strerror)
    finally:
        path.unlink(missing_ok=True)
    return False, f"made a file of {limits.file_bytes + 1} bytes"


def _memory(limits: SubmissionLimits) -> tuple[bool, str]:
    try:
        mmap.mmap(-1, limits.memory_bytes + 1, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError as error:
        return True, str(error.strerror)
    return False, f"mapped {limits.memory_bytes + 1} bytes"


def _processes(limits: SubmissionLimits) -> tuple[bool, str]:
    children: list[int] = []
    reason = ""
    release, hold = os.pipe()
    try:
        while len(children) < 2 * limits.processes:
            child = os.fork()
            if child == 0:
                os.close(hold)
                os.read(release, 1)
                os._exit(0)
            children.append(child)
    except OSError as error:
        reason = str(error.strerror)
    os.close(hold)
    for child in children:
        os.waitpid(child, 0)
    return len(children) <= limits.processes, f"{len(children)} children of at most {limits.processes}: {reason}"


def _others(header: dict) -> tuple[bool, str]:
    seen = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    own, pid = {1, os.getpid()}, os.getpid()  # and its ancestors: inside bubblewrap's namespace, the zygote
    with contextlib.suppress(OSError):
        while pid > 1:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            own.add(pid)
    strangers = [pid for pid in seen if pid not in own]
    return not strangers, f"sees {len(strangers)} others" if strangers else "only itself and what started it"


def _environment() -> tuple[bool, str]:
    strange = [name for name in os.environ if not _EXPECTED_VARIABLES.fullmatch(name)]
    return not strange, f"has {', '.join(strange)}" if strange else f"{len(os.environ)} variables, all the sandbox's"


def _user() -> tuple[bool, str]:
    status = dict(re.findall(r"^(\w+):\s*(.*)$", Path("/proc/self/status").read_text(), re.MULTILINE))
    problems = ["is root"] if os.getuid() == 0 else []
    problems += [f"has {name}" for name in ("CapEff", "CapPrm", "CapAmb") if int(status[name], 16)]
    problems += ["may gain privileges"] if status["NoNewPrivs"] != "1" else []
    problems += ["is in groups"] if set(os.getgroups()) - {os.getgid()} else []
    return not problems, ", ".join(problems) or f"user {os.getuid()} inside; no capability, none to gain"


def _calls() -> tuple[bool, str]:
    from warpcourse.grading.sandbox import linux

    allowed = []
    with contextlib.suppress(OSError):
        linux.unshare(linux.CLONE_NEWUSER)
        allowed.append("unshare")
    with contextlib.suppress(OSError):
        os.close(os.memfd_create("probe"))
        allowed.append("memfd_create")
    with contextlib.suppress(OSError):
        mmap.mmap(-1, 4096).close()
        allowed.append("shared memory without a file")
    with contextlib.suppress(OSError), open("/dev/zero", "r+b") as zero:
        mmap.mmap(zero.fileno(), 4096).close()
        allowed.append("shared memory of /dev/zero")
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as channel:
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        allowed.append("larger buffers of sockets")
    return not allowed, f"allowed {', '.join(allowed)}" if allowed else "namespaces and memory outside limits refused"
