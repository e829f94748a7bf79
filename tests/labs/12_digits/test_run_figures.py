"""A run in words and curves, from the files that a training writes."""

from __future__ import annotations

import importlib
import re

import pytest

from digits.files import append_line
from digits.page import run_figures
from digits.workspace import Workspace

stub = importlib.import_module("tests.labs.12_digits.run_stub")


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


def labels(made):
    return re.findall(r'aria-label="([^"]*)"', made)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (7.2, "8 s"), (59.5, "1 min 00 s"), (125, "2 min 05 s"), (3599.5, "1 h 00 min"), (4800, "1 h 20 min")],
)
def test_durations(seconds, said):
    assert run_figures.duration(seconds) == said


def test_a_run_on_its_way_is_told(workspace):
    run = stub.written(workspace, "<b>mine</b>", "done", epochs=10, reached=3, accuracy=0.9)
    told = run_figures.told(run.name, run.state() | {"status": "running", "remaining": 17.5, "message": "On its way."})
    assert "<b>mine" not in told
    assert "Running</strong>: &lt;b&gt;mine&lt;/b&gt;" in told
    assert 'value="0.3000"' in told
    assert "epoch 3.0 of 10, step 12 of 40, 8 s spent training, about 18 s to go." in told
    assert "accuracy 27.0 % after epoch 3" in told
    assert "On its way." in told


def test_a_killed_run_says_what_to_do(workspace):
    run = stub.written(workspace, "mine", "running", reached=2)  # and nobody holds its lock
    told = run_figures.told(run.name, run.state())
    assert "Killed</strong>" in told
    assert "Resume goes on" in told
    assert "to go" not in told


def test_a_strangers_state_holds_no_markup(workspace):
    run = stub.written(workspace, "mine")
    told = run_figures.told(run.name, run.state() | {"status": "<img src=x>", "message": "<b>"})
    assert "<img" not in told
    assert "<b>" not in told


def test_a_spike_that_hides_the_curve_is_said(workspace):
    run = stub.written(workspace, "mine", epochs=8)
    assert "flattens" not in run_figures.curves([run])
    append_line(run.folder / "curves.jsonl", {"step": 33, "epoch": 8.1, "part": "train", "loss": 1.25e11})
    assert "A loss of 1.25e+11 flattens all others: tick Logarithmic loss" in run_figures.curves([run])
    assert "flattens" not in run_figures.curves([run], logarithmic=True)


def test_a_damaged_run_is_told(workspace):
    run = stub.written(workspace, "mine")
    (run.folder / "state.json").write_text("{")
    told = run_figures.told(run.name, run.state())
    assert "Damaged</strong>" in told
    assert "state.json" in told
    assert run_figures.curves([run])  # its curves are there all the same


def test_what_the_status_says_is_not_said_twice(workspace):
    run = stub.written(workspace, "mine", message="Done.")
    assert run_figures.told(run.name, run.state()).count("Done") == 1


def test_curves_of_one_run(workspace):
    run = stub.written(workspace, "mine", epochs=8, reached=4)
    loss, accuracy = labels(run_figures.curves([run]))
    assert loss.startswith("Loss. training: from ")
    assert "validation: from 2.075 to 1.4 at epoch 4" in loss
    assert "validation: from 11.2 % to 45.0 % at epoch 4" in accuracy


def test_the_axis_ends_with_the_planned_epochs_from_the_first_point_on(workspace):
    def right(*runs):
        return max(
            float(text) for text in re.findall(r">(\d+(?:\.\d+)?)</text>", run_figures.curves(runs).split("<figure")[1])
        )

    near, far = (stub.written(workspace, "a", epochs=epochs, reached=1) for epochs in (20, 4000))
    assert right(near) == 20
    assert right(far) == 4000
    assert right(near, far) == 4000


def test_accuracy_is_drawn_from_nothing_to_all(workspace):
    accuracy = run_figures.curves([stub.written(workspace, "a", epochs=8, reached=1)]).split("<figure")[2]
    assert [">0 %</text>" in accuracy, ">100 %</text>" in accuracy] == [True, True]


def test_curves_of_several_runs_name_them(workspace):
    runs = [stub.written(workspace, name) for name in ("one", "two", "two")]
    said = " ".join(labels(run_figures.curves(runs)))
    assert "one, validation: " in said
    for run in runs[1:]:
        assert f"two {run.id[:15]}, validation" in said


def test_before_the_first_point_it_says_so(workspace):
    run = stub.written(workspace, "mine", reached=0)
    assert "begin with the first epoch" in run_figures.curves([run])


def test_figures_of_any_kind_are_drawn(workspace):
    run = stub.written(workspace, "mine", reached=0)
    for epoch in (1, 2):
        line = {"step": epoch, "epoch": epoch, "part": "validation", "loss": 3.0, "mAP": 0.25 * epoch, "odd": 40.0}
        append_line(run.folder / "curves.jsonl", line)
    said = labels(run_figures.curves([run]))
    assert said[1] == (
        "Mean average precision. validation: from 25.0 % to 50.0 % at epoch 2; lowest 25.0 % at 1, highest 50.0 % at 2."
    )
    assert said[2].startswith("odd. validation: from 40 to 40")
    assert run_figures.main_figure({"epoch": 2, "part": "validation", "loss": 1.0, "mAP": 0.5}) == (
        "mean average precision 50.0 %"
    )


def test_a_torn_line_is_left_out(workspace):
    run = stub.written(workspace, "mine")
    with open(run.folder / "curves.jsonl", "a") as file:
        file.write('{"step": 99, "epo')
    assert len(labels(run_figures.curves([run]))) == 2


@pytest.mark.parametrize("gpu", [False, True])
def test_the_load_is_told(workspace, gpu):
    run = stub.written(workspace, "mine")
    assert run_figures.load(run) == ""
    stub.load(run.folder, 1, gpu)
    assert "CPU 50 %" in run_figures.load(run)
    assert "<svg" not in run_figures.load(run)  # a point is no curve
    (run.folder / "load.jsonl").unlink()
    stub.load(run.folder, 5, gpu)
    made = run_figures.load(run)
    assert "CPU 54 % of all cores; this run 90 % of one core and 0.60 GB; memory in use 4.0 of 16.0 GB" in made
    assert ("No NVIDIA GPU" in made) != gpu
    assert ("NVIDIA H100 80 % of the time busy, 10.0 of 80.0 GB" in made) == gpu
    assert ("NVIDIA H100: from 80.0 %" in labels(made)[0]) == gpu
