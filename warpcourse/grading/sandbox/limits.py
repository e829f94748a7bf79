"""Limits on what one submission may use, and those of them that Linux enforces by itself."""

from __future__ import annotations

import dataclasses
import os
import random
import resource
from dataclasses import dataclass

from warpcourse.grading.frameworks import Framework

_MEBIBYTE = 1 << 20
WIDE = 10  # times as long as it may take, at most, where others keep the processors busy


@dataclass(frozen=True)
class SubmissionLimits:
    """Limits of one submission, for its whole process tree unless noted.

    The tree's memory is checked ten times per second; in addition, each process can map at most `memory_bytes` beyond
    what it inherits. `disk_bytes` is the size of the private /tmp, where there is one. While a process waits for a
    processor `wall_seconds` stand still, since the others on the machine decide how long that takes.
    Raises ValueError for a limit that is not positive.
    """

    wall_seconds: float = 300.0
    judge_seconds: float = 180.0  # of the judge's processor time, for all tests
    cpu_seconds: float = 240.0
    memory_bytes: int = 4096 * _MEBIBYTE
    processes: int = 64  # threads count
    processors: int = 1 << 16  # that it starts on; it may leave them
    open_files: int = 256  # of each process
    file_bytes: int = 64 * _MEBIBYTE  # each file
    disk_bytes: int = 256 * _MEBIBYTE
    output_bytes_cell: int = 1 * _MEBIBYTE
    output_bytes_notebook: int = 8 * _MEBIBYTE
    message_bytes: int = 64 * _MEBIBYTE  # one message of the kernel
    traffic_bytes: int = 512 * _MEBIBYTE  # all of the kernel's messages

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ValueError(f"limit {field.name} must be a positive number, got {value!r}")

    def as_dict(self) -> dict[str, float | int]:
        return dataclasses.asdict(self)

    def for_framework(self, framework: Framework) -> SubmissionLimits:
        """Return the limits of a submission that uses `framework`."""
        processes, processors = self.processes + framework.processes, min(framework.processors, self.processors)
        return dataclasses.replace(self, processes=processes, processors=processors)

    def apply(self, tasks_already_there: int = 0) -> None:
        """Set the limits of the calling process and of those that it will start, irrevocably.

        `tasks_already_there`: tasks of other work by the same user, which Linux counts towards the process limit.
        """
        usable = sorted(os.sched_getaffinity(0))
        if len(usable) > self.processors:
            # Drawn, because every submission would otherwise be on the same ones.
            os.sched_setaffinity(0, random.SystemRandom().sample(usable, self.processors))
        mapped = _mapped_bytes()
        whole = int(self.cpu_seconds)
        for which, soft, hard in (
            # Linux starts the system's core-dump handler even at a limit of 0, but not at 1; see core(5).
            (resource.RLIMIT_CORE, 1, 1),
            # One second apart, so that Python can still die of the first signal, whose name tells why.
            (resource.RLIMIT_CPU, max(1, whole), max(1, whole) + 1),
            (resource.RLIMIT_AS, mapped + self.memory_bytes, mapped + self.memory_bytes),
            (resource.RLIMIT_NPROC, self.processes + tasks_already_there, self.processes + tasks_already_there),
            (resource.RLIMIT_NOFILE, self.open_files, self.open_files),
            (resource.RLIMIT_FSIZE, self.file_bytes, self.file_bytes),
            (resource.RLIMIT_MEMLOCK, 0, 0),
            (resource.RLIMIT_MSGQUEUE, 0, 0),
            (resource.RLIMIT_SIGPENDING, 1024, 1024),
        ):
            allowed = resource.getrlimit(which)[1]
            if allowed != resource.RLIM_INFINITY:
                soft, hard = min(soft, allowed), min(hard, allowed)
            resource.setrlimit(which, (soft, hard))


def _mapped_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
