"""The train panel over runs that are written as files: what it shows, what it asks of them, what it starts."""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict

import pytest

from digits.files import Lock, write_json
from digits.page.page import Page
from digits.training import runs
from digits.training.spec import Solver
from digits.workspace import Workspace

stub = importlib.import_module("tests.labs.12_digits.run_stub")
PANEL = [("Train", "digits.page.train_panel", "TrainPanel"), ("Solver", "digits.page.solver_panel", "SolverPanel")]


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def started(monkeypatch):
    """Runs are written but no worker is started."""
    specs = []

    def start(workspace, spec):
        specs.append(spec)
        return stub.written(workspace, spec.name, "waiting", spec.solver.epochs, 0, dataset=spec.dataset)

    monkeypatch.setattr(runs, "start", start)
    return specs


def opened(workspace):
    page = Page(workspace, PANEL)
    return page, page.panel("Train")


def enabled(panel):
    names = {"Pause": panel._pause, "Stop": panel._stop, "Resume": panel._resume, "Delete …": panel._delete}
    return {name for name, control in names.items() if not control.disabled}


def no_errors(workspace):
    log = workspace.root / "page.log"
    return not log.exists() or log.read_text()


def test_without_a_dataset_nothing_can_be_started(workspace):
    page, panel = opened(workspace)
    assert panel._start.disabled
    assert "Make one in the panel Data" in panel._recipe.value
    assert "There is no run yet" in panel._state.value
    dataset = stub.dataset(workspace)
    page.selected.datasets_version += 1
    assert page.selected.dataset == dataset.id
    assert not panel._start.disabled
    assert no_errors(workspace) is True


def test_a_run_is_started_from_what_is_selected(workspace, started):
    dataset = stub.dataset(workspace)
    page, panel = opened(workspace)
    page.selected.network = {"name": "lenet", "filters": 8, "units": 32, "dropout": 0.1}
    page.selected.solver = asdict(Solver(epochs=3, rate=0.01))
    panel._name.value = "my run"
    assert "3 epochs" in panel._recipe.value
    panel._start.click()
    (spec,) = started
    assert (spec.name, spec.dataset, spec.kind, spec.start) == ("my run", dataset.id, "classification", None)
    assert spec.network["filters"] == 8
    assert spec.solver == Solver(epochs=3, rate=0.01)
    assert page.selected.run == workspace.ids("runs")[0]
    assert panel._run.value == page.selected.run
    assert "has been started" in page._status.value
    assert not panel._start.disabled
    assert no_errors(workspace) is True


def test_a_start_that_fails_says_why_and_can_be_tried_again(workspace, monkeypatch):
    stub.dataset(workspace)
    page, panel = opened(workspace)

    def full(workspace, spec):
        raise OSError("No space left on device")

    monkeypatch.setattr(runs, "start", full)
    panel._start.click()
    assert "Error: No space left on device" in page._status.value
    assert not panel._start.disabled


def test_a_wrong_solver_or_network_cannot_be_started(workspace, started):
    stub.dataset(workspace)
    page, panel = opened(workspace)
    page.selected.solver_error = "The learning rate is 0"
    assert panel._start.disabled
    assert "The solver is not usable yet: The learning rate is 0" in panel._recipe.value
    page.selected.solver_error = ""
    page.selected.network = {"name": "detectnet"}
    assert panel._start.disabled
    assert "detectnet" in panel._recipe.value
    page.selected.network = {}
    assert not panel._start.disabled


@pytest.mark.parametrize(
    ("status", "can"),
    [
        ("paused", {"Stop", "Resume", "Delete …"}),
        ("stopped", {"Resume", "Delete …"}),
        ("done", {"Delete …"}),
        ("failed", {"Resume", "Delete …"}),
        ("running", {"Stop", "Resume", "Delete …"}),  # nobody holds its lock: killed
    ],
)
def test_only_what_makes_sense_can_be_pressed(workspace, status, can):
    stub.written(workspace, "mine", status, reached=2, message="a message")
    _, panel = opened(workspace)
    assert enabled(panel) == can


def test_a_living_run_is_watched_and_asked(workspace):
    run = stub.written(workspace, "mine", "running", epochs=4, reached=1)
    with Lock(run.folder / "lock"):
        page, panel = opened(workspace)
        assert enabled(panel) == {"Pause", "Stop"}
        assert "Running</strong>: mine" in panel._state.value
        before = panel._curves.value
        stub.points(run.folder, 1, 3, 0.9, 4)
        stub.state(run.folder, "running", 3, 4)
        page.tick()
        assert "epoch 3.0 of 4" in panel._state.value
        assert panel._curves.value != before
        assert "at epoch 3" in panel._curves.value
        panel._pause.click()
        assert (run.folder / "wanted").read_text() == "pause"
        assert "will pause" in page._status.value
        panel._stop.click()
        assert (run.folder / "wanted").read_text() == "stop"
    stub.state(run.folder, "paused", 3, 4)
    page.tick()
    assert enabled(panel) == {"Stop", "Resume", "Delete …"}
    panel._stop.click()
    assert run.state()["status"] == "stopped"
    assert no_errors(workspace) is True


def test_curves_are_drawn_only_when_there_is_something_new(workspace, monkeypatch):
    run = stub.written(workspace, "mine", "stopped", reached=2)
    page, panel = opened(workspace)
    drawn = []
    monkeypatch.setattr("digits.page.run_figures.curves", lambda shown, log, looks: drawn.append(len(shown)) or "drawn")
    page.tick()
    page.tick()
    assert drawn == []
    stub.points(run.folder, 2, 3, 0.9, 4)
    page.tick()
    page.tick()
    assert drawn == [1]
    panel._logarithmic.value = True
    assert drawn == [1, 1]


def test_several_runs_are_compared(workspace):
    stub.dataset(workspace)
    others = [stub.written(workspace, name, accuracy=0.5).id for name in ("a", "b")]
    stub.written(workspace, "c")
    _, panel = opened(workspace)
    assert "b, validation" not in panel._curves.value
    panel._with.value = others
    for name in "abc":
        assert f"{name}, validation: from" in panel._curves.value
    panel._with.value = ()
    assert "b, validation" not in panel._curves.value


def test_all_runs_are_listed_and_a_damaged_one_is_among_them(workspace):
    stub.dataset(workspace)
    for name in ("a", "<b>"):
        stub.written(workspace, name)
    broken = stub.written(workspace, "c")
    (broken.folder / "run.json").write_text("{")
    page, panel = opened(workspace)
    assert len(panel._run.options) == 3
    assert "&lt;b&gt;" in panel._table.value
    assert "<b>" not in panel._table.value
    assert "damaged" in panel._table.value
    page.selected.run = broken.id
    assert "Damaged" in panel._state.value
    assert no_errors(workspace) is True


def test_a_long_list_is_cut_in_the_table_only(workspace, monkeypatch):
    monkeypatch.setattr("digits.page.train_panel._LISTED", 2)
    for name in "abc":
        stub.written(workspace, name)
    _, panel = opened(workspace)
    assert len(panel._run.options) == 3
    assert "the newest 2 of 3" in panel._table.value


def test_runs_that_come_and_go_elsewhere_are_seen(workspace):
    page, panel = opened(workspace)
    page.selected.observe(lambda change: versions.append(change["new"]), "runs_version")
    versions = []
    first = stub.written(workspace, "from elsewhere")
    for _ in range(3):
        page.tick()
    assert page.selected.run == first.id
    assert versions == [1]
    first.delete()
    for _ in range(3):
        page.tick()
    assert page.selected.run == ""
    assert "There is no run yet" in panel._state.value
    assert panel._curves.value == ""
    assert no_errors(workspace) is True


def test_deleting_asks_first(workspace):
    run = stub.written(workspace, "<i>mine")
    page, panel = opened(workspace)
    assert panel._deletion.question.layout.display == "none"
    panel._delete.click()
    assert "Delete the run &lt;i&gt;mine" in panel._deletion.question.children[0].value
    assert panel._deletion.question.layout.display is None
    panel._deletion.question.children[2].click()
    assert panel._deletion.question.layout.display == "none"
    assert run.folder.exists()
    panel._delete.click()
    panel._deletion.question.children[1].click()
    assert not run.folder.exists()
    assert page.selected.run == ""
    assert no_errors(workspace) is True


def test_what_a_run_did_can_be_the_next_runs_settings_or_start(workspace):
    dataset = stub.dataset(workspace)
    run = stub.written(workspace, "mine", epochs=6, network={"name": "googlenet"})
    page, panel = opened(workspace)
    panel._again.click()
    assert page.selected.network == {"name": "googlenet"}
    assert page.selected.solver["epochs"] == 6
    assert panel.spec().dataset == dataset.id
    panel._onward.click()
    assert panel.spec().start == run.id
    assert f"from the weights of {run.id}" in panel._recipe.value


def test_a_run_that_ends_is_said_once(workspace):
    run = stub.written(workspace, "mine", "running", reached=1)
    with Lock(run.folder / "lock"):
        page, panel = opened(workspace)
        panel._pause.click()
        assert "will pause" in page._status.value
    stub.state(run.folder, "paused", 2, 4)
    page.tick()
    assert "The run mine is paused." in page._status.value
    page.say("something else")
    page.tick()
    assert "something else" in page._status.value


def test_a_run_keeps_its_colour_while_others_come_and_go(workspace):
    stub.dataset(workspace)
    ids = {name: stub.written(workspace, name).id for name in "abcd"}
    page, panel = opened(workspace)

    def looks():
        return {name: panel._colours[id] for name, id in ids.items() if id in panel._colours}

    assert looks() == {"d": 0}
    panel._with.value = (ids["a"], ids["b"])
    before = looks()
    assert sorted(before.values()) == [0, 1, 2]
    panel._with.value = (ids["b"],)
    page.selected.run = ids["c"]
    after = looks()
    assert after["b"] == before["b"]
    assert len(set(after.values())) == len(after)


def test_the_shown_run_is_not_offered_for_comparison(workspace):
    first, second = stub.written(workspace, "a"), stub.written(workspace, "b")
    page, panel = opened(workspace)
    assert [id for _, id in panel._with.options] == [first.id]
    panel._with.value = (first.id,)
    page.selected.run = first.id
    assert [id for _, id in panel._with.options] == [second.id]
    assert panel._with.value == ()
    assert no_errors(workspace) is True


def test_runs_can_be_told_apart_in_the_table(workspace):
    dataset = stub.dataset(workspace, "my images")
    stub.written(workspace, "a", epochs=3)
    _, panel = opened(workspace)
    for text in (dataset.name, "adam, rate 0.002, batch 32", "3.0 of 3"):
        assert text in panel._table.value


def test_augmentation_is_in_the_recipe(workspace):
    stub.dataset(workspace)
    page, panel = opened(workspace)
    assert "no augmentation" in panel._recipe.value
    page.selected.solver = asdict(Solver(augment={"shift": 0.1, "flip": "horizontal"}))
    assert "augmented by shift 0.1, flip horizontal" in panel._recipe.value


def test_the_log_is_shown_when_asked_for_and_escaped(workspace):
    run = stub.written(workspace, "mine")
    (run.folder / "log.txt").write_text("\n".join(f"line <{n}>" for n in range(100)))
    _, panel = opened(workspace)
    assert panel._log.value == ""
    panel._show_log.value = True
    assert "line &lt;99&gt;" in panel._log.value
    assert "line &lt;10&gt;" not in panel._log.value


def test_a_second_page_shows_the_same(workspace):
    stub.dataset(workspace)
    stub.written(workspace, "a")
    stub.written(workspace, "b", "paused", reached=1)
    first, second = opened(workspace), opened(workspace)
    assert first[1]._state.value == second[1]._state.value
    assert first[1]._run.options == second[1]._run.options
    assert first[1]._table.value == second[1]._table.value


def test_a_dataset_that_is_still_being_built_is_not_offered(workspace):
    dataset = stub.dataset(workspace)
    about = dataset.folder / "dataset.json"
    write_json(about, json.loads(about.read_text()) | {"status": "building"})
    _, panel = opened(workspace)
    assert panel._dataset.options == (("none yet", ""),)
