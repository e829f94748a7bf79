"""Runs as folders of files: what their state says, what may be done with them, and one bad run that breaks no list."""

from __future__ import annotations

import importlib
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import time

import psutil
import pytest

from digits import jobs
from digits.files import DigitsError, Lock, read_json, write_json
from digits.training import load, runs
from digits.training.runs import Run
from digits.training.spec import RunSpec
from digits.workspace import Workspace
from tests.support.waiting import HANG

helpers = importlib.import_module("tests.labs.12_digits.runs_for_tests")


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


@pytest.fixture
def dataset(workspace):
    return helpers.small_dataset(workspace)


@pytest.fixture
def run(workspace, dataset):
    return helpers.unstarted(workspace, helpers.small_spec(dataset))


@pytest.fixture
def workers(monkeypatch):
    """Commands of workers that would have been started; in their place a process that holds the lock for a minute."""
    commands = []
    real = subprocess.Popen

    def started(command, **options):
        commands.append(command)
        return real([sys.executable, "-c", "import time; time.sleep(60)"], **options)

    monkeypatch.setattr(jobs.subprocess, "Popen", started)
    yield commands
    for child in jobs._children:
        child.kill()
        child.wait()


def set_state(run, **state):
    write_json(run.folder / "state.json", {**read_json(run.folder / "state.json"), **state})


def test_nothing_that_a_page_imports_brings_tensorflow():
    code = (
        "import sys; from digits.training import runs, trained, task; print([m for m in sys.modules if m in {(names)}])"
    )
    names = ("tensorflow", "keras", "tensorboard", "matplotlib", "sklearn")
    code = code.replace("{(names)}", repr(names))
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_a_run_that_starts_waits_and_is_its_workers_from_the_first_moment(workspace, dataset, workers):
    spec = helpers.small_spec(dataset)
    run = runs.start(workspace, spec)
    state = run.state()
    assert (state["status"], state["epochs"], state["step"]) == ("waiting", 3, 0)
    assert run.alive
    assert run.spec == spec
    assert run.name == "small"
    assert (run.folder / "wanted").read_text() == "run"
    assert workers[0][1:4] == ["-m", "digits.training.worker", str(run.folder)]
    assert read_json(run.folder / "run.json")["id"] == run.id
    with pytest.raises(DigitsError, match="is waiting already"):
        run.resume()
    run.pause()
    assert (run.folder / "wanted").read_text() == "pause"
    run.stop()
    assert (run.folder / "wanted").read_text() == "stop"
    assert [one.id for one in runs.listing(workspace)] == [run.id]
    assert runs.open(workspace, run.id).spec == spec


def test_a_worker_that_dies_leaves_a_run_that_says_so(workspace, dataset, workers):
    run = runs.start(workspace, helpers.small_spec(dataset))
    (child,) = jobs._children
    child.kill()
    child.wait()
    state = run.state()
    assert state["status"] == "killed"
    assert state["message"].endswith("Resume goes on from the beginning.")
    with pytest.raises(DigitsError, match="is killed: there is nothing to pause"):
        run.pause()
    run.stop()
    assert run.state()["status"] == "stopped"
    run.resume()
    assert run.state()["status"] == "waiting"
    assert len(workers) == 2


@pytest.mark.parametrize(
    ("written", "answers", "wanted"),
    [
        ("done", [True], "done"),  # it wrote its last state and ended after the first question
        ("waiting", [False, True, True], "waiting"),  # a new worker began after the first question
        ("running", [False, False], "killed"),
    ],
)
def test_state_is_not_fooled_by_a_worker_that_begins_or_ends_meanwhile(run, monkeypatch, written, answers, wanted):
    set_state(run, status="running")
    asked = iter(answers)

    def alive(self):
        set_state(self, status=written)  # what happens right after the lock was looked at
        return next(asked)

    monkeypatch.setattr(Run, "alive", property(alive))
    assert run.state()["status"] == wanted
    assert list(asked) == []


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"dataset": "20200101-000000-gone"}, "There is no dataset"),
        ({"kind": "detection", "network": {"name": "detectnet"}}, "made for classification, not for detection"),
        ({"start": "20200101-000000-gone"}, "There is no run '20200101-000000-gone'"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_there_is_a_run(workspace, dataset, workers, setting, told):
    spec = RunSpec.from_json({**helpers.small_spec(dataset).to_json(), **setting})
    with pytest.raises(DigitsError, match=told):
        runs.start(workspace, spec)
    assert runs.listing(workspace) == []
    assert workers == []


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ({"status": "building"}, "is killed. Wait until it is ready"),  # it says so, and no process holds its lock
        ({"counts": {"train": 46, "validation": 0, "test": 0}}, "has no validation images"),
        ({"counts": {"train": 0, "validation": 9, "test": 0}}, "has no train images"),
        ({"kind": "segmentation"}, "made for segmentation, not for classification"),
    ],
)
def test_an_unfinished_dataset_is_refused(workspace, dataset, workers, about, told):
    path = dataset.folder / "dataset.json"
    write_json(path, read_json(path) | about)
    with pytest.raises(DigitsError, match=told):
        runs.start(workspace, helpers.small_spec(dataset))
    assert runs.listing(workspace) == []


def test_a_start_without_weights_is_refused(workspace, dataset, run, workers):
    spec = RunSpec.from_json({**helpers.small_spec(dataset).to_json(), "start": run.id})
    with pytest.raises(DigitsError, match="has no weights yet to start from"):
        runs.start(workspace, spec)


def test_a_run_that_cannot_be_launched_is_no_run(workspace, dataset, monkeypatch):
    def no_process(*_args, **_options):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(jobs.subprocess, "Popen", no_process)
    with pytest.raises(DigitsError, match="Cannot start the run"):
        runs.start(workspace, helpers.small_spec(dataset))
    assert runs.listing(workspace) == []


@pytest.mark.parametrize(
    "damage",
    [
        "run.json gone",
        "run.json torn",
        "run.json of a list",
        "run.json wrong",
        "state.json gone",
        "state.json torn",
        "empty",
    ],
)
def test_a_damaged_run_is_told_and_breaks_no_list(workspace, dataset, run, damage):
    whole = helpers.unstarted(workspace, helpers.small_spec(dataset))
    set_state(whole, status="paused")
    name, _, how = damage.partition(" ")
    if damage == "empty":
        shutil.rmtree(run.folder)
        run.folder.mkdir()
    elif how == "gone":
        (run.folder / name).unlink()
    elif how == "torn":
        (run.folder / name).write_text((run.folder / name).read_text()[:20])
    elif how == "wrong":
        write_json(run.folder / name, {"dataset": 3, "solver": {"epochs": -1}})
    else:
        (run.folder / name).write_text("[]")
    states = {one.id: one.state()["status"] for one in runs.listing(workspace)}
    assert states == {run.id: "broken", whole.id: "paused"}
    assert run.state()["message"]
    assert [run.curves(), run.load(), run.checkpoints()] == [[], [], []]
    assert isinstance(run.log(), str)
    assert run.name
    with pytest.raises(DigitsError, match="cannot be resumed"):
        run.resume()
    run.delete()
    assert not run.folder.exists()


def test_without_room_on_the_disk_no_run_begins(workspace, dataset, run, workers):
    """A limit on the size of files stands for the disk: what a worker sets aside does not fit."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (runs.RESERVED // 2, limits[1]))
    try:
        with pytest.raises(DigitsError, match="Cannot write reserve"):
            runs.start(workspace, helpers.small_spec(dataset))
        with pytest.raises(DigitsError, match="Cannot write reserve"):
            run.resume()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [one.id for one in runs.listing(workspace)] == [run.id]
    assert run.state()["status"] == "killed"
    assert workers == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "<img src=x onerror=alert(1)>"},
        {"status": ["done"]},
        {"status": None},
        {"step": "x"},
        {"step": None},
        {"steps": []},
        {"epoch": math.nan},
        {"seconds": 10**400},
        {"remaining": -1},
        {"pid": "1"},
        {"message": {"a": 1}},
        {"last": 3},
        {"last": {"train": 3}},
        {"last": {"<b>": {"step": 1, "epoch": 1, "part": "train"}}},
        {"best": {"step": 1, "epoch": [], "part": "validation"}},
        {"best": {"step": 1, "epoch": 1, "part": "validation", "accuracy": "<b>"}},
        {"notes": "<b>"},
        {"notes": [1]},
    ],
)
def test_a_state_that_says_nonsense_is_broken(run, wrong):
    set_state(run, status="done", step=3)
    assert run.state()["status"] == "done"
    set_state(run, **wrong)
    state = run.state()
    assert state["status"] == "broken"
    assert f"state.json of {run.id} is damaged: {next(iter(wrong))} is wrong" in state["message"]
    assert state.keys() == runs.EMPTY.keys()


def test_what_else_a_state_says_is_left_out(run):
    set_state(run, status="paused", html="<b>")
    assert run.state().keys() == runs.EMPTY.keys()


def test_load_that_is_none_is_left_out(run):
    good = {"time": 1.5, "cpu": 5, "gpus": [{"name": "H100", "gpu": 3, "memory_used": 1, "memory_total": 2}]}
    wrong = [
        {},
        good | {"time": "x"},
        good | {"cpu": None},
        good | {"cpu": math.nan},
        good | {"gpus": 3},
        good | {"gpus": [3]},
        good | {"gpus": [{"name": 3}]},
        good | {"gpus": [{"name": "H100", "gpu": "<b>"}]},
        good | {"<b>": 1},
    ]
    (run.folder / "load.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [*wrong, good]))
    assert run.load() == [good]


def test_links_and_pipes_of_a_copied_run_lead_nowhere(run, workers, tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    (run.folder / "log.txt").symlink_to(mine)
    with pytest.raises(DigitsError, match="Cannot write log"):
        run.resume()
    assert mine.read_text() == "mine"
    assert workers == []
    (run.folder / "log.txt").unlink()
    for name in ("log.txt", "state.json", "curves.jsonl", "load.jsonl"):
        (run.folder / name).unlink(missing_ok=True)
        os.mkfifo(run.folder / name)  # reading one waits for ever
    assert run.state()["status"] == "broken"
    assert "no plain file" in run.log()
    with pytest.raises(DigitsError, match="no plain file"):
        run.curves()


def test_a_run_that_trains_is_not_deleted(run):
    set_state(run, status="running")
    with Lock(run.folder / "lock"):
        with pytest.raises(DigitsError, match=r"while it is training\. Pause it first"):
            run.delete()
        assert run.state()["status"] == "running"
    run.delete()
    assert not run.folder.exists()


def test_what_is_done_is_not_resumed(run, workers):
    set_state(run, status="done")
    with pytest.raises(DigitsError, match=r"is done\. Start a new run from its weights"):
        run.resume()
    assert workers == []


def test_waiting_ends_when_it_should(run):
    set_state(run, status="running")
    with Lock(run.folder / "lock"):
        assert run.wait(0.05)["status"] == "running"
        assert run.wait(10, until=("running",))["status"] == "running"
    assert run.wait(10)["status"] == "killed"


def test_curves_and_load_are_read_past_torn_lines(run):
    point = {"step": 1, "epoch": 0.1, "part": "train", "loss": 2.0, "rate": 0.1}
    (run.folder / "curves.jsonl").write_text(json.dumps(point) + '\n{"step": 2, "ep\n' + json.dumps(point) + '\n{"st')
    (run.folder / "load.jsonl").write_text('{"time": 1, "cpu": 5}\n{"ti')
    assert run.curves() == [point, point]
    assert run.load() == [{"time": 1, "cpu": 5}]


def test_the_load_is_sampled(tmp_path):
    with load.Sampler(tmp_path, interval=0.01):
        until = time.monotonic() + HANG
        while not (tmp_path / "load.jsonl").exists() and time.monotonic() < until:
            time.sleep(0.01)
    line = load.sample(psutil.Process(), [])
    assert set(line) == {"time", "cpu", "process_cpu", "memory", "memory_used", "memory_total"}
    assert 0 < line["memory"] < line["memory_total"]
    first = json.loads((tmp_path / "load.jsonl").read_text().splitlines()[0])
    assert set(first) == set(line) | ({"gpus"} & set(first))


def test_a_full_disk_ends_the_sampling_not_the_run(tmp_path):
    (tmp_path / "load.jsonl").mkdir()  # cannot be appended to
    with load.Sampler(tmp_path, interval=0.01) as sampler:
        sampler._thread.join(timeout=HANG)
        assert not sampler._thread.is_alive()
