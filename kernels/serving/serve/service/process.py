"""A service in a process of its own, for a notebook or a test: it ends when the block does, and when this process does.

with start("kernels.serving.serve.engines:digits", batch_limit=32) as service:
    print(service.ask(images)[0])
"""

import json
import queue
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels.serving.serve.service.server import CLOSED, SERVING, ServiceError
from warpcourse.learner.waiting import waiting
from warpcourse.processes.child import Child, module

START_SECONDS = 300.0  # an engine may load TensorFlow, or compile kernels in the simulator


class Refused(RuntimeError):
    """The service answered with another status than 200. `status`: HTTP's."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status


class RunningService:
    """A service that was started: `url`, and `pid` of its process. Leaving the `with` block stops it."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self._child = Child(command, environment)
        self._process, self.pid = self._child.process, self._child.pid
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self.counts: dict[str, int] = {}
        try:
            self.url = self._line(SERVING, START_SECONDS).rpartition(" ")[2]
        except BaseException:
            self.kill()
            raise

    def ask(self, samples: Any, timeout: float = 60.0) -> np.ndarray:
        """Return the engine's answers to these samples, one request. Refused if the service refuses it."""
        body = json.dumps({"instances": np.asarray(samples).tolist()}).encode()
        return np.array(json.loads(self._get("/v1/predict", body, timeout))["predictions"])

    def metrics(self) -> str:
        """Return what the service tells Prometheus."""
        return self._get("/metrics")

    def model(self) -> dict[str, Any]:
        """Return what the service says of its engine."""
        return json.loads(self._get("/v1/model"))

    def stop(self, timeout: float = 60.0) -> dict[str, int]:
        """Shut it down: what it accepted is answered first. Returns what became of all samples.

        ServiceError if it left requests unanswered, or did not end in time.
        """
        if not self.counts:
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGTERM)
            self.counts = json.loads(self._line(CLOSED, timeout).removeprefix(CLOSED))
            try:
                status = self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise ServiceError(f"the service did not end within {timeout:g} seconds; it was killed") from None
            said = self._said()
            self._child.kill()
            if status:
                raise ServiceError(f"the service ended with the status {status}: {said}")
        return self.counts

    def kill(self) -> None:
        """End it at once, and lose what it has in hand."""
        self._child.kill()

    def __enter__(self) -> "RunningService":
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is None and self._process.poll() is None:
            self.stop()
        else:
            self.kill()

    def _get(self, path: str, body: bytes | None = None, timeout: float = 60.0) -> str:
        request = urllib.request.Request(self.url + path, body, {"Content-Type": "application/json"})
        # Without a proxy: the service is on this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout) as response:
                return response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, json.loads(error.read())["error"]) from None

    def _read(self) -> None:
        with self._process.stdout as lines:
            for line in lines:  # to the end, or the pipe would fill up and stop the service
                self._lines.put(line.decode(errors="replace").rstrip("\n"))
        self._lines.put(None)

    def _line(self, beginning: str, timeout: float) -> str:
        """Return the next line of its standard output that begins so."""
        deadline = time.monotonic() + timeout
        with waiting() as say:
            while (left := deadline - time.monotonic()) > 0:
                try:
                    line = self._lines.get(timeout=min(1.0, left))
                except queue.Empty:
                    say("waiting for the service, which loads or compiles")
                    continue
                if line is None:
                    self._process.wait()
                    raise ServiceError(f"the service ended: {self._said()}")
                if line.startswith(beginning):
                    return line
        self.kill()
        raise ServiceError(f"the service said nothing for {timeout:g} seconds; it was killed")

    def _said(self) -> str:
        """Return the end of what it wrote to standard error."""
        return self._child.last_words().removeprefix("error: ") or "it gave no reason"


def start(
    engine: str = "kernels.serving.serve.engines:digits",
    *,
    options: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    **arguments: Any,
) -> RunningService:
    """Start `python -m kernels.serving.serve` on a free port, and return when it serves.

    `options`: of the engine. `arguments`: of the command, with underscores: batch_limit=32, wait_limit=0.002,
    capacity=256, body_limit=..., grace=...; `environment`: variables to set. ServiceError with what the service said if
    it does not start.
    """
    command = module("kernels.serving.serve", f"--engine={engine}", "--until-stdin-closes")
    for key, value in {"port": 0, **arguments}.items():
        command.append(f"--{key.replace('_', '-')}={value}")
    for key, value in (options or {}).items():
        command.append(f"--option={key}={json.dumps(value)}")
    return RunningService(command, environment or {})
