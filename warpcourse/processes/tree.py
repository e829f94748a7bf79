"""Processes of this machine, read from /proc: their tree, processor time and memory; and how to end a tree."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_JIFFY = os.sysconf("SC_CLK_TCK")
SOCKET_BYTES = 2 * 212_992  # Linux' default sizes of a socket's two buffers
STREAM_BYTES = 10 << 20  # to which those of TCP may grow


def processes() -> dict[int, list[str]]:
    """Return, per pid, the fields of /proc/PID/stat that follow the command: state, parent, ..."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                # The command, a name in brackets, may hold anything.
                fields = Path(f"/proc/{entry}/stat").read_text(errors="replace").rpartition(")")[2].split()
                if fields:
                    found[int(entry)] = fields
    return found


def descendants(of: int, known: dict[int, list[str]]) -> list[int]:
    """Return the processes below `of`, nearest first. `known`: what `processes` returned."""
    children: dict[int, list[int]] = {}
    for pid, fields in known.items():
        children.setdefault(int(fields[1]), []).append(pid)
    found = list(children.get(of, ()))
    for pid in found:
        found += children.get(pid, ())
    return found


def usage(init: int, enough: int) -> tuple[dict[int, list[str]], float, int]:
    """Return the processes below init as `processes` does, their processor time in seconds, their memory in bytes.

    Dividing shared pages among their users is slow. It is done only where the sum of all resident pages, which counts
    shared ones several times, exceeds `enough`: the most that the processes may use. Whoever adds other memory to the
    result takes that off first.
    """
    known = processes()
    tree = {pid: known[pid] for pid in descendants(init, known)}
    times = (int(time_) for pid in {init, *tree} & known.keys() for time_ in known[pid][11:15])
    resident = sum(max(0, int(fields[21])) * _PAGE for fields in tree.values())
    if resident > enough:
        resident = sum(_proportional_bytes(pid, int(fields[21]) * _PAGE) for pid, fields in tree.items())
    return tree, sum(times) / _JIFFY, resident


def threads(pid: int) -> dict[int, bool]:
    """Return the threads of a process, and of each whether it computes or waits for a processor."""
    found = {}
    with contextlib.suppress(OSError):
        for entry in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                stat = Path(f"/proc/{pid}/task/{entry}/stat").read_text(errors="replace")
                found[int(entry)] = stat.rpartition(")")[2].split()[0] == "R"
    return found


def waited_seconds(pid: int) -> float:
    """Return how long the first thread of a process has waited for a processor, 0 where Linux does not count it."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def socket_bytes(pid: int) -> int:
    """Return the most memory that the sockets of a process's network namespace can hold, 0 if it has ended.

    Linux counts these buffers as no process's memory. Buffers of TCP grow by themselves, others only on request.
    """
    sockets, streams = 0, 0
    with contextlib.suppress(OSError):
        for name in ("sockstat", "sockstat6"):
            for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines():
                kind, _, fields = line.partition(": ")
                numbers = dict(zip(fields.split()[::2], map(int, fields.split()[1::2]), strict=False))
                sockets += numbers.get("used", 0) if kind == "sockets" else 0
                streams += numbers.get("inuse", 0) if kind in ("TCP", "TCP6") else 0
    return SOCKET_BYTES * sockets + STREAM_BYTES * streams


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process in bytes; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not merely waiting for its parent to note its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def kill_tree(process: subprocess.Popen) -> None:
    """Kill a process and everything below it."""
    process.send_signal(signal.SIGSTOP)  # a stopped process starts no other meanwhile; no effect if it has ended
    if process.returncode is None:
        for pid in [*descendants(process.pid, processes()), process.pid]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _proportional_bytes(pid: int, resident: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):  # it has ended since its pages were counted
        return 0
    except OSError:  # a process that hides its maps counts in full
        return resident
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), resident)
