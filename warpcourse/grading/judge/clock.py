"""The time of one submission: what its process has used, and until when a test may wait for it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator


class Clock:
    """Wall-clock seconds: `used` by the student's process, of `limit` for the whole notebook."""

    def __init__(self, limit: float) -> None:
        self.limit, self.used = limit, 0.0
        self._deadline: float | None = None

    @property
    def left(self) -> float:
        """Return the seconds that are left to the notebook; less than 0 if it took too long."""
        return self.limit - self.used

    def for_an_answer(self) -> float:
        """Return how long an answer of the process may take: until the end of its time, or of the test's."""
        return self.left if self._deadline is None else min(self.left, self._deadline - time.monotonic())

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Count what happens in the block as the process's."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.used += time.monotonic() - began

    @contextlib.contextmanager
    def until(self, seconds: float) -> Iterator[None]:
        """Let a test take so many seconds."""
        self._deadline = time.monotonic() + seconds
        try:
            yield
        finally:
            self._deadline = None
