"""A process that this one starts, asks through its standard input and output, and ends."""

import contextlib
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

import numpy as np

from warpcourse.paths import COURSE
from warpcourse.processes.messages import HEADER, Message, length, pack, unpack
from warpcourse.processes.tree import kill_tree

WATCH_SECONDS = 0.2  # between two calls of `watch`
_WORDS = 2000  # characters of a process's last words


class ChildFailed(Exception):
    """The process did not answer. The message says why."""


class ChildEnded(ChildFailed):
    """It ended first. The message says how, with its last words."""


class ChildSilent(ChildFailed):
    """It gave no answer in time."""


def module(name: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of the course in a new Python."""
    return [sys.executable, "-m", name, *arguments]


def course_path() -> str:
    """Return a PYTHONPATH on which the course comes first."""
    return os.pathsep.join(filter(None, [str(COURSE), os.environ.get("PYTHONPATH")]))


class Child:
    """A process of its own session, so that Ctrl-C at the terminal does not reach it. Not thread-safe.

    `environment`: variables to set beside this process's own. `arrays`: whether its messages may hold arrays. Its
    standard input closes when this process ends, however it ends. Raises OSError where it cannot be started.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None, *, arrays: bool = False
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._arrays = arrays
        self._unread = bytearray()
        self._unsent = memoryview(b"")
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd=COURSE,
                env={**os.environ, "PYTHONPATH": course_path(), **(environment or {})},
                start_new_session=True,
            )
        except OSError:
            self._errors.close()
            raise
        self.pid = self.process.pid

    def exchange(
        self, message: Mapping[str, Any], seconds: float, watch: Callable[[int], None] = lambda pid: None
    ) -> dict[str, Any]:
        """Send a message and return the next answer's JSON; as `send` and `receive`."""
        self.send(message)
        return self.receive(seconds, watch)[0]

    def send(self, message: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> None:
        """Send a message, or what of it the pipe takes; `receive` sends the rest."""
        self._unsent = memoryview(bytes(self._unsent) + pack(message, arrays))
        os.set_blocking(self._inlet.fileno(), False)
        self._write()

    def receive(self, seconds: float, watch: Callable[[int], None] = lambda pid: None) -> Message:
        """Return the next answer: its JSON and its arrays.

        `watch` is called now and then with the pid; what it raises ends the waiting. Raises ChildEnded, ChildSilent,
        and BadMessage for what is no answer.
        """
        deadline = time.monotonic() + seconds
        outlet = self._outlet.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(outlet, selectors.EVENT_READ)
            if self._unsent:
                selector.register(self._inlet, selectors.EVENT_WRITE)
            while True:
                if (answer := self._whole_answer()) is not None:
                    return unpack(answer, self._arrays)
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise ChildSilent(f"it gave no answer within {seconds:.0f} s")
                watch(self.pid)
                for key, _ in selector.select(min(remaining, WATCH_SECONDS)):
                    if key.fd != outlet:
                        self._write()
                        if not self._unsent:
                            selector.unregister(self._inlet)
                    elif piece := os.read(outlet, 1 << 20):
                        self._unread += piece
                    else:
                        raise ChildEnded(self.how())

    def how(self) -> str:
        """Return how the process ended, with its last words; waits some seconds for that."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        code = self.process.returncode
        how = "it closed its output" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
        lines = self.last_words().splitlines()
        return f"it ended ({how}): {lines[-1]}" if lines else f"it ended ({how})"

    def last_words(self) -> str:
        """Return the end of what it wrote to standard error."""
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _WORDS))
        return self._errors.read().decode(errors="replace").strip()

    def hang_up(self) -> None:
        """End its standard input."""
        with contextlib.suppress(OSError):
            self._inlet.close()

    def stop(self, grace: float) -> None:
        """Hang up, wait so many seconds until it has ended, and kill it if it does not."""
        self.hang_up()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(grace)
        self.kill()

    def kill(self) -> None:
        """End the process and everything below it."""
        if not self._errors.closed:
            kill_tree(self.process)
            self.process.wait()
            self.hang_up()
            self._outlet.close()
            self._errors.close()

    def _whole_answer(self) -> bytes | None:
        if len(self._unread) < HEADER.size:
            return None
        end = length(bytes(self._unread[: HEADER.size]), self._arrays)
        if len(self._unread) < end:
            return None
        answer, self._unread = bytes(self._unread[:end]), self._unread[end:]
        return answer

    def _write(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._inlet.fileno(), self._unsent[: 1 << 20]) :]
        except BlockingIOError:
            pass
        except (BrokenPipeError, ValueError):  # it has ended; the end of its output says how
            self._unsent = memoryview(b"")

    @property
    def _inlet(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def _outlet(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout
