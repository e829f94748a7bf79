"""What checks take from their surroundings: fresh seeds, and the simulated GPU on which kernels run.

A learner's run draws seeds from the system and keeps one device. Grading sets both, so that a second run of a
submission gets the same inputs, and no submission finds anything that another one left on the device.
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
    """`draw()` returns a new seed, a non-negative int."""

    draw: Callable[[], int]
    device: Device


_current: ContextVar[Session | None] = ContextVar("warplab_checks_session", default=None)


@contextmanager
def using(session: Session) -> Iterator[None]:
    """Let checks inside take their seeds and device from `session`."""
    token = _current.set(session)
    try:
        yield
    finally:
        _current.reset(token)


def fresh_seed() -> int:
    """Return a new seed from the session, or from the system if there is none."""
    session = _current.get()
    return secrets.randbits(32) if session is None else session.draw()


def device() -> Device:
    """Return a simulated GPU that holds nothing of the learner's."""
    session = _current.get()
    return _own_device() if session is None else session.device


@functools.cache
def _own_device() -> Device:
    from warplab.simulator import Device

    return Device()
