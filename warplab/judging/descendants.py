"""What keeps an answer's processes apart from the judge: they end with it, and neither read nor write its memory.

A subreaper gets each orphan among its descendants as its own child, whatever session and parent that has chosen for
itself. By ctypes, as Python has no functions for this: prctl(2), capset(2), ptrace(2).
"""

import contextlib
import ctypes
import os
import signal
import struct
import time
from collections.abc import Iterator

_PR_SET_PDEATHSIG, _PR_GET_DUMPABLE, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER = 1, 3, 4, 24, 36
_CAPABILITY_VERSION_3, _CAP_SYS_PTRACE = 0x20080522, 19
_SECONDS = 30.0
_libc = ctypes.CDLL(None)


def adopt() -> None:
    """Make orphaned descendants children of this process."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with(parent: int) -> None:
    """Let Linux kill this process when its parent ends; end it now if `parent` is its parent no more."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(70)


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """Let no process of the same user but root's trace this one, or open its memory in /proc."""
    before = _libc.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0)
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    try:
        yield
    finally:
        _libc.prctl(_PR_SET_DUMPABLE, before, 0, 0, 0)


def trace_nobody() -> None:
    """Give up root's right to trace processes, for good and for all descendants."""
    header, found = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0), ctypes.create_string_buffer(24)
    _libc.capget(header, found)
    low, high = struct.unpack("<3I", found.raw[:12]), found.raw[12:]
    _libc.prctl(_PR_CAPBSET_DROP, _CAP_SYS_PTRACE, 0, 0, 0)
    _libc.capset(header, struct.pack("<3I", *(word & ~(1 << _CAP_SYS_PTRACE) for word in low)) + high)


def end_children() -> bool:
    """Kill all children, and what each leaves to this process as it ends; return whether none is left.

    One that starts the next and ends, over and over, may be too fast: then there is a limit of time.
    """
    until = time.monotonic() + _SECONDS
    with contextlib.suppress(ChildProcessError):  # there is none any more
        while time.monotonic() < until:
            for child in _children():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
            ended, _ = os.waitpid(-1, 0)
            while ended:
                ended, _ = os.waitpid(-1, os.WNOHANG)
        return False
    return True


def _children() -> list[int]:
    with contextlib.suppress(OSError), open("/proc/thread-self/children") as file:  # not in every kernel
        return [int(pid) for pid in file.read().split()]
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            if int(file.read().rpartition(b")")[2].split()[1]) == os.getpid():
                found.append(int(name))
    return found
