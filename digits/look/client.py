"""The page's side of a look: starts the model's process, asks it, and starts it again when it has died."""

import contextlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from digits.look.answers import LayerOutput, Model, Saliency, Tested, unpacked
from digits.look.errors import LookError
from digits.training import trained
from warpcourse.processes.child import Child, ChildEnded, ChildSilent, module
from warpcourse.processes.messages import BadMessage

PATIENCE = 600.0  # seconds without an answer or a sign of progress
START = 120.0  # seconds in which TensorFlow starts even on a busy machine
Progress = Callable[[float], None]


def open(run: Any) -> "Inside":
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
        self._child: Child | None = None
        self._cancelled = False

    def model(self, checkpoint: str | None = None) -> Model:
        """Return what the model is: its input, classes, and a table of its layers."""
        return unpacked(Model, *self._ask("model", {"checkpoint": checkpoint}))

    def checkpoints(self) -> list[trained.Weights]:
        """Return the run's checkpoints, the newest first."""
        return trained.listed(self.folder)

    def classify(
        self, images: np.ndarray, checkpoint: str | None = None, progress: Progress | None = None
    ) -> np.ndarray:
        """Return probabilities, float32 (n, classes)."""
        return self._ask("classify", {"checkpoint": checkpoint}, {"images": images}, progress)[1]["probabilities"]

    def predict(
        self, images: np.ndarray, checkpoint: str | None = None, progress: Progress | None = None
    ) -> dict[str, np.ndarray]:
        """Return the model's outputs as they are, float32 (n, ...), by name."""
        return self._ask("predict", {"checkpoint": checkpoint}, {"images": images}, progress)[1]

    def layers(self, image: np.ndarray, checkpoint: str | None = None) -> list[LayerOutput]:
        """Return what every layer makes of an image, its first channels, and its weights."""
        return unpacked(list[LayerOutput], *self._ask("layers", {"checkpoint": checkpoint}, {"image": image}))

    def layer(self, image: np.ndarray, name: str, checkpoint: str | None = None) -> LayerOutput:
        """Return one layer as in `layers`, with more of its channels and pixels."""
        given = {"checkpoint": checkpoint, "name": name}
        return unpacked(list[LayerOutput], *self._ask("layers", given, {"image": image}))[0]

    def saliency(
        self,
        image: np.ndarray,
        label: int | None = None,
        method: str = "gradient",
        checkpoint: str | None = None,
        progress: Progress | None = None,
    ) -> Saliency:
        """Return which pixels speak for `label`, None for the answer. `method`: "gradient" or "occlusion"."""
        given = {"checkpoint": checkpoint, "label": label, "method": method}
        return unpacked(Saliency, *self._ask("saliency", given, {"image": image}, progress))

    def test(
        self,
        part: str = "validation",
        images: int | None = None,
        checkpoint: str | None = None,
        progress: Progress | None = None,
    ) -> Tested:
        """Classify a part of the run's dataset, or `images` of it, evenly spread."""
        given = {"checkpoint": checkpoint, "part": part, "images": images}
        return unpacked(Tested, *self._ask("test", given, progress=progress))

    @property
    def pid(self) -> int | None:
        """Return the process's id, or None while none runs."""
        child = self._child
        return child.pid if child is not None and child.process.poll() is None else None

    def cancel(self) -> None:
        """Break off the question that is being answered: it raises LookError. From another thread."""
        if self._lock.locked():
            self._cancelled = True
            if (child := self._child) is not None:
                child.process.kill()

    def close(self) -> None:
        """End the process, and break off what it answers. The next question starts another one."""
        self.cancel()
        with self._lock:
            self._end()

    def __enter__(self) -> "Inside":
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
        question = {"ask": ask, "given": dict(given)}
        with self._lock:
            self._cancelled = False
            for last in (False, True):
                try:
                    return self._answered(question, arrays, progress or (lambda share: None))
                except ChildEnded as ended:
                    self._end()
                    if self._cancelled:
                        raise LookError("The question was broken off.") from None
                    if last:
                        raise LookError(
                            f"The model's process ended twice before it could answer ({ended}). If the memory is "
                            "short, stop other runs or ask about fewer images, then ask again."
                        ) from None
                except BaseException as error:
                    # After an interrupt or nonsense in the pipe the next message could be the answer to this question.
                    if not isinstance(error, LookError):
                        self._end()
                    raise
        raise AssertionError

    def _answered(
        self, question: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None, progress: Progress
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        patience = PATIENCE
        if self._child is None or self._child.process.poll() is not None:
            self._end()
            self._child = _started(self.folder)
            patience += START
        if self._cancelled:
            raise ChildEnded("it was stopped")
        child = self._child
        try:
            child.send(question, arrays)
        except (ValueError, TypeError) as error:
            raise LookError(f"This question cannot be asked: {error}") from error
        while True:
            try:
                message, found = child.receive(patience)
            except BadMessage as error:
                self._end()
                raise LookError(f"The model's process answered nonsense: {error}. Ask again.") from error
            except ChildSilent:
                self._end()
                raise LookError(
                    f"The model has not answered for {patience:.0f} s; it was stopped. Ask for less at once."
                ) from None
            if "progress" in message:
                progress(float(message["progress"]))
            elif "error" in message:
                raise LookError(str(message["error"]))
            else:
                return message["answer"], found

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._end()


def _started(folder: Path) -> Child:
    try:
        return Child(module("digits.look.process", str(folder)), arrays=True)
    except OSError as error:
        raise LookError(f"The model's process cannot be started: {error}. Close something, then ask again.") from error
