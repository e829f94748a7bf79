"""Runs: started, paused, resumed and read from any process; each is a folder of plain files and a process of its own.

    run = start(workspace, RunSpec(dataset=id))
    run.wait(60)["status"]

The page that starts a run may be closed or killed: the worker is detached, and only its lock on the folder says that
it lives. Nothing here imports TensorFlow.
"""

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from digits.data.dataset import Dataset
from digits.files import DigitsError, Lock, delete_folder, read_json, read_lines, write_file, write_json
from digits.jobs import ALIVE, LOCK, STATE, Job, launch, write_wanted
from digits.networks import keras_file
from digits.networks.starts import FILE, LAB_09
from digits.training import checkpoints
from digits.training.curves import points
from digits.training.records import EMPTY, ENDED, is_load, read_state
from digits.training.spec import RunSpec
from digits.workspace import Workspace

RUN = "run.json"
RESERVE = "reserve"  # a file that a worker gives up when the disk is full, so that the state can still say so
RESERVED = 64 * 1024  # bytes
LOAD, MODEL, EVENTS = "load.jsonl", "model.keras", "events"


class Run(Job):
    """A run that is in `folder`. Every question reads the files, so the answer is the same in every process."""

    ENDED = ENDED
    BUSY = "Cannot {doing} the run {name} while it is training. Pause it first."
    _spec: RunSpec | None = None

    @property
    def spec(self) -> RunSpec:
        """Return what was asked. Raises DigitsError if run.json is damaged."""
        if self._spec is None:
            about = read_json(self.folder / RUN)
            self._spec = RunSpec.from_json({key: about[key] for key in about if key not in ("id", "created")})
        return self._spec

    @property
    def name(self) -> str:
        with contextlib.suppress(DigitsError):
            return self.spec.name
        return self.id

    def state(self) -> dict[str, Any]:
        """Return the keys of records.EMPTY: how far the run is, and how it is. Never raises.

        `status`: "waiting" (the worker starts), "running", "paused", "stopped", "done", "failed" (`message` says why),
        "killed" (the worker is gone without a word) or "broken" (files of the run are missing or damaged). `seconds`:
        spent training, over all resumes; `remaining`: expected, or None. `last`: {"train": the last line of that curve,
        "validation": ...}; `best`: the line of the validation whose main figure was best, or None. `notes`: sentences
        about the start's weights that were taken, and about damaged checkpoints.
        """
        try:
            assert self.spec
            state = self.settled(lambda: read_state(self.folder / STATE), self._killed)
            return state | ({"remaining": None} if state["status"] == "killed" else {})
        except DigitsError as error:
            return EMPTY | {"status": "broken", "message": str(error)}

    def _killed(self) -> str:
        steps = self.checkpoints()
        where = f"from step {steps[-1]}" if steps else "from the beginning"
        return f"The run's process is gone: it was killed, or the machine restarted. Resume goes on {where}."

    def curves(self) -> list[dict[str, Any]]:
        """Return the lines {"step", "epoch", "part": "train" or "validation", "loss", figures of the kind, "rate"}."""
        return points(self.folder)

    def load(self) -> list[dict[str, Any]]:
        """Return the lines of the machine's load; see digits.training.load."""
        return [line for line in read_lines(self.folder / LOAD) if is_load(line)]

    def checkpoints(self) -> list[int]:
        """Return the steps of which there are weights, in order."""
        return [stored.step for stored in checkpoints.listed(self.folder)]

    def pause(self) -> None:
        """Ask the worker to write a checkpoint after the step it is in and to end. DigitsError if there is none."""
        self._ask("pause")

    def stop(self) -> None:
        """Do as `pause` does, and write model.keras. A paused or killed run is marked as stopped."""
        if not self.alive and self.state()["status"] in ("paused", "killed"):
            with self.locked("stop"):
                state = read_state(self.folder / STATE)
                write_json(self.folder / STATE, state | {"status": "stopped", "remaining": None, "message": "Stopped."})
            return
        self._ask("stop")

    def _ask(self, wanted: str) -> None:
        status = self.state()["status"]
        if status not in ALIVE:
            raise DigitsError(f"The run {self.name} is {status}: there is nothing to {wanted}.")
        self.ask(wanted)

    def resume(self) -> None:
        """Start a worker that goes on from the last checkpoint. Raises DigitsError if one lives, or the run is done."""
        status = self.state()["status"]
        if status in ALIVE:
            raise DigitsError(f"The run {self.name} is {status} already.")
        if status == "done":
            raise DigitsError(f"The run {self.name} is done. Start a new run from its weights to train on.")
        if status == "broken":
            raise DigitsError(f"The run {self.name} cannot be resumed. {self.state()['message']}")
        with contextlib.suppress(DigitsError):  # an old worker that is just ending gives its lock back within moments
            self.wait(1.0, until=ENDED)
        _launch(self.folder, self.state())


def start(workspace: Workspace, spec: RunSpec) -> Run:
    """Create a run and start its worker; return at once.

    Raises DigitsError if the dataset is missing, unfinished or of another kind, or if the disk is full; there is then
    no run. What only the worker can find out (a network that does not fit the images, say) makes the run "failed".
    """
    _check_dataset(workspace, spec)
    if spec.start not in (None, LAB_09):
        _check_start(workspace, str(spec.start))
    folder = workspace.create("runs", spec.name)
    try:
        created = datetime.now(UTC).isoformat(timespec="seconds")
        write_json(folder / RUN, {"id": folder.name, "created": created, **spec.to_json()})
        _launch(folder, EMPTY | {"epochs": spec.solver.epochs})
    except BaseException:
        delete_folder(folder)
        raise
    return Run(folder)


def open(workspace: Workspace, id: str) -> Run:
    """Return the run `id`. Raises DigitsError if there is none."""
    return Run(workspace.folder("runs", id))


def listing(workspace: Workspace) -> list[Run]:
    """Return all runs, newest first. One that is damaged is among them, its status "broken"."""
    return [Run(workspace.runs / id) for id in workspace.ids("runs")]


def _check_dataset(workspace: Workspace, spec: RunSpec) -> None:
    dataset = Dataset.open(workspace, spec.dataset)
    name = dataset.name
    if dataset.status != "ready":
        raise DigitsError(f"The dataset {name} is {dataset.status}. Wait until it is ready, or build it again.")
    if dataset.kind != spec.kind:
        raise DigitsError(f"The dataset {name} is made for {dataset.kind}, not for {spec.kind}. Choose another.")
    for part in ("train", "validation"):
        if not dataset.counts.get(part):
            raise DigitsError(f"The dataset {name} has no {part} images. Build it again with a larger share for them.")


def _check_start(workspace: Workspace, id: str) -> None:
    if id.startswith(FILE):
        keras_file.config(workspace.root, id)
    elif not Run(workspace.folder("runs", id)).checkpoints():
        raise DigitsError(f"The run {id} has no weights yet to start from. Wait for its first checkpoint.")


def _launch(folder: Path, state: dict[str, Any]) -> None:
    """Take the run's lock and start a worker that inherits it: at no moment is the run anybody else's."""
    lock = Lock(folder / LOCK)
    if not lock.acquire():
        raise DigitsError(f"Another process is training the run {folder.name} already. Wait for it, or pause it.")
    try:
        reserve(folder)
        write_wanted(folder, "run")
        message = "Starting: TensorFlow takes some seconds."
        write_json(folder / STATE, state | {"status": "waiting", "pid": None, "remaining": None, "message": message})
        launch(folder, lock, "digits.training.worker", f"start the run {folder.name}")
    finally:
        lock.release()


def reserve(folder: Path) -> None:
    """Set aside the room on the disk that a worker needs to say that the disk is full. DigitsError if there is none."""
    write_file(folder / RESERVE, lambda stream: stream.write(os.urandom(RESERVED)))
