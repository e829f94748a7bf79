"""A run that is killed (SIGKILL) goes on from its last checkpoint, and its curves are those of an unbroken run, number
by number: at chosen moments, in the middle of a write among them, and wherever it happens to be."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from digits.files import DigitsError, Lock
from digits.training import checkpoints, runs
from digits.workspace import Workspace
from warplab.paths import COURSE

helpers = importlib.import_module("tests.labs.12_digits.runs_for_tests")
kill_at = importlib.import_module("tests.labs.12_digits.kill_at")
LONG = 300.0  # seconds, more than a busy machine needs


def worked(run, *moments):
    """Train `run` in processes that are killed at `moments`, one after the other.

    Return what they printed, their exit statuses and the steps that had a checkpoint after each.
    """
    command = [sys.executable, "-m", "tests.labs.12_digits.kill_at", str(run.folder), *moments]
    done = subprocess.run(command, cwd=COURSE, capture_output=True, text=True, timeout=LONG)
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


@pytest.fixture(scope="module")
def unbroken(workspace, dataset):
    """An unbroken run by the worker itself, which writes few checkpoints."""
    run = runs.start(workspace, helpers.small_spec(dataset))
    assert run.wait(LONG)["status"] == "done", run.log()
    return run


def assert_equal(run, unbroken):
    assert run.curves() == unbroken.curves()
    (arrays, step), (wanted, wanted_step) = weights(run), weights(unbroken)
    assert step == wanted_step
    assert arrays.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(arrays[name], array, err_msg=name)


def test_an_unbroken_run_has_every_point(unbroken):
    train = [line["step"] for line in unbroken.curves() if line["part"] == "train"]
    assert train == [2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36]
    assert [line["step"] for line in unbroken.curves() if line["part"] == "validation"] == [0, 12, 24, 36]
    assert all(set(line) == {"step", "epoch", "part", "loss", "accuracy", "rate"} for line in unbroken.curves())
    losses = [line["loss"] for line in unbroken.curves() if line["part"] == "train"]
    assert len(set(losses)) == len(losses)


def test_killed_at_every_chosen_moment_the_curves_are_those_of_an_unbroken_run(workspace, dataset, unbroken):
    run = helpers.unstarted(workspace, helpers.small_spec(dataset))
    half = len(kill_at.MOMENTS) // 2
    reached = []
    for moments in (kill_at.MOMENTS[:half], kill_at.MOMENTS[half:]):
        printed, statuses, steps = worked(run, *moments)
        assert statuses == [-signal.SIGKILL] * len(moments), printed
        assert run.state()["status"] == "killed"
        wanted = unbroken.curves()
        assert all(line in wanted for line in run.curves())  # nothing wrong is shown in the meantime either
        reached += [stored[-1] if stored else -1 for stored in steps]
    assert reached == sorted(reached)
    assert (reached[0], reached[1], reached[-1]) == (-1, -1, 36)
    assert len(set(reached)) >= 8  # the moments are spread over the run
    printed, statuses, _ = worked(run, "never")
    assert statuses == [0], printed
    assert run.state()["status"] == "done"
    assert_equal(run, unbroken)
    left = {path.name for path in run.folder.iterdir()}
    assert not [name for name in left if name.startswith(".") or name == "reserve"]


def test_killed_wherever_it_is_and_resumed_the_curves_are_equal(workspace, dataset):
    """Kills a worker twice without looking where it is."""
    spec = helpers.small_spec(dataset, epochs=40, keep_every=1)
    wanted = runs.start(workspace, spec)
    assert wanted.wait(LONG)["status"] == "done", wanted.log()
    run = runs.start(workspace, spec)
    killed = 0
    for points in (1, 60):
        while len(run.curves()) < points and run.state()["status"] in runs.ALIVE:
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):  # it was done in the meantime
            os.kill(run.state()["pid"], signal.SIGKILL)
        state = run.wait(LONG)
        if state["status"] == "killed":
            assert "Resume goes on from" in state["message"]
            killed += 1
            run.resume()
    assert killed >= 1
    assert run.wait(LONG)["status"] == "done", run.log()
    assert_equal(run, wanted)


def test_paused_stopped_and_resumed_the_curves_are_equal(workspace, dataset):
    """The run is longer than anybody waits: it is compared with one that is stopped later."""
    spec = helpers.small_spec(dataset, epochs=5000)
    run = runs.start(workspace, spec)
    assert run.wait(LONG, until=("running", *runs.ENDED))["status"] == "running", run.log()
    with pytest.raises(DigitsError, match="is running already"):
        run.resume()
    with pytest.raises(DigitsError, match=r"Cannot delete the run small while it is training\. Pause it first"):
        run.delete()

    run.pause()
    paused = run.wait(LONG)
    assert paused["status"] == "paused", run.log()
    assert run.checkpoints()[-1] == paused["step"]
    assert not run.alive
    assert not (run.folder / "model.keras").exists()
    with pytest.raises(DigitsError, match="is paused: there is nothing to pause"):
        run.pause()

    run.resume()
    os.kill(run.wait(LONG, until=("running", *runs.ENDED))["pid"], signal.SIGTERM)  # as when the machine shuts down
    assert run.wait(LONG)["status"] == "paused", run.log()

    run.resume()
    until_points(run, len(run.curves()) + 3)
    run.stop()
    stopped = run.wait(LONG)
    assert stopped["status"] == "stopped", run.log()
    assert stopped["step"] > paused["step"]
    assert stopped["last"]["train"] in run.curves()
    assert stopped["seconds"] > paused["seconds"]
    assert (run.folder / "model.keras").exists()

    unbroken = runs.start(workspace, spec)
    until_points(unbroken, len(run.curves()))
    unbroken.stop()
    assert unbroken.wait(LONG)["status"] == "stopped", unbroken.log()
    assert unbroken.curves()[: len(run.curves())] == run.curves()
    run.delete()
    assert not run.folder.exists()


def until_points(run, count):
    """Wait until the curves have `count` points."""
    until = time.monotonic() + LONG
    while len(run.curves()) < count and time.monotonic() < until:
        assert run.state()["status"] in runs.ALIVE, run.log()
        time.sleep(0.02)


def test_a_second_worker_for_the_same_run_is_refused(workspace, dataset):
    run = helpers.unstarted(workspace, helpers.small_spec(dataset))
    command = [sys.executable, "-m", "digits.training.worker", str(run.folder)]
    with Lock(run.folder / "lock"):
        assert run.state()["status"] == "waiting"
        refused = subprocess.run(command, cwd=COURSE, capture_output=True, text=True, timeout=LONG)
        with pytest.raises(DigitsError, match="is waiting already"):
            run.resume()
    assert refused.returncode == 2
    assert "Another worker trains the run" in refused.stderr
    assert run.curves() == []
    assert run.state()["status"] == "killed"


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


def test_a_run_survives_the_process_that_started_it(workspace, dataset, unbroken):
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
    assert run.wait(LONG)["status"] == "done", run.log()
    assert run.curves() == unbroken.curves()


def test_a_damaged_checkpoint_costs_only_what_came_after_the_one_before(workspace, dataset, unbroken):
    run = helpers.unstarted(workspace, helpers.small_spec(dataset))
    assert worked(run, "in step 3")[1] == [-signal.SIGKILL]
    assert run.checkpoints() == [1, 2]
    newest = checkpoints.listed(run.folder)[-1].arrays
    newest.write_bytes(newest.read_bytes()[:-100])
    printed, statuses, _ = worked(run, "never")
    assert statuses == [0], printed
    assert "checkpoint of step 2 is damaged: its checksum differs." in printed
    assert "Goes on from the checkpoint of step 1 of 36." in printed
    assert run.state()["notes"] == ["The checkpoint of step 2 is damaged: its checksum differs."]
    assert_equal(run, unbroken)


def test_a_disk_that_is_full_fails_the_run_with_a_sentence_and_it_can_go_on(workspace, dataset, unbroken):
    """A limit on the size of files stands for the disk: a checkpoint no longer fits, then does again."""
    run = helpers.unstarted(workspace, helpers.small_spec(dataset))
    assert worked(run, "in step 3")[1] == [-signal.SIGKILL]
    size = max(path.stat().st_size for path in (run.folder / "checkpoints").iterdir())
    limited = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({size // 2}, resource.RLIM_INFINITY))
from digits.training import runs, worker
runs.RESERVED = 100  # bytes; the checkpoint is not to be the smaller of the two
sys.exit(worker.main([{str(run.folder)!r}]))
"""
    failed = subprocess.run([sys.executable, "-c", limited], cwd=COURSE, capture_output=True, text=True, timeout=LONG)
    assert failed.returncode == 1, failed.stderr
    state = run.state()
    assert state["status"] == "failed"
    assert "step-" in state["message"]
    assert "File too large" in state["message"] or "disk is full" in state["message"]
    assert run.checkpoints() == [1, 2]
    assert not list(Path(run.folder).rglob(".unfinished*"))
    printed, statuses, _ = worked(run, "never")
    assert statuses == [0], printed
    assert_equal(run, unbroken)
