"""A run that is killed (SIGKILL) goes on from its last checkpoint, and its curves are those of an unbroken run, number
by number: at chosen moments, in the middle of a write among them, and wherever it happens to be."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from digits.files import DigitsError, Lock
from digits.training import checkpoints, runs
from digits.workspace import Workspace
from tests.support.waiting import HANG
from warpcourse.paths import COURSE

helpers = importlib.import_module("tests.labs.12_digits.runs_for_tests")
kill_at = importlib.import_module("tests.labs.12_digits.kill_at")


def worked(run, *moments):
    """Train `run` in processes that are killed at `moments`, one after the other.

    Return what they printed, their exit statuses, and the steps that had a checkpoint and the state after each.
    """
    command = [sys.executable, "-m", "tests.labs.12_digits.kill_at", str(run.folder), *moments]
    done = subprocess.run(command, cwd=COURSE, capture_output=True, text=True, timeout=HANG)
    *printed, ends = done.stdout.splitlines() or [""]
    assert done.returncode == 0, done.stdout + done.stderr
    return "\n".join([*printed, done.stderr]), *json.loads(ends)


def weights(run):
    arrays, about, _ = checkpoints.latest(run.folder)
    return arrays, about["step"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(scope="module")
def dataset(workspace):
    return helpers.small_dataset(workspace)


PARENT = """
import sys
from digits.training import runs
from digits.training.spec import RunSpec
from digits.workspace import Workspace
import json
spec = RunSpec.from_json(json.loads(sys.argv[2]))
print(runs.start(Workspace(sys.argv[1]), spec).id, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def unbroken(workspace, dataset):
    """An unbroken run by a worker whose parent is killed at once."""
    spec = json.dumps(helpers.small_spec(dataset).to_json())
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(workspace.root), spec],
        cwd=COURSE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    run = runs.open(workspace, parent.stdout.readline().strip())
    os.killpg(parent.pid, signal.SIGKILL)  # its whole process group, as a terminal that is closed does
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()
    run.wait(HANG)
    return run


def assert_equal(run, unbroken):
    assert run.curves() == unbroken.curves()
    (arrays, step), (wanted, wanted_step) = weights(run), weights(unbroken)
    assert step == wanted_step
    assert arrays.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(arrays[name], array, err_msg=name)


def test_a_run_survives_the_process_that_started_it_and_has_every_point(unbroken):
    assert unbroken.state()["status"] == "done", unbroken.log()
    train = [line["step"] for line in unbroken.curves() if line["part"] == "train"]
    assert train == list(range(2, 38, 2))
    assert [line["step"] for line in unbroken.curves() if line["part"] == "validation"] == [0, 12, 24, 36]
    assert all(set(line) == {"step", "epoch", "part", "loss", "accuracy", "rate"} for line in unbroken.curves())
    losses = [line["loss"] for line in unbroken.curves() if line["part"] == "train"]
    assert len(set(losses)) == len(losses)
    assert all(set(line) > {"time", "cpu", "memory"} for line in unbroken.load())


def test_killed_at_every_chosen_moment_the_curves_are_those_of_an_unbroken_run(workspace, dataset, unbroken):
    """On the way the newest checkpoint is damaged once, and the disk is full once."""
    run = helpers.unstarted(workspace, helpers.small_spec(dataset))
    at = kill_at.MOMENTS.index("half the arrays of a checkpoint are written")
    moments = [*kill_at.MOMENTS[:at], *kill_at.OTHERS[1:], *kill_at.MOMENTS[at:], "never"]
    printed, statuses, steps, states = worked(run, *moments)
    told = dict(zip(moments, zip(statuses, steps, states, strict=True), strict=True))
    for moment in kill_at.MOMENTS:
        status, _, state = told[moment]
        assert (status, state["status"]) == (-signal.SIGKILL, "killed"), f"{moment}: {printed}"

    before = told["half the curves are cut"][1]
    status, left, state = told["the disk is full"]
    assert (status, state["status"]) == (1, "failed"), printed
    assert "Cannot write step-" in state["message"]
    assert left == before  # it met the full disk at its first checkpoint
    assert f"The checkpoint of step {before[-1]} is damaged: its checksum differs." in printed
    assert f"Goes on from the checkpoint of step {before[-2]} of 36." in printed

    reached = [stored[-1] if stored else -1 for stored in steps]
    assert reached == sorted(reached)
    assert (reached[0], reached[1], reached[-1]) == (-1, -1, 36)
    assert len(set(reached)) >= 8  # the moments are spread over the run
    status, _, state = told["never"]
    assert (status, state["status"]) == (0, "done"), printed
    assert_equal(run, unbroken)
    left = {path.name for path in run.folder.rglob("*")}
    assert not [name for name in left if name.startswith(".") or name == "reserve"]


def test_paused_killed_and_stopped_the_curves_are_equal(workspace, dataset):
    """By workers as the page starts them. The run is longer than anybody waits; one that ends later is unbroken."""
    spec = helpers.small_spec(dataset, epochs=5000)
    run = runs.start(workspace, spec)
    assert run.wait(HANG, until=("running", *runs.ENDED))["status"] == "running", run.log()
    with pytest.raises(DigitsError, match="is running already"):
        run.resume()
    with pytest.raises(DigitsError, match=r"Cannot delete the run small while it is training\. Pause it first"):
        run.delete()

    run.pause()
    paused = run.wait(HANG)
    assert paused["status"] == "paused", run.log()
    assert run.checkpoints()[-1] == paused["step"]
    assert not run.alive
    assert not (run.folder / "model.keras").exists()
    with pytest.raises(DigitsError, match="is paused: there is nothing to pause"):
        run.pause()

    run.resume()
    until_points(run, len(run.curves()) + 3)
    os.kill(run.state()["pid"], signal.SIGKILL)
    killed = run.wait(HANG)
    assert killed["status"] == "killed"
    assert f"Resume goes on from step {run.checkpoints()[-1]}." in killed["message"]

    run.resume()
    until_points(run, len(run.curves()) + 3)
    run.stop()
    stopped = run.wait(HANG)
    assert stopped["status"] == "stopped", run.log()
    assert stopped["step"] > paused["step"]
    assert stopped["last"]["train"] in run.curves()
    assert stopped["seconds"] > paused["seconds"]
    assert (run.folder / "model.keras").exists()

    unbroken = runs.start(workspace, spec)
    until_points(unbroken, len(run.curves()))
    os.kill(unbroken.state()["pid"], signal.SIGTERM)  # as when the machine shuts down
    assert unbroken.wait(HANG)["status"] == "paused", unbroken.log()
    assert unbroken.curves()[: len(run.curves())] == run.curves()
    run.delete()
    assert not run.folder.exists()


def until_points(run, count):
    """Wait until the curves have `count` points."""
    until = time.monotonic() + HANG
    while len(run.curves()) < count and time.monotonic() < until:
        assert run.state()["status"] in runs.ALIVE, run.log()
        time.sleep(0.02)


def test_a_second_worker_for_the_same_run_is_refused(workspace, dataset):
    run = helpers.unstarted(workspace, helpers.small_spec(dataset))
    command = [sys.executable, "-m", "digits.training.worker", str(run.folder)]
    with Lock(run.folder / "lock"):
        assert run.state()["status"] == "waiting"
        refused = subprocess.run(command, cwd=COURSE, capture_output=True, text=True, timeout=HANG)
        with pytest.raises(DigitsError, match="is waiting already"):
            run.resume()
    assert refused.returncode == 2
    assert "Another worker trains the run" in refused.stderr
    assert run.curves() == []
    assert run.state()["status"] == "killed"
