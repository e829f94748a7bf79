"""A control group of Linux that counts all memory of a zygote and its submissions, also what no process shows.

An administrator gives the grader a folder in which it may make groups (a delegated cgroup, see docs/instructors.md) and
names it in WARPLAB_CGROUP. The grader makes groups nowhere else: other programs look after the rest of the hierarchy.
With the cpu controller the group also has one share of the processors, however many threads and sessions are in it. In
cgroup-v1 that is a hierarchy of its own, whose folder is named beside the first, after a colon.

Sources: cgroups(7); the kernel's documentation of cgroup-v2 and of the memory controller of cgroup-v1.
"""

import contextlib
import itertools
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

SWITCH = "WARPLAB_CGROUP"
_SPARE = 64 << 20  # bytes beyond a submission's limit, so that the grader sees the limit reached before Linux kills
_numbers = itertools.count(1)


class MemoryGroup:
    """One group, in each of `parents`. Raises OSError if it cannot be made or the first has no memory controller."""

    def __init__(self, parents: Sequence[Path]) -> None:
        name = f"warplab-{os.getpid()}-{next(_numbers)}"
        self.folder, *_ = self.folders = [parent / name for parent in parents]
        try:
            for folder in self.folders:
                folder.mkdir()
            self._second = (self.folder / "memory.max").exists()  # version of the interface
            self._limit_file = self.folder / ("memory.max" if self._second else "memory.limit_in_bytes")
            self._usage_file = self.folder / ("memory.current" if self._second else "memory.usage_in_bytes")
            self._events_file = self.folder / ("memory.events" if self._second else "memory.oom_control")
            self.kills()
            if self._second:
                with contextlib.suppress(OSError):  # there is no such file without swap
                    (self.folder / "memory.swap.max").write_text("0")
        except OSError:
            self.close()
            raise

    def command(self, command: Sequence[str]) -> list[str]:
        """Return a command that enters the group, then becomes `command`."""
        enter = 'echo $$ > "$0" && exec "$@"'
        for folder in self.folders:
            command = ["/bin/sh", "-c", enter, str(folder / "cgroup.procs"), *command]
        return list(command)

    def allow(self, more: int) -> None:
        """Let the group's memory grow by `more` bytes."""
        used = int(self._usage_file.read_text())
        self._limit_file.write_text(str(used + more + _SPARE))

    def kills(self) -> int:
        """Return how many processes Linux has killed because the group had no memory left."""
        found = re.search(r"^oom_kill (\d+)$", self._events_file.read_text(), re.MULTILINE)
        return int(found[1]) if found else 0

    def close(self) -> None:
        """Remove the group, whose processes have ended."""
        left = list(self.folders)
        for _ in range(50):
            for folder in list(left):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    pass
                except OSError:  # the last process has ended, but Linux has not noted it yet
                    continue
                left.remove(folder)
            if not left:
                return
            time.sleep(0.1)


def given() -> list[Path]:
    """Return the folders that WARPLAB_CGROUP names."""
    return [Path(name) for name in os.environ.get(SWITCH, "").split(":") if name]
