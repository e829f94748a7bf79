"""A helper process of the grader's own that answers messages through its standard input and output."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from warplab.grading.exchange.framing import pack
from warplab.grading.sandbox.processes import kill_tree

WATCH_SECONDS = 0.2  # between two calls of `watch`


class PipeFailure(Exception):
    """The process ended or hung. The message says which, with its last words."""


class PipedProcess:
    """A process of its own session, so that Ctrl-C at the terminal does not reach it. Not thread-safe."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._rest = b""
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=dict(environment),
            start_new_session=True,
        )
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)

    def kill(self) -> None:
        """End the process and everything below it."""
        kill_tree(self.process)
        self.process.wait()
        for pipe in self._pipes():
            with contextlib.suppress(OSError):
                pipe.close()
        self._errors.close()

    def exchange(
        self, message: Mapping[str, Any] | None, seconds: float, watch: Callable[[int], None] = lambda pid: None
    ) -> dict[str, Any]:
        """Send a message, if there is one, and return the next answer.

        `watch` is called now and then with the pid; what it raises ends the waiting. Raises `PipeFailure`.
        """
        deadline = time.monotonic() + seconds
        inlet, outlet = (pipe.fileno() for pipe in self._pipes())
        left = memoryview(b"" if message is None else pack(dict(message)))
        with selectors.DefaultSelector() as selector:
            selector.register(outlet, selectors.EVENT_READ)
            if left:
                selector.register(inlet, selectors.EVENT_WRITE)
            received = bytearray(self._rest)
            while True:
                if len(received) >= 8:
                    end = 8 + int.from_bytes(received[:8], "big")
                    if len(received) >= end:
                        self._rest = bytes(received[end:])
                        return json.loads(received[8:end])
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise PipeFailure(f"it gave no answer within {seconds:.0f} s")
                watch(self.process.pid)
                for key, _ in selector.select(min(remaining, WATCH_SECONDS)):
                    if key.fd == outlet:
                        piece = os.read(outlet, 1 << 20)
                        if not piece:
                            raise PipeFailure(self._last_words())
                        received += piece
                    else:
                        try:
                            left = left[os.write(inlet, left[: 1 << 20]) :]
                        except BrokenPipeError:
                            raise PipeFailure(self._last_words()) from None
                        if not left:
                            selector.unregister(inlet)

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        return self.process.stdin, self.process.stdout

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        code = self.process.returncode
        how = "it closed its output" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 2000))
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return f"it ended ({how}): {lines[-1]}" if lines else f"it ended ({how})"
