"""The deploy panel: plans as their files say, and a service played by a stub."""

import base64
import json
import re

import numpy as np
import pytest

from digits.data.dataset import Dataset
from digits.deploy import plans, service
from digits.files import DigitsError, write_json
from digits.page import deploy_view
from digits.page.page import Page
from digits.training.spec import RunSpec
from digits.workspace import Workspace

PANELS = [("Deploy", "digits.page.deploy_panel", "DeployPanel")]
LABEL = "estimated for an H100, a lower bound by data sheet; nothing was measured"
REPORT = {
    "device": "estimates for H100",
    "measured": False,
    "layers": 9,
    "passes": ["fuse_vertical: 1 cbr made: conv<b> + relu"],
    "batches": {
        "8": {
            "launches": 7,
            "latency": 13.3e-6,
            "label": LABEL,
            "plan_bytes": 3,
            "tensor_bytes": 51_200,
            "weights_bytes": 210_352,
            "tuned": "layer <i>",
        }
    },
    "test": {
        "images": 256,
        "by": "lab 09's interpreter, in NumPy",
        "kernels": {"images": 9, "largest_difference": 1e-8},
        "keras_accuracy": 0.9140625,
        "plan_accuracy": 0.91015625,
        "same_answers": 255,
        "largest_difference": 3.6e-7,
    },
}


@pytest.fixture
def workspace(tmp_path):
    made = Workspace(tmp_path)
    images = np.zeros((20, 4, 4, 1), np.uint8)
    part = {"images": images, "labels": np.arange(20) % 2}
    Dataset.create(
        made, "d", "classification", ["cat", "<dog>"], {"train": part, "test": part}, seed=0, source="a test"
    )
    return made


@pytest.fixture
def run(workspace):
    folder = workspace.create("runs", "first")
    write_json(folder / "run.json", {"id": folder.name, **RunSpec(dataset=workspace.ids("datasets")[0]).to_json()})
    write_json(folder / "state.json", {"status": "done"})
    (folder / "model.keras").write_bytes(b"a model")
    return folder.name


def plan(workspace, run, status="done", **state):
    folder = workspace.create("plans", "first")
    about = {"id": folder.name, "run": run, "name": "first", "dataset": workspace.ids("datasets")[0], "batches": [8]}
    write_json(folder / "plan.json", about)
    write_json(folder / "state.json", {"status": status, **state})
    write_json(folder / "report.json", REPORT)
    (folder / "batch-8.plan").write_bytes(b"a plan")
    return folder


@pytest.fixture
def page(workspace, run):
    page = Page(workspace, PANELS)
    yield page
    log = workspace.root / "page.log"
    assert not log.exists(), log.read_text()


def controls(widget):
    if getattr(widget, "description", ""):
        return {widget.description: widget}
    found = {}
    for child in getattr(widget, "children", ()):
        found |= controls(child)
    return found


def text(widget):
    own = widget.value if type(widget).__name__ == "HTML" else ""
    return own + "".join(text(child) for child in getattr(widget, "children", ()))


class Stub:
    url = "http://127.0.0.1:9"

    def __init__(self, plan):
        self.plan, self.asked = plan, []

    def ask(self, images, timeout=60.0):
        self.asked.append(images)
        return np.array([[0.25, 0.75]])

    def stop(self):
        return {"accepted": 1, "answered": 1}


def test_what_is_asked_reaches_the_job(page, run, monkeypatch, workspace):
    started = []
    folder = plan(workspace, run, "running", message="Tuning.", progress=0.4)
    monkeypatch.setattr(plans, "start", lambda *given: started.append(given) or plans.PlanJob(folder))
    of = controls(page.widget)
    of["Precision"].value, of["Batches"].value, of["Calibration"].value = "int8", "4, 1", "min-max"
    of["Tune: time every tactic of every layer"].value = False
    of["Build the plan"].click()
    assert started == [(workspace, run, plans.PlanSpec("int8", (1, 4), False, "min-max"))]
    assert of["Plan"].value == folder.name


def test_calibration_is_asked_for_int8_alone(page):
    of = controls(page.widget)
    assert of["Calibration"].layout.display == "none"
    of["Precision"].value = "int8"
    assert of["Calibration"].layout.display is None


def test_wrong_batches_are_said(page, workspace):
    of = controls(page.widget)
    for wrong, said in (("1, x", "with commas between"), ("0", "from 1 to"), ("", "from 1 to")):
        of["Batches"].value = wrong
        of["Build the plan"].click()
        assert said in page._status.value
    assert workspace.ids("plans") == []


def test_a_plan_that_is_built_is_watched(page, workspace, run):
    folder = plan(workspace, run, "running", message="Tuning.", progress=0.4)
    lock = plans.Lock(folder / "lock")
    assert lock.acquire()
    page.tick()
    of = controls(page.widget)
    assert "Tuning." in text(page.widget)
    assert 'value="0.4000"' in text(page.widget)
    assert not of["Stop building"].disabled
    assert of["Serve this plan"].disabled
    of["Stop building"].click()
    assert (folder / "wanted").read_text() == "stop"
    lock.release()
    page.tick()
    assert "Killed" in text(page.widget)
    assert of["Stop building"].disabled


def test_a_report_labels_an_estimate_and_escapes_names(page, workspace, run):
    plan(workspace, run)
    page.tick()
    shown = text(page.widget)
    assert "91.41 %" in shown
    assert "255 of 256" in shown
    assert "answered 9 of the images" in shown
    assert "Latency, estimated" in shown
    assert "nothing was measured" in shown
    assert "<b>" not in shown
    assert "<i>" not in shown
    assert "Latency, estimated" not in deploy_view.report({**REPORT, "measured": True}, "FP32")


def test_files_are_offered_with_their_bytes(page, workspace, run):
    folder = plan(workspace, run)
    page.tick()
    of = controls(page.widget)
    of["Offer the plan files"].click()
    of["Offer the Keras model"].click()
    found = dict(
        re.findall(r'download="([^"]+)" href="data:application/octet-stream;base64,([^"]+)"', text(page.widget))
    )
    assert base64.b64decode(found[f"{folder.name}-batch-8.plan"]) == b"a plan"
    assert base64.b64decode(found[f"{run}.keras"]) == b"a model"
    assert base64.b64decode(found["labels.txt"]) == b"cat\n<dog>\n"


def test_a_file_that_is_too_large_or_gone_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(deploy_view, "MOST_OFFERED", 2)
    (tmp_path / "large").write_bytes(b"abc")
    shown = deploy_view.downloads([("large", tmp_path / "large"), ("gone", tmp_path / "gone")])
    assert str(tmp_path / "large") in shown
    assert "data:" not in shown
    assert "cannot be read" in shown


def test_a_plan_is_served_asked_and_stopped(page, workspace, run, monkeypatch):
    folder = plan(workspace, run)
    stub = Stub(folder.name)
    monkeypatch.setattr(service, "start", lambda workspace, plan: stub)
    page.tick()
    of = controls(page.widget)
    of["Serve this plan"].click()
    assert stub.url in text(page.widget)
    assert of["Serve this plan"].disabled
    (sample,) = re.findall(r'download="sample.json" href="[^"]*base64,([^"]+)"', text(page.widget))
    assert np.shape(json.loads(base64.b64decode(sample))["instances"]) == (1, 4, 4, 1)
    assert "cat, &lt;dog&gt;" in text(page.widget)
    of["Test image"].value = 3
    of["Ask about the test image"].click()
    assert stub.asked[0].shape == (1, 4, 4, 1)
    assert "width:75.0%" in text(page.widget)
    assert "<dog>" not in text(page.widget)
    of["Stop serving"].click()
    assert "1 of 1 images" in page._status.value
    assert not of["Serve this plan"].disabled


@pytest.mark.parametrize(("lacks", "said"), [("", "Choose a plan that is done."), ("No lab 11.", "No lab 11.")])
def test_why_nothing_can_be_served_is_said(workspace, run, monkeypatch, lacks, said):
    monkeypatch.setattr(service, "missing", lambda: lacks)
    assert said in text(Page(workspace, PANELS).widget)


def test_a_service_that_does_not_start_is_said(page, workspace, run, monkeypatch):
    def fails(*_):
        raise DigitsError("The plan could not be served: it is damaged.")

    plan(workspace, run)
    monkeypatch.setattr(service, "start", fails)
    page.tick()
    of = controls(page.widget)
    of["Serve this plan"].click()
    assert "damaged" in page._status.value
    assert not of["Serve this plan"].disabled


def test_a_plan_is_deleted_after_a_question(page, workspace, run):
    folder = plan(workspace, run)
    page.tick()
    of = controls(page.widget)
    of["Delete …"].click()
    assert folder.name in workspace.ids("plans")
    of["Yes, delete it"].click()
    assert workspace.ids("plans") == []
    assert of["Plan"].value == ""
    assert of["Delete …"].disabled


def test_a_damaged_report_is_said_in_its_place_and_the_panel_opens(page, workspace, run):
    folder = plan(workspace, run)
    write_json(folder / "report.json", {"test": {}})
    for shown in (page, Page(workspace, PANELS)):
        shown.tick()
        assert "report.json of" in text(shown.widget)
        assert "is damaged" in text(shown.widget)
        assert not controls(shown.widget)["Delete …"].disabled


def test_without_lab_09_the_panel_says_so(workspace, run, monkeypatch):
    monkeypatch.setattr(plans, "missing", lambda: "Lab 09 is not in this copy of the course.")
    page = Page(workspace, PANELS)
    assert "Lab 09 is not in this copy" in text(page.widget)
    assert controls(page.widget)["Build the plan"].disabled
    assert not controls(page.widget)["Offer the Keras model"].disabled
