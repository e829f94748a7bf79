"""Waiting for an event. A test ends with the event, never with the clock: the limit is one that only a hang reaches."""

from __future__ import annotations

import time
from collections.abc import Callable

HANG = 600.0  # seconds; also for a machine that does many other things


def until(condition: Callable[[], object], what: str = "") -> None:
    """Return as soon as `condition()` is true. Raises AssertionError if that seems never to happen."""
    deadline = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < deadline, f"{what or 'the event'} has not happened within {HANG:g} s"
        time.sleep(0.02)
