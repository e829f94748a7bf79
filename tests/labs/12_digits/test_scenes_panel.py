"""The panel Scenes, used as the page uses it, without a browser; its model knows the answers and no process starts."""

from __future__ import annotations

import datetime
import importlib
import io
import re

import numpy as np
import pytest
from PIL import Image

from digits import look
from digits.data.dataset import Dataset
from digits.files import write_json
from digits.look.scene_answers import Answers
from digits.page import run_figures, scene_view
from digits.page.page import Page
from digits.training import runs, trained
from digits.training.spec import RunSpec
from digits.workspace import Workspace

helpers = importlib.import_module("tests.labs.12_digits.scenes_for_tests")
run_helpers = importlib.import_module("tests.labs.12_digits.runs_for_tests")
PANEL = [("Scenes", "digits.page.scenes_panel", "ScenesPanel")]
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def insides(monkeypatch):
    """No model's process: `look.open` gives one that knows the run's dataset, and all that were opened are kept."""
    opened = []

    def open(run):
        dataset = Dataset.open(Workspace(run.folder.parent.parent), run.spec.dataset)
        opened.append(helpers.Knowing(dataset, blind=(3,)))
        return opened[-1]

    monkeypatch.setattr(look, "open", open)
    monkeypatch.setattr(trained, "listed", lambda folder: ["weights"])
    return opened


def opened(workspace):
    page = Page(workspace, PANEL)
    return page, page.panel("Scenes")


def run_on(workspace, kind, name="scenes", status="done"):
    dataset = helpers.small_scenes(workspace, kind, name)
    network = {"detection": "detectnet", "segmentation": "fcn"}[kind]
    run = run_helpers.unstarted(workspace, RunSpec(dataset.id, {"name": network}, kind=kind, name=name))
    write_json(run.folder / "state.json", {"status": status, "message": "Done."})
    return run


def uploaded(name, content):
    about = {"name": name, "type": "image/png", "size": len(content), "content": memoryview(content)}
    return {**about, "last_modified": datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)}


def no_errors(page):
    log = page.workspace.root / "page.log"
    assert not log.exists(), log.read_text()
    assert "Error" not in page._status.value


def test_an_empty_workspace_says_what_to_do(workspace, insides):
    page, panel = opened(workspace)
    assert panel._start.disabled
    panel._find.click()
    assert "There is no run on scenes yet. Make scenes and train on them first." in page._status.value
    assert panel._new._examples.value.count("<img") == 4


@pytest.mark.parametrize(("task", "kind"), [("Detection: boxes", "detection"), ("Segmentation: masks", "segmentation")])
def test_scenes_are_made_and_selected(workspace, insides, task, kind):
    page, panel = opened(workspace)
    form = panel._new
    form._kind.label, form._name.value = task, EVIL
    form._train.value, form._others.value, form._side.value, form._numbers["most"].value = 5, 2, 32, 2
    assert form._examples.value.count("<img") == 4
    form._make.click()
    no_errors(page)
    (dataset,) = Dataset.list(workspace)
    assert (dataset.kind, dataset.name, dataset.shape) == (kind, EVIL, (32, 32, 1))
    assert dataset.counts == {"train": 5, "validation": 2, "test": 2}
    assert page.selected.dataset == dataset.id == panel._dataset.value
    assert page.selected.datasets_version == 1
    assert "9 scenes of 32 × 32 pixels are ready" in page._status.value
    assert "<img" not in page._status.value
    assert not panel._start.disabled
    assert not form._make.disabled


def test_options_that_make_no_sense_are_said_and_make_nothing(workspace, insides):
    page, panel = opened(workspace)
    panel._new._numbers["smallest"].value = 30
    assert "digits from 30 to 24 pixels do not fit" in page._status.value
    panel._new._make.click()
    assert Dataset.list(workspace) == []
    assert not panel._new._make.disabled


def test_making_can_be_cancelled(workspace, insides, monkeypatch):
    page, panel = opened(workspace)
    form = panel._new
    form._train.value = 60
    monkeypatch.setattr(form, "_progressed", lambda share: form._cancel.click())
    form._make.click()
    assert "was cancelled" in page._status.value
    assert Dataset.list(workspace) == []
    assert form._cancel.layout.display == "none"


def test_training_starts_with_the_network_of_the_kind(workspace, insides, monkeypatch):
    specs = []

    def start(workspace, spec):
        specs.append(spec)
        return run_helpers.unstarted(workspace, spec)

    monkeypatch.setattr(runs, "start", start)
    page, panel = opened(workspace)
    for kind, network in (("detection", "detectnet"), ("segmentation", "fcn")):
        dataset = helpers.small_scenes(workspace, kind)
        page.selected.datasets_version += 1
        page.selected.dataset = dataset.id
        assert panel._dataset.value == dataset.id
        panel._epochs.value = 3
        panel._start.click()
        spec = specs[-1]
        assert (spec.kind, spec.network, spec.dataset) == (kind, {"name": network}, dataset.id)
        assert (spec.solver.epochs, spec.solver.batch, spec.solver.policy["name"]) == (3, 16, "cosine")
        assert page.selected.run == panel._run.value
        assert "has been started" in page._status.value
    assert len(specs) == 2
    no_errors(page)


def test_what_a_detector_finds(workspace, insides):
    run_on(workspace, "detection")
    page, panel = opened(workspace)
    panel._find.click()
    no_errors(page)
    assert re.search(r"mAP \d+\.\d %", panel._figures.value)
    assert "precision 100.0 %" in panel._figures.value
    assert panel._figures.value.count("<tr>") == 11
    assert "Precision and recall of class 0" in panel._chart.value
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", panel._gallery.value)
    assert len(captions) == 8
    assert captions[0].startswith("Scene 3: 0 of ")  # the scene that the model does not see
    assert all(f'alt="{caption}"' in panel._gallery.value for caption in captions)
    panel._on.click()
    assert panel._gallery.value.count("<figure") == 2
    assert panel._on.disabled
    panel._back.click()
    assert panel._back.disabled
    panel._order.value = "In their order"
    assert "Scene 0:" in panel._gallery.value
    panel._class.value = 5
    assert "Precision and recall of class 5" in panel._chart.value
    panel._least.value = 0.95  # more than any score of this model
    assert "recall 0.0 %" in panel._figures.value
    panel._least.value = 0.5
    for way in ("suppress", "cells"):
        panel._way.value = way
        assert "mAP" in panel._figures.value
    panel._coverage.value = True
    assert re.search(r"Scene \d+: \d+ of 256 cells with a coverage of 0.5 or more", panel._gallery.value)
    panel._coverage.value = False
    assert "wrong" in panel._gallery.value  # a second box of each digit is a wrong one
    no_errors(page)


def test_what_a_segmenter_finds(workspace, insides):
    run_on(workspace, "segmentation")
    page, panel = opened(workspace)
    assert panel._boxes_only.layout.display == "none"
    panel._find.click()
    no_errors(page)
    assert "Mean IoU" in panel._figures.value
    assert "ground everywhere" in panel._figures.value
    assert panel._figures.value.count("<tr>") == 12
    assert panel._chart.value == ""
    assert panel._class.layout.display == "none"
    assert "Scene 3: found none;" in panel._gallery.value
    assert panel._gallery.value.count(" 0 px wrong") == 2 * 7  # in the caption and in the text alternative


def test_another_part_or_run_forgets_what_was_found(workspace, insides):
    first, second = run_on(workspace, "detection", "one"), run_on(workspace, "segmentation", "two")
    page, panel = opened(workspace)
    panel._run.value = first.id
    assert page.selected.run == first.id
    panel._find.click()
    assert panel._gallery.value
    panel._part.value = "test"
    assert panel._gallery.value == panel._figures.value == ""
    insides[-1].part = "test"
    panel._find.click()
    assert panel._gallery.value.count("<figure") == 2
    asked = insides[-1]
    page.selected.run = second.id
    assert asked.closed
    assert panel._run.value == second.id
    assert panel._gallery.value == ""
    no_errors(page)


def test_a_picture_of_ones_own(workspace, insides):
    run_on(workspace, "detection")
    page, panel = opened(workspace)
    stream = io.BytesIO()
    Image.new("RGB", (100, 50), (90, 90, 90)).save(stream, "PNG")
    panel._upload.value = (uploaded(EVIL, stream.getvalue()),)
    no_errors(page)
    assert "Found none" in panel._own.value
    assert "<img src=x" not in panel._own.value
    assert panel._upload.value == ()
    panel._upload.value = (uploaded("x.png", b"no image"),)
    assert "Error" in page._status.value


def test_damaged_runs_and_datasets_break_nothing(workspace, insides):
    run = run_on(workspace, "detection")
    broken = run_helpers.unstarted(workspace, RunSpec("x", {"name": "fcn"}, kind="segmentation"))
    (broken.folder / "run.json").write_text("{")
    workspace.create("datasets", "empty")
    page, panel = opened(workspace)
    assert [id for _, id in panel._run.options] == [run.id]
    Dataset.list(workspace, "detection")[0].delete()
    panel._find.click()
    assert "There is no dataset" in page._status.value
    assert not panel._find.disabled


def test_runs_are_compared_by_the_main_figure_and_losses_are_no_percentages():
    line = {"step": 9, "epoch": 1.0, "part": "validation", "loss": 0.6, "coverage_loss": 0.3, "mAP": 0.932, "rate": 0.1}
    assert run_figures.main_figure(line) == "mean average precision 93.2 %"
    state = {"status": "done", "step": 9, "steps": 9, "epochs": 1, "epoch": 1.0, "seconds": 2.0, "remaining": None}
    told = run_figures.told("x", state | {"message": "", "last": {"validation": line}, "best": line})
    assert "coverage loss 0.3," in told.replace(" after", ",")
    segmented = {"loss": 0.05, "pixel_accuracy": 0.98, "mean_iou": 0.77}
    assert run_figures.main_figure(segmented) == "mean intersection over union 77.0 %"


def test_pausing_asks_the_run(workspace, insides, monkeypatch):
    run_on(workspace, "detection", status="paused")
    page, panel = opened(workspace)
    assert panel._pause.disabled
    assert not panel._stop.disabled
    asked = []
    monkeypatch.setattr(runs.Run, "resume", lambda self: asked.append(self.id))
    panel._resume.click()
    assert asked == [panel._run.value]
    no_errors(page)


def test_no_picture_is_asked_about_before_there_is_a_run(workspace, insides):
    page, panel = opened(workspace)
    assert (panel._find.disabled, panel._upload.disabled) == (True, True)
    run = run_on(workspace, "detection")
    page.selected.runs_version += 1
    assert panel._run.value == run.id
    assert (panel._find.disabled, panel._upload.disabled) == (False, False)
    panel._find.click()
    assert (panel._find.disabled, panel._upload.disabled) == (False, False)
    no_errors(page)


def test_a_mask_of_many_classes_names_the_largest():
    said = np.zeros((1, 8, 8), np.uint8)
    said[0, :4], said[0, 4, :6], said[0, 5, :3], said[0, 6, :2], said[0, 7, 0], said[0, 7, 1] = 8, 3, 1, 5, 2, 6
    answers = Answers("segmentation", tuple("0123456789"), np.zeros((1, 8, 8, 1), np.uint8), None, {"mask": said})
    caption = re.search(r"<figcaption>(.*?)</figcaption>", scene_view.drawn(answers, [0]))[1]
    assert caption == "Found 7 (32 px), 2 (6 px), 0 (3 px), 4 (2 px) and 2 more classes (2 px)"


def test_boxes_of_ones_own_picture_are_counted_before_they_are_named():
    answers = Answers("detection", tuple("0123456789"), np.zeros((1, 32, 32, 1), np.uint8), None, {})
    four, seven = [4, 2, 2, 8, 8, 0.9], [7, 16, 16, 8, 8, 0.8]
    for boxes, said in (([four], "1 box found: 4"), ([four, seven], "2 boxes found: 4, 7"), ([], "Found none")):
        found = [np.array(boxes, np.float32).reshape(-1, 6)]
        assert f"<figcaption>{said}</figcaption>" in scene_view.drawn(answers, [0], found)


def test_a_picture_on_paper_is_turned_round(workspace, insides):
    run_on(workspace, "detection")
    page, panel = opened(workspace)
    asked = []
    predict = panel._inside.predict
    panel._inside.predict = lambda images, progress=None: asked.append(images.copy()) or predict(images, progress)
    stream = io.BytesIO()
    Image.new("L", (64, 64), 200).save(stream, "PNG")
    for invert, seen in ((False, 200), (True, 55)):
        panel._invert.value = invert
        panel._upload.value = (uploaded("paper.png", stream.getvalue()),)
        assert (asked[-1] == seen).all()
    no_errors(page)
