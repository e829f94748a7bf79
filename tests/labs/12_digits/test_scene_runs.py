"""Detection and segmentation in the trainer's own process: figures in the curves, and killed runs that go on."""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
import sys

import pytest

from digits.data import scenes
from digits.data.scene_drawing import SceneOptions
from digits.training.spec import RunSpec, Solver
from digits.training.task import task_of
from digits.workspace import Workspace
from tests.support.waiting import HANG
from warpcourse.paths import COURSE

helpers = importlib.import_module("tests.labs.12_digits.runs_for_tests")


def worked(run, *moments):
    """Train `run` in processes that are killed at these moments, one after the other; return their exit statuses."""
    command = [sys.executable, "-m", "tests.labs.12_digits.kill_at", str(run.folder), *moments]
    done = subprocess.run(command, cwd=COURSE, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    statuses, *_ = json.loads(done.stdout.splitlines()[-1])
    return statuses


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "network"), [("detection", "detectnet"), ("segmentation", "fcn")])
def test_a_killed_run_goes_on_with_the_same_curves(tmp_path, kind, network):
    workspace = Workspace(tmp_path)
    options = SceneOptions(height=32, width=32, most=2, largest=16)
    dataset = scenes.build(workspace, kind, counts={"train": 14, "validation": 5, "test": 0}, options=options)
    solver = Solver(epochs=2, batch=4, rate=0.01, augment={"shift": 0.1, "noise": 5.0})
    spec = RunSpec(dataset.id, {"name": network, "filters": 4}, solver, kind)
    unbroken, killed = helpers.unstarted(workspace, spec), helpers.unstarted(workspace, spec)

    assert worked(unbroken, "never") == [0], unbroken.log()
    assert worked(killed, "in step 3") == [-signal.SIGKILL]
    assert killed.state()["status"] == "killed"
    assert worked(killed, "never") == [0]

    assert killed.curves() == unbroken.curves()
    validation = [line for line in unbroken.curves() if line["part"] == "validation"]
    assert [line["step"] for line in validation] == [0, 4, 8]
    assert set(task_of(dataset, spec).figures) <= set(validation[-1])
    assert len({line["loss"] for line in unbroken.curves()}) == len(unbroken.curves())
    main = task_of(dataset, spec).main
    assert unbroken.state()["best"][main] == max(line[main] for line in validation)
