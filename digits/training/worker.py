"""The process that trains one run: `python -m digits.training.worker RUN_FOLDER`.

It holds the run's lock while it lives, so a second worker for the same run is refused, and a run whose state says
"running" and whose lock is free was killed. It asks the file `wanted` before each step, and ends itself when it reads
"pause" or "stop"; SIGTERM and Ctrl-C are a pause.
"""

import contextlib
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from digits.data.dataset import Dataset
from digits.files import DigitsError, read_json, write_json
from digits.jobs import STATE, wanted, work, write_wanted
from digits.training.load import Sampler
from digits.training.runs import RESERVE, Run, reserve
from digits.training.trainer import Trainer
from digits.workspace import Workspace

STATE_EVERY = 0.5  # seconds between states while all goes on


def main(arguments: list[str] | None = None) -> int:
    """Train the run until it is done, paused, stopped or failed; return 0, or 1 if it failed, 2 if it is refused."""

    def first(folder: Path) -> None:
        reserve(folder)
        write_wanted(folder, "run")  # in place of what was wanted of an earlier worker

    busy = "Another worker trains the run {name} already. Wait for it, or pause it."
    return work("digits.training.worker", busy, _work, arguments, first)


def _work(folder: Path) -> int:
    state = _State(folder)
    asked_to_end: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: asked_to_end.append(got))

    def wanted_now() -> str:
        return "pause" if asked_to_end else wanted(folder)

    try:
        state.begin()
        spec = Run(folder).spec
        dataset = Dataset.open(Workspace(folder.parent.parent), spec.dataset)
        with Sampler(folder):
            ended = Trainer(folder, dataset, spec, wanted_now, state.progress, _say).train()
        status, message = {
            "done": ("done", "Done."),
            "pause": ("paused", "Paused. Resume goes on from here."),
            "stop": ("stopped", "Stopped. Resume goes on from here."),
        }[ended]
        state.end(status, message)
        return 0
    except BaseException as error:
        traceback.print_exc()
        state.end("failed", _told(error, folder))
        return 1


def _told(error: BaseException, folder: Path) -> str:
    """Return the error as a sentence for the page."""
    if isinstance(error, DigitsError):
        return str(error)
    if isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError":
        return "The memory is not enough. Choose a smaller batch or a smaller network, or end other programs."
    first = (str(error).strip() or "no reason given").split("\n")[0][:300]
    return f"Training ended with {type(error).__name__}: {first}. The whole message is in log.txt of {folder.name}."


def _say(line: str) -> None:
    print(time.strftime("%Y-%m-%d %H:%M:%S"), line, flush=True)


class _State:
    """state.json, written at every change of status and otherwise at most every half second."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path, self._reserve = folder, folder / STATE, folder / RESERVE
        self._value: dict[str, Any] = {}
        self._written = 0.0

    def begin(self) -> None:
        with contextlib.suppress(DigitsError):
            self._value = read_json(self._path)
        self._value |= {"status": "waiting", "pid": os.getpid(), "remaining": None}
        self._value.setdefault("message", "")
        write_json(self._path, self._value)

    def progress(self, progress: dict[str, Any]) -> None:
        begins = self._value["status"] == "waiting"
        self._value |= {**progress, "status": "running", "message": ""}
        now = time.monotonic()
        if begins or now - self._written >= STATE_EVERY:
            write_json(self._path, self._value)
            self._written = now

    def end(self, status: str, message: str) -> None:
        self._value |= {"status": status, "message": message, "remaining": None}
        _say(message)
        self._reserve.unlink(missing_ok=True)
        try:
            write_json(self._path, self._value)
        except DigitsError as error:  # the state then still says "running", and the free lock tells the rest
            _say(str(error))


if __name__ == "__main__":
    sys.exit(main())
