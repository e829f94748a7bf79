"""A control group of Linux that counts all memory of a zygote and its submissions, also what no process shows.

An administrator gives the grader a folder in which it may make groups (a delegated cgroup, see docs/instructors.md) and
names it in WARPLAB_CGROUP. The grader makes groups nowhere else: other programs look after the rest of the hierarchy.

Sources: cgroups(7); the kernel's documentation of cgroup-v2 and of the memory controller of cgroup-v1.
"""

from __future__ import annotations

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
    """One group, in the folder `parent`. Raises OSError if it cannot be made or has no memory controller."""

    def __init__(self, parent: Path) -> None:
        self.folder = parent / f"warplab-{os.getpid()}-{next(_numbers)}"
        self.folder.mkdir()
        self._second = (self.folder / "memory.max").exists()  # version of the interface
        try:
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
        return ["/bin/sh", "-c", enter, str(self.folder / "cgroup.procs"), *command]

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
        for _ in range(50):
            try:
                self.folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:  # the last process has ended, but Linux has not noted it yet
                time.sleep(0.1)


def given() -> Path | None:
    """Return the folder that WARPLAB_CGROUP names, None if it is not set."""
    name = os.environ.get(SWITCH)
    return Path(name) if name else None
