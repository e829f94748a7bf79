"""The time of one submission: what its process has used, and until when a test may wait for it."""

import contextlib
import time
from collections.abc import Callable, Iterator


class Clock:
    """Seconds `used` by the student's process, of `limit` for the whole notebook.

    They stand still while it waits for a processor. `waited()`: how long it has done so.
    """

    def __init__(self, limit: float, waited: Callable[[], float]) -> None:
        self.limit, self.used = limit, 0.0
        self._waited = waited
        self._deadline: float | None = None

    def now(self) -> float:
        return time.monotonic() - self._waited()

    @property
    def left(self) -> float:
        """Return the seconds that are left to the notebook; less than 0 if it took too long."""
        return self.limit - self.used

    def for_an_answer(self) -> float:
        """Return how long an answer of the process may take: until the end of its time, or of the test's."""
        return self.left if self._deadline is None else min(self.left, self._deadline - self.now())

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Count what happens in the block as the process's."""
        began = self.now()
        try:
            yield
        finally:
            self.used += self.now() - began

    @contextlib.contextmanager
    def until(self, seconds: float) -> Iterator[None]:
        """Let a test take so many seconds."""
        self._deadline = self.now() + seconds
        try:
            yield
        finally:
            self._deadline = None
