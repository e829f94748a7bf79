"""ONNX of trained runs: what ONNX Runtime answers beside Keras and a plan, what is in the file, what is refused."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest

from digits.deploy import onnx_export, plans
from digits.files import DigitsError, read_json
from digits.page import deploy_view
from digits.training.task import prepare

pytest.importorskip("kernels.fusion")
pytestmark = pytest.mark.tensorflow
deployed = importlib.import_module("tests.labs.12_digits.test_deploy")
workspace, dataset = deployed.workspace, deployed.dataset  # fixtures


@pytest.fixture(scope="module")
def run(workspace, dataset):
    return deployed.trained_run(
        workspace,
        dataset,
        "small",
        lambda layers: (
            layers.Conv2D(8, 3, padding="same", activation="relu", name="conv"),
            layers.MaxPooling2D(name="pool"),
            layers.Flatten(name="flat"),
            layers.Dense(10, activation="softmax", name="classes"),
        ),
    )


def test_onnx_runtime_answers_as_keras_and_the_plan_do(workspace, dataset, run):
    import onnxruntime

    plan = deployed.built(workspace, run, plans.PlanSpec(batches=(1,), tuned=False, test_images=4))
    assert plan.state()["status"] == "done"
    report = onnx_export.export(workspace, run, images=50)
    keras, runtime, planned = report["answers"]
    assert (keras["by"], runtime["by"], planned["by"]) == ("Keras", "ONNX Runtime", "The plan, FP32")
    for other in (runtime, planned):
        assert other["same_answers"] == report["images"] == 50
        assert other["accuracy"] == keras["accuracy"]
        assert 0 < other["largest_difference"] < 1e-5
    assert "ONNX Runtime" in deploy_view.exported(report)
    # The file by itself, as somebody else loads it: names of classes, channels first.
    path = workspace.runs / run / onnx_export.MODEL
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == [str(digit) for digit in range(10)]
    images = prepare(dataset.images("test")[:7])
    (answers,) = session.run(None, {session.get_inputs()[0].name: images.transpose(0, 3, 1, 2)})
    assert np.abs(answers - deployed.keras_answers(workspace, run, images)).max() < 1e-5


def test_a_wrong_answer_is_seen_in_the_report(workspace, dataset, run, monkeypatch):
    peer = importlib.import_module("kernels.fusion.peers.on_onnxruntime")
    real = peer.run

    def turned(model, images):
        found = real(model, images)
        return peer.Peer(found.before, found.after, np.roll(found.outputs, 1, axis=1))

    monkeypatch.setattr(peer, "run", turned)
    onnx_export.write(workspace.runs / run, 20)
    runtime = read_json(workspace.runs / run / onnx_export.REPORT)["answers"][1]
    assert runtime["same_answers"] < 20
    assert runtime["largest_difference"] > 1e-2


def test_a_layer_that_onnx_export_has_not_is_named(workspace, dataset):
    odd = deployed.trained_run(
        workspace,
        dataset,
        "odd",
        lambda layers: (
            layers.Flatten(name="flat"),
            layers.Dense(10, activation="gelu", name="curved"),
            layers.Softmax(name="classes"),
        ),
    )
    with pytest.raises(DigitsError, match="layer 'curved' has the activation gelu"):
        onnx_export.export(workspace, odd)
    assert not (workspace.runs / odd / onnx_export.MODEL).exists()


def test_runs_that_do_not_classify_and_those_without_weights_are_refused(workspace):
    stub = importlib.import_module("tests.labs.12_digits.run_stub")
    boxes = stub.written(workspace, "boxes", kind="detection", network={"name": "detectnet"})
    with pytest.raises(DigitsError, match="is for detection"):
        onnx_export.export(workspace, boxes.id)
    with pytest.raises(DigitsError, match="has no weights yet"):
        onnx_export.export(workspace, stub.written(workspace, "new").id)
