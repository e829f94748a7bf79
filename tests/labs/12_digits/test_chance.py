"""What the train panel says of a run that does no better than guessing."""

import importlib

import numpy as np
import pytest

from digits.data.dataset import Dataset
from digits.page import chance
from digits.workspace import Workspace

stub = importlib.import_module("tests.labs.12_digits.run_stub")


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace")


def dataset(workspace, images=100, first=60, name="blobs"):
    """`first` of the validation images are of the first of two classes."""
    labels = (np.arange(images) >= first).astype(int)
    part = {"images": np.zeros((images, 4, 4, 1), np.uint8), "labels": labels}
    parts = {"train": part, "validation": part}
    return Dataset.create(workspace, name, "classification", ["a", "<b>"], parts, seed=0, source="a test")


def test_a_run_at_the_share_of_the_commonest_class_gets_a_hint(workspace):
    run = stub.written(workspace, "flat", epochs=4, accuracy=0.61, dataset=dataset(workspace).id)
    said = chance.hint(workspace, run)
    assert "After 4 epochs the validation accuracy is 61.0 % at best." in said
    assert "commonest of the 2 classes would be right in 60.0 % of the images" in said
    assert "divide the rate by 10 in Solver, or multiply it" in said


@pytest.mark.parametrize(("accuracy", "hinted"), [(0.5, True), (0.69, True), (0.71, False), (0.95, False)])
def test_two_deviations_above_guessing_are_no_luck(workspace, accuracy, hinted):
    run = stub.written(workspace, "run", epochs=4, accuracy=accuracy, dataset=dataset(workspace).id)
    assert bool(chance.hint(workspace, run)) == hinted  # 0.6 + 2 · √(0.6 · 0.4 / 100) = 0.698


def test_no_hint_before_there_is_something_to_say(workspace):
    of = dataset(workspace).id
    assert chance.hint(workspace, stub.written(workspace, "new", epochs=4, reached=0, dataset=of)) == ""
    assert chance.hint(workspace, stub.written(workspace, "young", epochs=4, reached=1, accuracy=0.2, dataset=of)) == ""
    few = dataset(workspace, images=40, first=20, name="few").id
    assert chance.hint(workspace, stub.written(workspace, "few", accuracy=0.5, dataset=few)) == ""


def test_a_dataset_that_is_gone_gives_no_hint(workspace):
    found = dataset(workspace)
    run = stub.written(workspace, "orphan", accuracy=0.5, dataset=found.id)
    assert chance.hint(workspace, run)
    found.delete()
    assert chance.hint(workspace, run) == ""
