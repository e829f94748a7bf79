"""Engines that tests hold in their hands, by name as services take them."""

import os
import threading
import time
from pathlib import Path

import numpy as np

from tests.support.waiting import HANG, until


class Gate:
    """Answers with the sum of each sample, once the gate is open; `batches` are those that came to it."""

    name = "gate"
    shape = (2,)

    def __init__(self, at_once: int = 1) -> None:
        self.at_once, self.batches, self.closed = at_once, [], False
        self._open = threading.Event()

    def open(self) -> None:
        self._open.set()

    def predict(self, batch: np.ndarray) -> np.ndarray:
        self.batches.append(batch.copy())
        if not self._open.wait(HANG):
            raise TimeoutError("the test never opened the gate")
        return batch.sum(axis=1, keepdims=True)

    def close(self) -> None:
        self.closed = True


class FileGate:
    """The same between processes: a batch puts a file into `folder` and waits for the file `open` there."""

    name = "gate of files"
    shape = (2,)

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def predict(self, batch: np.ndarray) -> np.ndarray:
        if batch.any():  # not when it warms up
            number = len(list(self._folder.glob(f"batch-{os.getpid()}-*")))
            (self._folder / f"batch-{os.getpid()}-{number}").touch()
            until((self._folder / "open").exists, "the opening of the gate")
        if (batch < 0).any():
            raise RuntimeError("told to fail")
        return batch.sum(axis=1, keepdims=True)


class Slow:
    """Takes so many seconds for each sample."""

    name = "slow"

    def __init__(self, seconds: float, numbers: int) -> None:
        self._seconds, self.shape = seconds, (numbers,)

    def predict(self, batch: np.ndarray) -> np.ndarray:
        time.sleep(self._seconds * len(batch))
        return batch.sum(axis=1, keepdims=True)


def wrong_rows() -> object:
    class Wrong:
        name, shape = "wrong", (2,)

        def predict(self, batch: np.ndarray) -> np.ndarray:
            return np.zeros((len(batch) + 1, 1))

    return Wrong()
