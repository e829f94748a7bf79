"""What a run of checks takes from around it: fresh seeds, and the simulated GPU that launches run on.

A learner's run draws seeds from the system and keeps one device. Grading sets both, so that a second run of the same
submission meets the same inputs, and one submission meets nothing that another left on the device.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warplab.simulator import Device


@dataclass(frozen=True)
class Session:
    """`draw()` returns a new seed, an int that is not negative."""

    draw: Callable[[], int]
    device: Device


_current: ContextVar[Session | None] = ContextVar("warplab_checks_session", default=None)


@contextmanager
def using(session: Session) -> Iterator[None]:
    """Checks inside take seeds and device from `session`."""
    token = _current.set(session)
    try:
        yield
    finally:
        _current.reset(token)


def fresh_seed() -> int:
    session = _current.get()
    return secrets.randbits(32) if session is None else session.draw()


def device() -> Device:
    """A simulated GPU that holds nothing of the learner's."""
    session = _current.get()
    return _own_device() if session is None else session.device


@functools.cache
def _own_device() -> Device:
    from warplab.simulator import Device

    return Device()
