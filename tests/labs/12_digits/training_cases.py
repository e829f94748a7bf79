"""Trainings in one TensorFlow process, for tests that look at what came of them: training_cases.py FOLDER.

Prints one line of JSON, {case: what it returned}. TensorFlow's deterministic operations cannot be switched off again,
so this is a process of its own.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import resource
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from digits import networks
from digits.data.dataset import Dataset
from digits.files import DigitsError, read_json
from digits.networks import googlenet, starts
from digits.training import checkpoints, runs, trained
from digits.training.classification import Classification
from digits.training.runs import Run
from digits.training.spec import OPTIMIZERS, RunSpec, Solver
from digits.training.trainer import Trainer
from digits.workspace import Workspace

helpers = importlib.import_module("tests.labs.12_digits.runs_for_tests")
CASES: list[Callable[[Workspace], Any]] = []


def case(function: Callable[[Workspace], Any]) -> Callable[[Workspace], Any]:
    CASES.append(function)
    return function


class Training:
    """A run trained here, a part at a time."""

    def __init__(self, workspace: Workspace, dataset: Dataset, spec: RunSpec) -> None:
        self.workspace, self.dataset = workspace, dataset
        self.run = helpers.unstarted(workspace, spec)
        self.said: list[str] = []

    def until(self, step: int | None = None, wanted: str = "pause") -> str:
        """Train until `wanted` is asked for before step `step`, counted from 0; to the end if it is None."""
        trainer: list[Trainer] = []

        def asked() -> str:
            return wanted if step is not None and trainer and trainer[0].step >= step else "run"

        trainer.append(Trainer(self.run.folder, self.dataset, self.run.spec, asked, lambda _: None, self.said.append))
        self.model = None
        ended = trainer[0].train()
        self.model, self.best = trainer[0].model, trainer[0].best
        return ended

    def weights(self) -> dict[str, np.ndarray]:
        return checkpoints.latest(self.run.folder)[0]  # type: ignore[return-value]

    def equals(self, other: Training) -> bool:
        mine, theirs = self.weights(), other.weights()
        same = mine.keys() == theirs.keys() and all((mine[name] == theirs[name]).all() for name in mine)
        return same and self.run.curves() == other.run.curves()


def small(workspace: Workspace, dataset: Dataset | None = None, **solver: Any) -> Training:
    dataset = dataset or helpers.small_dataset(workspace)
    return Training(workspace, dataset, helpers.small_spec(dataset, **solver))


def told(function: Callable[[], Any]) -> str:
    """The sentence of the DigitsError that `function` ends with."""
    try:
        function()
    except DigitsError as error:
        return str(error)
    return ""


@case
def paused_at_many_steps(workspace: Workspace) -> Any:
    unbroken = small(workspace, epochs=2)
    unbroken.until()
    paused = small(workspace, unbroken.dataset, epochs=2)
    reached = []
    for step in (0, 3, 12, 13, 23):
        assert paused.until(step) == "pause"
        reached.append(read_json(checkpoints.listed(paused.run.folder)[-1].about)["step"])
    assert paused.until() == "done"
    return {"equal": paused.equals(unbroken), "reached": reached, "said": paused.said[:3]}


@case
def a_pause_in_a_validation_leaves_no_point_and_comes_back_to_it(workspace: Workspace) -> Any:
    unbroken, paused = (small(workspace, helpers.small_dataset(workspace), epochs=1) for _ in range(2))
    unbroken.until()
    trainer: list[Trainer] = []
    asked_in_validation = []

    def asked() -> str:
        if trainer and trainer[0].step == 12 and trainer[0].validated == 0:
            asked_in_validation.append(1)
        return "pause" if len(asked_in_validation) >= 3 else "run"  # before it, before its first batch, its second

    run = paused.run
    trainer.append(Trainer(run.folder, paused.dataset, run.spec, asked, lambda _: None, paused.said.append))
    ended = trainer[0].train()
    parts = [line["part"] for line in run.curves() if line["step"] == 12]
    paused.until()
    return {"ended": ended, "parts": parts, "equal": run.curves() == unbroken.run.curves()}


@case
def each_optimizer_resumes(workspace: Workspace) -> Any:
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)  # compiling takes most of the time
    dataset = helpers.small_dataset(workspace, train=8, validation=10)
    found = {}
    for optimizer in OPTIMIZERS:
        solver = {"epochs": 2, "optimizer": optimizer, "decay": 0.01 * (optimizer != "adam"), "momentum": 0.8}
        unbroken = small(workspace, dataset, **solver)
        unbroken.until()
        first, last = (unbroken.run.curves()[at]["loss"] for at in (1, -1))
        found[optimizer] = {"first": first, "last": last}
        if optimizer not in ("sgd", "adam", "adagrad"):  # one of those that keep the same variables is enough
            broken = small(workspace, dataset, **solver)
            broken.until(3)
            broken.until()
            found[optimizer]["equal"] = broken.equals(unbroken)
    tf.config.run_functions_eagerly(False)
    return found


@case
def each_precision_resumes(workspace: Workspace) -> Any:
    found = {}
    dataset = helpers.small_dataset(workspace)
    for precision in ("mixed_bfloat16", "mixed_float16"):
        solver = {"epochs": 2, "precision": precision}
        unbroken, broken = small(workspace, dataset, **solver), small(workspace, dataset, **solver)
        unbroken.until()
        broken.until(7)
        broken.until()
        layer = broken.model.get_layer("convolution_1")
        found[precision] = {
            "equal": broken.equals(unbroken),
            "computes": layer.compute_dtype,
            "holds": layer.variable_dtype,
            "puts out": broken.model.output.dtype,
            "accuracy": broken.best["accuracy"],
        }
    return found


@case
def what_is_trained_is_what_is_loaded(workspace: Workspace) -> Any:
    training = small(workspace, epochs=4, keep_every=1)
    training.until(30, "stop")
    folder = training.run.folder
    images = training.dataset.images("validation")[:20].astype(np.float32) / 255
    own = np.asarray(training.model(images))
    stopped = np.asarray(trained.load_model(training.run)(images))
    newest = np.asarray(trained.load_model(folder, checkpoints.listed(folder)[-1].name)(images))
    first = np.asarray(trained.load_model(folder, "step-000000012")(images))
    names = [(one.name, one.step, one.epoch) for one in trained.listed(folder)]
    training.until(32)
    gone = not (folder / "model.keras").exists()
    training.until()
    return {
        "stopped": bool((own == stopped).all()),
        "newest": bool((own == newest).all()),
        "earlier differs": bool((own != first).any()),
        "names": names,
        "a stopped model is removed when the run goes on": gone,
        "kept": training.run.checkpoints(),
        "after": [one.name for one in trained.listed(folder)][:2],
        "none": told(lambda: trained.load_model(folder, "step-000000099")),
    }


@case
def damage_is_told(workspace: Workspace) -> Any:
    training = small(workspace, epochs=1)
    training.until(5)
    folder = training.run.folder
    found = {}
    for stored in checkpoints.listed(folder):
        stored.arrays.write_bytes(b"nonsense")
    found["no checkpoint"] = told(lambda: trained.load_model(folder))
    training.until()
    unbroken = small(workspace, training.dataset, epochs=1)
    unbroken.until()
    found["begins again"] = [training.equals(unbroken), training.said[-1] != "", training.said]
    (folder / "model.keras").write_bytes(b"PK nonsense")
    found["model"] = told(lambda: trained.load_model(folder))
    (folder / "network.json").write_text("{}")
    found["network"] = told(lambda: trained.load_model(folder, checkpoints.listed(folder)[-1].name))
    other = helpers.small_dataset(workspace, train=30)
    changed = Training(workspace, other, helpers.small_spec(other, epochs=1))
    changed.until(2)
    changed.dataset = training.dataset
    found["dataset"] = told(changed.until)
    arrays, about, _ = checkpoints.latest(changed.run.folder)
    checkpoints.write(changed.run.folder, 3, {**arrays, "classes/0": np.zeros((3, 3))}, about)
    changed.dataset = other
    found["other network"] = told(changed.until)
    return found


@case
def a_rate_that_is_too_high_is_told(workspace: Workspace) -> Any:
    training = small(workspace, optimizer="sgd", rate=0.5, epochs=3)
    training.until(6)
    loss = Classification.loss
    try:
        Classification.loss = lambda self, targets, outputs: loss(self, targets, outputs) / 0.0
        sentence = told(training.until)
    finally:
        Classification.loss = loss
    return {"told": sentence, "last": training.run.curves()[-1]["loss"], "checkpoints": training.run.checkpoints()}


@case
def starts_from_trained_weights(workspace: Workspace) -> Any:
    first = small(workspace, epochs=2)
    first.until()
    spec = first.run.spec.to_json()
    again = Training(workspace, first.dataset, RunSpec.from_json(spec | {"start": first.run.id}))
    again.until(1)
    wider = Training(
        workspace,
        first.dataset,
        RunSpec.from_json(spec | {"start": first.run.id, "network": {"name": "lenet", "filters": 4, "units": 17}}),
    )
    wider.until(1)
    other = Training(
        workspace,
        first.dataset,
        RunSpec.from_json(spec | {"start": first.run.id, "network": {"name": "googlenet"}}),
    )
    gone = Training(workspace, first.dataset, RunSpec.from_json(spec | {"start": "20200101-000000-gone"}))
    last = [line for line in first.run.curves() if line["part"] == "validation"][-1]
    return {
        "same": [again.run.curves()[0][name] == last[name] for name in ("loss", "accuracy")],
        "said": again.said[0],
        "step 0 is kept": again.run.checkpoints(),
        "wider": wider.said[0],
        "other": told(other.until),
        "gone": told(gone.until),
    }


@case
def frozen_layers_stay_frozen_after_a_pause(workspace: Workspace) -> Any:
    first = small(workspace, epochs=1)
    first.until()
    spec = RunSpec.from_json(first.run.spec.to_json() | {"start": first.run.id, "freeze": True})
    unbroken, paused = (Training(workspace, first.dataset, spec) for _ in range(2))
    unbroken.until()
    for step in (0, 5, 7):
        paused.until(step)
    paused.until()
    before, after = first.weights(), paused.weights()
    kept = {name: bool((before[name] == after[name]).all()) for name in before if not name.startswith("optimizer")}
    return {"equal": paused.equals(unbroken), "kept": kept, "said": unbroken.said[:2]}


@case
def lab_09_is_a_start(workspace: Workspace) -> Any:
    from digits.data.builtin import sklearn_digits

    if importlib.util.find_spec("kernels.fusion") is None:
        return None
    dataset = sklearn_digits(workspace)
    spec = RunSpec(dataset.id, {"name": "googlenet"}, Solver(epochs=1), start=starts.LAB_09)
    training = Training(workspace, dataset, spec)
    training.until(1)
    return {"accuracy": training.run.curves()[0]["accuracy"], "said": training.said[0]}


@case
def lenet_learns_the_digits(workspace: Workspace) -> Any:
    from digits.data.builtin import sklearn_digits

    dataset = sklearn_digits(workspace)
    training = Training(workspace, dataset, RunSpec(dataset.id))
    training.until()
    lines = [line for line in training.run.curves() if line["part"] == "validation"]
    return [lines[0]["accuracy"], lines[-1]["accuracy"], lines[-1]["epoch"]]


@case
def each_network_has_the_promised_form(workspace: Workspace) -> Any:
    found = []
    sizes = ((8, 8, 1), (28, 28, 1), (9, 31, 3), (65, 48, 3), (224, 160, 3))
    for name, image, classes in [
        *(("lenet", size, 3) for size in sizes[:3]),
        *(("googlenet", size, 3) for size in sizes),
        ("googlenet", (8, 8, 1), 10),
    ]:
        model = networks.build(name, image, classes)
        outputs = model.outputs
        found.append([name, image, model.input_shape[1:], [one.shape[1:] for one in outputs], outputs[0].dtype])
    import keras

    keras.config.set_dtype_policy("mixed_bfloat16")
    mixed = [networks.build(name, (8, 8, 1), 10).outputs[0].dtype for name in ("lenet", "googlenet")]
    keras.config.set_dtype_policy("float32")
    own = googlenet._build((8, 8, 1), 10)
    lab = networks.build("googlenet", (8, 8, 1), 10)
    return {
        "networks": found,
        "mixed": mixed,
        "as lab 09": {layer.name: [list(one.shape) for one in layer.weights] for layer in own.layers}
        == {layer.name: [list(one.shape) for one in layer.weights] for layer in lab.layers},
        "small": told(lambda: networks.build("googlenet", (7, 8, 1), 2)),
        "smaller": told(lambda: networks.build("lenet", (8, 3, 1), 2)),
        "unknown": told(lambda: networks.build("alexnet", (8, 8, 1), 2)),
        "option": told(lambda: networks.build("lenet", (8, 8, 1), 2, {"units": 2.5})),
    }


@case
def a_model_that_does_not_fit_the_disk_is_told(workspace: Workspace) -> Any:
    training = small(workspace, epochs=1)
    training.until(1)
    folder = training.run.folder
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
    try:
        sentence = told(lambda: trained.save_model(folder, training.model))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    return {"told": sentence, "left": [path.name for path in folder.iterdir() if "model" in path.name]}


@case
def validations_as_often_as_asked(workspace: Workspace) -> Any:
    training = small(workspace, epochs=5, validate_every=2, batch=16)
    training.until()
    best = training.best
    lines = [line for line in training.run.curves() if line["part"] == "validation"]
    return {
        "epochs": [line["epoch"] for line in lines],
        "best": best in lines and best["accuracy"] == max(line["accuracy"] for line in lines),
        "listing": [isinstance(run, Run) for run in runs.listing(workspace)][:1],
    }


def main(folder: str) -> None:
    results = {}
    for function in CASES:
        workspace = Workspace(Path(folder) / function.__name__)
        try:
            results[function.__name__] = function(workspace)
        except Exception:
            results[function.__name__] = {"failed": traceback.format_exc()}
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1])
