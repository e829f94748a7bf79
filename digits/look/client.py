"""The page's side of a look: starts the model's process, asks it, and starts it again when it has died."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from digits.look.answers import Checkpoint, Layer, Model, Saliency, Tested, layers_from_message
from digits.look.errors import LookError
from digits.look.frames import BadFrame, pack, read
from digits.training import trained
from warplab.paths import COURSE

PATIENCE = 600.0  # seconds without an answer or a sign of progress
START = 120.0  # seconds in which TensorFlow starts even on a busy machine
Progress = Callable[[float], None]


class _Died(RuntimeError):
    """The model's process ended before it answered. Its text: how."""


def open(run: Any) -> Inside:
    """Look inside a run: a Run, or the folder of one. No process starts before the first question.

    LookError if there is no such run.
    """
    folder = Path(getattr(run, "folder", run))
    _check(folder)
    return Inside(folder)


def _check(folder: Path) -> None:
    if not (folder / "run.json").is_file():
        raise LookError(f"There is no run {folder.name}. Choose another; it may have been deleted.")


class Inside:
    """The model of a run, behind questions. Safe to use from several threads; one question is answered at a time.

    Images are uint8 of shape (n, h, w, c), one image (h, w, c), at the size of the run's dataset. `checkpoint`: the
    name of one of `checkpoints`, None for the last weights. All questions raise LookError with a sentence.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: Any = None
        self._cancelled = False

    def model(self, checkpoint: str | None = None) -> Model:
        """What the model is: its input, classes, and a table of its layers."""
        return Model.from_message(*self._ask("model", {"checkpoint": checkpoint}))

    def checkpoints(self) -> list[Checkpoint]:
        """The run's checkpoints, the newest first."""
        return [Checkpoint(one.name, one.step, one.epoch) for one in trained.listed(self.folder)]

    def classify(
        self, images: np.ndarray, checkpoint: str | None = None, progress: Progress | None = None
    ) -> np.ndarray:
        """Probabilities, float32 (n, classes)."""
        return self._ask("classify", {"checkpoint": checkpoint}, {"images": images}, progress)[1]["probabilities"]

    def predict(
        self, images: np.ndarray, checkpoint: str | None = None, progress: Progress | None = None
    ) -> dict[str, np.ndarray]:
        """The model's outputs as they are, float32 (n, ...), by name."""
        return self._ask("predict", {"checkpoint": checkpoint}, {"images": images}, progress)[1]

    def layers(self, image: np.ndarray, checkpoint: str | None = None) -> list[Layer]:
        """What every layer makes of an image, its first channels, and its weights."""
        return layers_from_message(*self._ask("layers", {"checkpoint": checkpoint}, {"image": image}))

    def layer(self, image: np.ndarray, name: str, checkpoint: str | None = None) -> Layer:
        """One layer as in `layers`, with more of its channels and pixels."""
        return layers_from_message(*self._ask("layers", {"checkpoint": checkpoint, "name": name}, {"image": image}))[0]

    def saliency(
        self,
        image: np.ndarray,
        label: int | None = None,
        method: str = "gradient",
        checkpoint: str | None = None,
        progress: Progress | None = None,
    ) -> Saliency:
        """Which pixels speak for class `label`, by default the answered one. `method`: "gradient" or "occlusion"."""
        given = {"checkpoint": checkpoint, "label": label, "method": method}
        return Saliency.from_message(*self._ask("saliency", given, {"image": image}, progress))

    def test(
        self,
        part: str = "validation",
        images: int | None = None,
        checkpoint: str | None = None,
        progress: Progress | None = None,
    ) -> Tested:
        """Classify a part of the run's dataset, or `images` of it, evenly spread."""
        given = {"checkpoint": checkpoint, "part": part, "images": images}
        return Tested.from_message(*self._ask("test", given, progress=progress))

    @property
    def pid(self) -> int | None:
        """The process's id, or None while none runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def cancel(self) -> None:
        """Break off the question that is being answered: it raises LookError. From another thread."""
        if self._lock.locked():
            self._cancelled = True
            if (process := self._process) is not None:
                process.kill()

    def close(self) -> None:
        """End the process, and break off what it answers. The next question starts another one."""
        self.cancel()
        with self._lock:
            self._end()

    def __enter__(self) -> Inside:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(
        self,
        ask: str,
        given: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray] | None = None,
        progress: Progress | None = None,
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        _check(self.folder)
        if not trained.listed(self.folder):
            raise LookError(f"The run {self.folder.name} has no weights yet. Wait for its first checkpoint.")
        try:
            frame = pack({"ask": ask, "given": dict(given)}, arrays)
        except (ValueError, TypeError) as error:
            raise LookError(f"This question cannot be asked: {error}") from error
        with self._lock:
            self._cancelled = False
            for last in (False, True):
                try:
                    return self._answered(frame, progress or (lambda share: None))
                except _Died as died:
                    self._end()
                    if self._cancelled:
                        raise LookError("The question was broken off.") from None
                    if last:
                        raise LookError(
                            f"The model's process ended twice before it could answer ({died}). If the memory is "
                            "short, stop other runs or ask about fewer images, then ask again."
                        ) from None
                except BaseException as error:
                    # After an interrupt or nonsense in the pipe the next frame could be the answer to this question.
                    if not isinstance(error, LookError):
                        self._end()
                    raise
        raise AssertionError

    def _answered(self, frame: bytes, progress: Progress) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        patience = PATIENCE
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._start()
            patience += START
        if self._cancelled:
            raise _Died("it was stopped")
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            rest = memoryview(frame)
            while rest:
                rest = rest[process.stdin.write(rest) :]
        except OSError:
            raise _Died(self._how()) from None
        pipe = process.stdout.fileno()
        while True:
            try:
                message, arrays = read(lambda count: self._exactly(pipe, count, patience))
            except BadFrame as error:
                raise LookError(f"The model's process answered nonsense: {error}. Ask again.") from error
            if "progress" in message:
                progress(float(message["progress"]))
            elif "error" in message:
                raise LookError(str(message["error"]))
            else:
                return message["answer"], arrays

    def _exactly(self, pipe: int, count: int, patience: float) -> bytes:
        parts, deadline = [], time.monotonic() + patience
        while count:
            if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self._end()
                raise LookError(
                    f"The model has not answered for {patience:.0f} s; it was stopped. Ask for less at once."
                )
            data = os.read(pipe, min(count, 1 << 20))
            if not data:
                raise _Died(self._how())
            parts.append(data)
            count -= len(data)
        return b"".join(parts)

    def _start(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, closed with the process
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "digits.look.process", str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                cwd=COURSE,
                # In a session of its own: an interrupt meant for the notebook's kernel does not reach it.
                start_new_session=True,
            )
        except OSError as error:
            raise LookError(
                f"The model's process cannot be started: {error}. Close something, then ask again."
            ) from error

    def _how(self) -> str:
        """How the process ended: a signal or a status, and the last line that it wrote."""
        process = self._process
        if process is None:
            return "it was stopped"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        code = process.returncode
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        how = f"signal {-code}" if code is not None and code < 0 else f"status {code}"
        return f"{how}; last words: {lines[-1][:200]}" if lines else how

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._end()
