"""Trains a run as its worker does, with a checkpoint after each step, and is killed: kill_at.py RUN_FOLDER MOMENT ...

SIGKILL, so nothing is flushed, closed or tidied. MOMENT is one of MOMENTS, or one of OTHERS; with several, one process
after the other goes on with the run. What they printed is printed, and at the end a line of JSON: [their exit statuses,
the steps that had a checkpoint after each, the run's state after each].
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from digits.training import checkpoints, curves, runs, trained, trainer, worker

MOMENTS = (
    "while TensorFlow is prepared",
    "before the first checkpoint's checksum",
    "in step 3",
    "half the curves are cut",
    "half the arrays of a checkpoint are written",
    "between a checkpoint's arrays and its checksum",
    "half a checkpoint's checksum is written",
    "before older checkpoints are deleted",
    "half a point of the curve is written",
    "before a point reaches TensorBoard",
    "in the middle of a validation",
    "half a state is written",
    "before the last checkpoint",
    "half of model.keras is written",
    "before the last state",
)
OTHERS = (
    "never",
    "the newest checkpoint is cut",  # by somebody, while no process lives
    "the disk is full",  # to a worker: a limit on the size of files, which the next checkpoint does not fit
)


def kill(*_args: Any, **_keywords: Any) -> Any:
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def at_call(number: int, then: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does `otherwise`, and `then` when it is called for the `number`th time."""
    calls = [0]

    def called(*args: Any, **keywords: Any) -> Any:
        calls[0] += 1
        return (then if calls[0] == number else otherwise)(*args, **keywords)

    return called


def half_written(path: Any, write: Callable[[Any], object]) -> None:
    """Begin to replace a file, as files.write_file does, and die."""
    import io

    whole = io.BytesIO()
    write(whole)
    data = whole.getvalue()
    (path.parent / f".unfinished-{path.name}-killed").write_bytes(data[: len(data) // 2])
    kill()


def half_json(path: Any, value: Any) -> None:
    half_written(path, lambda stream: stream.write(repr(value).encode()))


def half_line(path: Any, value: Any) -> None:
    with path.open("a") as stream:
        stream.write(repr(value)[:20])
    kill()


def prepare(moment: str) -> None:
    """Have this process killed at `moment`."""
    trainer.CHECKPOINT_EPOCH = trainer.CHECKPOINT_STEP = 0.0
    trainer.MOST_WRITING = math.inf
    Trainer = trainer.Trainer
    if moment == "while TensorFlow is prepared":
        Trainer._functions = kill
    elif moment == "before the first checkpoint's checksum":
        checkpoints.write_json = kill
    elif moment == "in step 3":
        Trainer._train_step = at_call(3, kill, Trainer._train_step)
    elif moment == "half the curves are cut":
        curves.write_file = half_written
    elif moment == "half the arrays of a checkpoint are written":
        checkpoints.write_file = at_call(3, half_written, checkpoints.write_file)
    elif moment == "between a checkpoint's arrays and its checksum":
        checkpoints.write_json = at_call(3, kill, checkpoints.write_json)
    elif moment == "half a checkpoint's checksum is written":
        checkpoints.write_json = at_call(2, half_json, checkpoints.write_json)
    elif moment == "before older checkpoints are deleted":
        checkpoints._prune = at_call(2, kill, checkpoints._prune)
    elif moment == "half a point of the curve is written":
        curves.append_line = at_call(2, half_line, curves.append_line)
    elif moment == "before a point reaches TensorBoard":
        from digits.training.events import Events

        Events._write = kill
    elif moment == "in the middle of a validation":
        Trainer._validate = stopped_in_validation(Trainer._validate)
    elif moment == "half a state is written":
        worker.write_json = at_call(2, half_json, worker.write_json)
    elif moment == "before the last checkpoint":
        Trainer._checkpoint = before_the_last(Trainer._checkpoint)
    elif moment == "half of model.keras is written":
        trained.write_file = half_written
    elif moment == "before the last state":
        worker._State.end = kill
    elif moment == "the newest checkpoint is cut":
        worker.main = cut_newest
    elif moment == "the disk is full":
        size = min(stored.arrays.stat().st_size for stored in checkpoints.listed(Path(sys.argv[1])))
        runs.RESERVED = 100
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, resource.RLIM_INFINITY))
    elif moment != "never":
        raise SystemExit(f"There is no moment {moment!r}.")


def cut_newest(arguments: list[str]) -> int:
    newest = checkpoints.listed(Path(arguments[0]))[-1].arrays
    newest.write_bytes(newest.read_bytes()[:-100])
    return 0


def stopped_in_validation(validate: Callable[..., Any]) -> Callable[..., Any]:
    """A validation in which the second batch is never measured; that of step 0 is left as it is."""

    def validated(self: Any) -> Any:
        if self.step:
            self._validation_function = at_call(2, kill, self._validation_function)
        return validate(self)

    return validated


def before_the_last(write: Callable[..., Any]) -> Callable[..., Any]:
    def written(self: Any, keep: bool = False) -> None:
        if self.step == self.steps:
            kill()
        write(self, keep)

    return written


def main(folder: str, moments: list[str]) -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = trainer.ONEDNN
    import tensorflow  # noqa: F401  imported once, before it starts threads, and inherited by each process

    statuses, steps, states = [], [], []
    for moment in moments:
        sys.stdout.flush()
        if not (process := os.fork()):
            prepare(moment)
            os._exit(ended(worker.main([folder])))
        _, status = os.waitpid(process, 0)
        statuses.append(os.waitstatus_to_exitcode(status))
        run = runs.Run(Path(folder))
        steps.append(run.checkpoints())
        states.append(run.state())
    print(json.dumps([statuses, steps, states]))


def ended(status: int) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
