"""A relay between the judge's ZeroMQ sockets and those of a student's kernel, which counts the kernel's bytes.

libzmq limits the size of a frame and the number of waiting messages, but not the number of frames per message. A kernel
that never ends a message could therefore fill the judge's memory. The relay lets through only as much as fits.

Source of the format: ZeroMQ Message Transport Protocol 3.1 (rfc.zeromq.org/spec/37), greeting and framing.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from warpcourse.grading.sandbox.limits import SubmissionLimits

_GREETING = 64
_MORE, _LONG = 1, 2
_FRAMES_OF_A_MESSAGE = 256
_FRAME_COST = 128  # bytes that a frame counts as at least: libzmq keeps 64 for an empty one
_CHUNK = 1 << 16
_MOST_WAITING = 1 << 20  # bytes held back for a slow reader before reading pauses


class Excess(Exception):
    """The kernel sent more than it may, or did not speak ZMTP 3."""


class Counter:
    """The frames of one connection in one direction. `spend` is called with the cost of each frame, in bytes."""

    def __init__(self, message_bytes: int, spend: Callable[[int], None]) -> None:
        self._most, self._spend = message_bytes, spend
        self._greeting, self._head = b"", b""
        self._left = 0  # bytes of the current frame that are to come
        self._message, self._frames = 0, 0

    def feed(self, data: bytes) -> None:
        """Count the next bytes of the connection. Raises Excess."""
        at = 0
        if len(self._greeting) < _GREETING:
            at = min(len(data), _GREETING - len(self._greeting))
            self._greeting += data[:at]
            self._check_greeting()
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
                at += step
                continue
            wanted = self._head_bytes() - len(self._head)
            self._head += data[at : at + wanted]
            at += wanted
            if len(self._head) > 1 and len(self._head) == self._head_bytes():
                self._begin_frame()

    def _check_greeting(self) -> None:
        # An older version would make libzmq read frames of another format.
        known = self._greeting
        if (
            known[:1] not in (b"", b"\xff")
            or (len(known) > 9 and known[9] != 0x7F)
            or (len(known) > 10 and known[10] != 3)
        ):
            raise Excess("the kernel's connection does not speak ZMTP 3")

    def _head_bytes(self) -> int:
        return 9 if self._head and self._head[0] & _LONG else 2

    def _begin_frame(self) -> None:
        flags, self._left = self._head[0], int.from_bytes(self._head[1:], "big")
        self._head = b""
        self._message += self._left
        self._frames += 1
        if self._message > self._most or self._frames > _FRAMES_OF_A_MESSAGE:
            raise Excess(
                f"the kernel sent a message of more than {self._most >> 20} MiB or {_FRAMES_OF_A_MESSAGE} parts"
            )
        self._spend(max(self._left, _FRAME_COST))
        if not flags & _MORE:
            self._message = self._frames = 0


@dataclass(eq=False)
class _End:
    """One side of a connection; `other` is the other side. `waiting`: bytes still to be written to it."""

    socket: socket.socket
    counter: Counter | None = None
    waiting: bytearray = field(default_factory=bytearray)
    other: _End = field(init=False)


class Relay(threading.Thread):
    """A thread that joins each connection to an `outer` socket to the path of the same index in `inner`.

    It calls `on_excess(reason)` once, in this thread, if the kernel sends more than it may.
    """

    def __init__(
        self,
        outer: Iterable[socket.socket],
        inner: Iterable[str],
        limits: SubmissionLimits,
        on_excess: Callable[[str], None],
    ) -> None:
        super().__init__(name="warplab-relay", daemon=True)
        self._limits, self._on_excess = limits, on_excess
        self._left = limits.traffic_bytes
        self._selector = selectors.DefaultSelector()
        self._stop_reading, self._stop_writing = os.pipe()
        self._selector.register(self._stop_reading, selectors.EVENT_READ)
        self._ends: set[_End] = set()
        self._listeners = list(outer)
        for listener, path in zip(self._listeners, inner, strict=True):
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ, (listener, path))

    def stop(self) -> None:
        os.close(self._stop_writing)
        self.join()

    def run(self) -> None:
        reason = None
        try:
            while self._serve():
                pass
        except Excess as excess:
            reason = str(excess)
        self._close_all()
        self._selector.close()
        os.close(self._stop_reading)
        if reason is not None:
            self._on_excess(reason)

    def _serve(self) -> bool:
        for key, ready in self._selector.select():
            if key.fd == self._stop_reading:
                return False
            if isinstance(key.data, tuple):
                self._join(*key.data)
            elif key.data in self._ends:  # an earlier event may have closed it
                self._pass_on(key.data, ready)
        return True

    def _join(self, listener: socket.socket, path: str) -> None:
        with contextlib.suppress(OSError):
            ours, _ = listener.accept()
            theirs = socket.socket(socket.AF_UNIX)
            try:
                theirs.setblocking(False)
                theirs.connect(path)
            except OSError:  # the kernel is gone, or too many connections wait
                theirs.close()
                ours.close()
                return
            ours.setblocking(False)
            judge = _End(ours)
            kernel = _End(theirs, Counter(self._limits.message_bytes, self._spend))
            judge.other, kernel.other = kernel, judge
            for end in (judge, kernel):
                self._ends.add(end)
                self._watch(end)

    def _spend(self, cost: int) -> None:
        self._left -= cost
        if self._left < 0:
            raise Excess(f"the notebook sent more than {self._limits.traffic_bytes >> 20} MiB of output and results")

    def _pass_on(self, end: _End, ready: int) -> None:
        try:
            if ready & selectors.EVENT_READ:
                data = end.socket.recv(_CHUNK)
                if not data:
                    raise ConnectionResetError
                if end.counter is not None:
                    end.counter.feed(data)
                end.other.waiting += data
                self._write(end.other)
            if ready & selectors.EVENT_WRITE:
                self._write(end)
        except BlockingIOError:
            pass
        except OSError:
            for side in (end, end.other):
                self._close(side)
            return
        for side in (end, end.other):
            self._watch(side)

    def _watch(self, end: _End) -> None:
        """Select what this end can do now. It is not read from while the other end falls behind."""
        events = selectors.EVENT_READ if len(end.other.waiting) < _MOST_WAITING else 0
        events |= selectors.EVENT_WRITE if end.waiting else 0
        key = self._selector.get_map().get(end.socket)
        if key is None and events:
            self._selector.register(end.socket, events, end)
        elif key is not None and not events:
            self._selector.unregister(end.socket)
        elif key is not None and key.events != events:
            self._selector.modify(end.socket, events, end)

    def _close(self, end: _End) -> None:
        if end.socket in self._selector.get_map():
            self._selector.unregister(end.socket)
        end.socket.close()
        self._ends.discard(end)

    def _write(self, end: _End) -> None:
        with contextlib.suppress(BlockingIOError):
            while end.waiting:
                del end.waiting[: end.socket.send(end.waiting)]

    def _close_all(self) -> None:
        for end in list(self._ends):
            self._close(end)
        for listener in self._listeners:
            listener.close()
