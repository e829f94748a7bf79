"""Plans of trained runs: built, compared with Keras, served, by functions and in a browser; and what goes wrong.

Most are built in this process, which has imported TensorFlow already; those that are stopped and killed are jobs.
"""

import importlib
import importlib.util
import json
import os
import signal

import numpy as np
import pytest

from digits.data.builtin import sklearn_digits
from digits.data.dataset import Dataset
from digits.deploy import plans, service, worker
from digits.files import DigitsError, write_json
from digits.networks import custom
from digits.training.spec import RunSpec
from digits.training.task import prepare
from digits.workspace import Workspace
from tests.support.chromium import missing

pytest.importorskip("kernels.fusion")
pytestmark = pytest.mark.tensorflow
harness = importlib.import_module("tests.labs.12_digits.page_in_chromium")
SMALL = plans.PlanSpec(batches=(1, 4), test_images=12, calibration_images=16)
PATIENCE = 600.0


def trained_run(workspace, dataset, name, layers):
    """A run that is done, as far as its files say, with a network of these layers and random weights."""
    import keras

    keras.utils.set_random_seed(1)
    spec = RunSpec(dataset=dataset.id, name=name)
    folder = workspace.create("runs", name)
    write_json(folder / "run.json", {"id": folder.name, **spec.to_json()})
    write_json(folder / "state.json", {"status": "done"})
    inputs = keras.Input(dataset.shape, name="image")
    x = inputs
    for layer in layers(keras.layers):
        x = layer(x)
    keras.Model(inputs, x, name=name).save(folder / "model.keras")
    return folder.name


def built(workspace, run, spec):
    """A plan that was built in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "_launch", lambda folder: None)
        job = plans.start(workspace, run, spec)
    assert worker.main([str(job.folder)]) == (job.state()["status"] != "done")
    return job


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    made = Workspace(tmp_path_factory.mktemp("digits"))
    sklearn_digits(made)
    return made


@pytest.fixture(scope="module")
def dataset(workspace):
    return Dataset.list(workspace)[0]


@pytest.fixture(scope="module")
def run(workspace, dataset):
    return trained_run(
        workspace,
        dataset,
        "small",
        lambda layers: (
            layers.Conv2D(8, 3, padding="same", activation="relu", name="conv"),
            layers.MaxPooling2D(name="pool"),
            layers.Conv2D(8, 3, padding="same", activation="relu", name="deep"),
            layers.Flatten(name="flat"),
            layers.Dense(10, activation="softmax", name="classes"),
        ),
    )


@pytest.fixture(scope="module")
def plan(workspace, run):
    """A plan that is done, built once for all tests that only look at it."""
    job = built(workspace, run, SMALL)
    assert job.state()["status"] == "done", job.state()
    return job


def keras_answers(workspace, run, images):
    import keras

    model = keras.saving.load_model(workspace.runs / run / "model.keras", compile=False)
    return np.asarray(model(images, training=False))


# -- built -------------------------------------------------------------------------------------------------------------


def test_a_plan_answers_as_keras_does(plan):
    test = plan.report()["test"]
    assert test["images"] == 12
    assert test["plan_accuracy"] == test["keras_accuracy"]
    assert test["same_answers"] == 12
    assert test["largest_difference"] < 1e-5


def test_without_a_gpu_the_kernels_are_held_to_the_interpreter(plan):
    if plan.report()["measured"]:
        pytest.skip("a GPU answered all test images")
    test = plan.report()["test"]
    assert "interpreter" in test["by"]
    assert test["kernels"]["images"] == 1 + 4
    assert test["kernels"]["largest_difference"] < 1e-5


def test_there_is_a_file_for_each_batch_and_what_the_passes_did(plan):
    assert [path.name for path in plan.files()] == ["batch-1.plan", "batch-4.plan"]
    report = plan.report()
    assert set(report["batches"]) == {"1", "4"}
    assert any("cbrs made" in line for line in report["passes"])
    assert not any("Calibrating" in line for line in report["passes"])


def test_a_latency_says_whether_it_was_measured(plan):
    from warplab.hardware import backend

    report = plan.report()
    for row in report["batches"].values():
        assert row["latency"] > 0
        assert report["measured"] == (backend.name() == "gpu")
        assert row["label"].startswith("measured on" if report["measured"] else "estimated for")


def test_timings_are_kept_for_the_next_plan(workspace, plan):
    text = (workspace.plans / plans.TIMINGS).read_text()
    assert plan.report()["device"] in text


def test_int8_is_calibrated_on_training_images(workspace, run):
    job = built(workspace, run, plans.PlanSpec("int8", (4,), False, "min-max", 16, 8))
    test = job.report()["test"]
    assert 1e-6 < test["largest_difference"] < 0.05
    assert job.report()["batches"]["4"]["tuned"] == "each layer's default tactic"
    job.delete()


def test_a_layer_that_the_engine_has_not_is_named(workspace, dataset):
    run = trained_run(
        workspace,
        dataset,
        "leaky",
        lambda layers: (
            layers.Conv2D(4, 3, name="conv"),
            layers.LeakyReLU(name="leaks"),
            layers.GlobalAveragePooling2D(name="average"),
            layers.Dense(10, activation="softmax", name="classes"),
        ),
    )
    job = built(workspace, run, SMALL)
    state = job.state()
    assert state["status"] == "failed"
    assert "'leaks' is a LeakyReLU" in state["message"]
    assert "possible are Conv2D" in state["message"]
    with pytest.raises(DigitsError, match="is failed"):
        job.report()
    job.delete()


# -- served ------------------------------------------------------------------------------------------------------------


def test_a_served_plan_answers_over_http(workspace, dataset, run, plan):
    pytest.importorskip("kernels.serving")
    images = prepare(dataset.images("test")[:5])
    with service.start(workspace, plan.id) as running:
        assert running.url.startswith("http://127.0.0.1:")
        found = running.ask(images)
        assert np.abs(found - keras_answers(workspace, run, images)).max() < 1e-5
        with pytest.raises(DigitsError, match=r"\(8, 8, 1\)"):
            running.ask(images[:, :4])
        assert running.stop()["answered"] == 5
    with pytest.raises(DigitsError, match="Start it again"):
        running.ask(images)


def test_a_damaged_plan_is_not_served(workspace, run, plan):
    pytest.importorskip("kernels.serving")
    folder = workspace.create("plans", "damaged")
    for name in ("plan.json", "state.json", "report.json"):
        (folder / name).write_bytes((plan.folder / name).read_bytes())
    for path in plan.files():
        data = bytearray(path.read_bytes())
        data[-20] ^= 1
        (folder / path.name).write_bytes(data)
    with pytest.raises(DigitsError, match="damaged"):
        service.start(workspace, folder.name)
    plans.open(workspace, folder.name).delete()


# -- stopped, killed, damaged ------------------------------------------------------------------------------------------


def test_a_killed_process_leaves_a_plan_that_says_so(workspace, run):
    job = plans.start(workspace, run, SMALL)
    with pytest.raises(DigitsError, match="Stop it first"):
        job.delete()
    os.kill(job.wait(PATIENCE, until=("running",))["pid"], signal.SIGKILL)
    state = job.wait(PATIENCE)
    assert state["status"] == "killed"
    assert "Build the plan again" in state["message"]
    job.delete()
    assert job.id not in workspace.ids("plans")


def test_a_plan_is_stopped(workspace, run):
    job = plans.start(workspace, run, SMALL)
    job.stop()
    assert job.wait(PATIENCE)["status"] == "stopped"
    with pytest.raises(DigitsError, match="nothing to stop"):
        job.stop()
    job.delete()


def test_a_damaged_plan_breaks_no_list(workspace, plan):
    folder = workspace.create("plans", "torn")
    (folder / "plan.json").write_text('{"run": ')
    found = {job.id: job.state() for job in plans.listing(workspace)}
    assert found[folder.name]["status"] == "broken"
    assert found[plan.id]["status"] == "done"
    assert plans.open(workspace, folder.name).files() == []
    plans.open(workspace, folder.name).delete()


def changed(value, path, new):
    """A copy of a report or a state with one thing changed."""
    value = json.loads(json.dumps(value))
    place = value
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return value


HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize(
    ("path", "new"),
    [
        (("layers",), HOSTILE),
        (("layers",), True),
        (("passes",), [3]),
        (("batches",), {}),
        (("batches",), {HOSTILE: {}}),
        (("batches", "1", "latency"), "3"),
        (("batches", "1", "latency"), -1.0),
        (("batches", "1", "launches"), HOSTILE),
        (("batches", "1", "label"), None),
        (("test", "images"), HOSTILE),
        (("test", "kernels"), HOSTILE),
        (("test", "plan_accuracy"), float("nan")),
        (("test",), []),
    ],
)
def test_a_strangers_report_is_believed_in_no_type(workspace, plan, path, new):
    folder = workspace.create("plans", "copied")
    for name in ("plan.json", "state.json"):
        (folder / name).write_bytes((plan.folder / name).read_bytes())
    write_json(folder / "report.json", changed(plan.report(), path, new))
    copied = plans.open(workspace, folder.name)
    with pytest.raises(DigitsError, match="damaged"):
        copied.report()
    copied.delete()


@pytest.mark.parametrize(
    ("key", "new"),
    [("status", HOSTILE), ("status", None), ("message", 3), ("progress", "x"), ("seconds", None), ("pid", HOSTILE)],
)
def test_a_strangers_state_is_believed_in_no_type(workspace, plan, key, new):
    folder = workspace.create("plans", "copied")
    (folder / "plan.json").write_bytes((plan.folder / "plan.json").read_bytes())
    write_json(folder / "state.json", changed(plan.state(), (key,), new))
    copied = plans.open(workspace, folder.name)
    assert copied.state()["status"] == "broken"
    assert HOSTILE not in str(copied.state())
    copied.delete()


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"precision": "int4"}, "precision 'int4' does not exist"),
        ({"calibration": "luck"}, "calibration 'luck' does not exist"),
        ({"batches": ()}, "whole numbers from 1"),
        ({"batches": (0,)}, "whole numbers from 1"),
        ({"batches": (True,)}, "whole numbers from 1"),
        ({"batches": 8}, "whole numbers from 1"),
        ({"batches": (100_000,)}, "whole numbers from 1"),
        ({"test_images": 0}, "test_images must be"),
        ({"tuned": "yes"}, "tuned must be"),
    ],
)
def test_wrong_specs_are_refused(wrong, said):
    with pytest.raises(DigitsError, match=said):
        plans.PlanSpec(**wrong)


def test_without_lab_09_it_is_said_and_nothing_is_left(workspace, run, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    before = workspace.ids("plans")
    with pytest.raises(DigitsError, match="Lab 09"):
        plans.start(workspace, run, SMALL)
    assert workspace.ids("plans") == before


def test_a_run_without_weights_is_refused(workspace, dataset):
    folder = workspace.create("runs", "empty")
    write_json(folder / "run.json", {"id": folder.name, **RunSpec(dataset=dataset.id).to_json()})
    with pytest.raises(DigitsError, match="no weights yet"):
        plans.start(workspace, folder.name)
    with pytest.raises(DigitsError, match="no run"):
        plans.start(workspace, "nowhere")


def test_a_plan_that_is_not_done_is_not_served(workspace, plan):
    folder = workspace.create("plans", "unfinished")
    (folder / "plan.json").write_bytes((plan.folder / "plan.json").read_bytes())
    write_json(folder / "state.json", {"status": "stopped"})
    with pytest.raises(DigitsError, match="is stopped"):
        service.start(workspace, folder.name)
    plans.open(workspace, folder.name).delete()


# -- in a browser ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(missing() != "", reason=missing())
def test_a_plan_is_downloaded_served_called_and_stopped_in_a_browser(workspace, plan):
    pytest.importorskip("kernels.serving")
    with harness.page_in_chromium(workspace.root) as page:
        page.press("Network")
        page.choose("Network", "Your own Keras code")
        page.until_says("has not been checked" if not custom.unavailable() else "sandbox only")
        assert page.says("No sandbox is perfect")
        assert not page.is_pressable("Check the code")
        page.press("Deploy")
        page.choose("Plan", f"small, FP32 – done ({plan.id[:15]})")
        page.until_says("Latency, estimated" if not plan.report()["measured"] else "Latency")
        page.press("Offer the plan files")
        page.until_says("batch-4.plan")
        assert page.run("return document.querySelector('a[download]').download").endswith("batch-1.plan")
        page.press("Serve this plan")
        page.until_says("curl")
        page.press("Ask about the test image")
        page.until_says("The most probable classes")
        page.press("Stop serving")
        page.until_says("1 of 1 images were answered")
        page.press("Build the plan")
        page.press("Stop building")
        page.until_says("Stopped.")
        page.check()
