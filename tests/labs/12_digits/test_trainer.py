"""Trainings in one process of TensorFlow (training_cases.py): each test looks at what one of them returned."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

from warpcourse.paths import COURSE

pytestmark = pytest.mark.thorough  # all use one training, 50 s in each worker that meets one of them


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    command = [sys.executable, "-m", "tests.labs.12_digits.training_cases", str(tmp_path_factory.mktemp("cases"))]
    done = subprocess.run(command, cwd=COURSE, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def result(results, request):
    """What the case of the test's name returned."""
    found = results[request.node.name.removeprefix("test_")]
    assert not (isinstance(found, dict) and "failed" in found), found["failed"]
    return found


def test_paused_at_many_steps(result):
    """A pause ends the training before the step in which it was asked for, never later."""
    assert result["reached"] == [0, 3, 12, 13, 23]
    assert result["equal"]
    assert result["said"][1] == "Goes on from the checkpoint of step 0 of 24."


def test_a_pause_in_a_validation_leaves_no_point_and_comes_back_to_it(result):
    assert result == {"ended": "pause", "parts": ["train"], "equal": True}


def test_each_optimizer_resumes(result):
    assert len(result) == 7
    assert [found["equal"] for found in result.values() if "equal" in found] == [True] * 4
    assert len({found["first"] for found in result.values()}) == 1
    assert len({found["last"] for found in result.values()}) == 7  # and no two of them are the same


def test_each_precision_resumes(result):
    for precision, found in result.items():
        assert found["equal"], precision
        assert found["computes"] == precision.removeprefix("mixed_")
        assert (found["holds"], found["puts out"]) == ("float32", "float32")
        assert found["accuracy"] > 0.9
    assert len(result) == 2


def test_what_is_trained_is_what_is_loaded(result):
    assert result["stopped"]
    assert result["newest"]
    assert result["earlier differs"]
    assert result["names"] == [
        ["model", 30, 2.5],
        ["step-000000030", 30, 2.5],
        ["step-000000024", 24, 2.0],
        ["step-000000012", 12, 1.0],
    ]
    assert result["a stopped model is removed when the run goes on"]
    assert result["kept"] == [12, 24, 36, 48]
    assert result["after"] == ["model", "step-000000048"]
    assert "has no checkpoint 'step-000000099'" in result["none"]


def test_damage_is_told(result):
    assert "has no weights yet" in result["no checkpoint"]
    assert "step 5 is damaged: its checksum differs" in result["no checkpoint"]
    equal, _, said = result["begins again"]
    assert equal
    assert "No checkpoint is left that can be read: the training begins again, with the same curves." in said
    assert "model.keras of" in result["model"]
    assert "cannot be read as a Keras model" in result["model"]
    assert "network.json of" in result["network"]
    assert "is damaged" in result["network"]
    assert "has 46 images to train on, and had 30 when the run began" in result["dataset"]
    assert "does not fit the network: it has an array of shape (3, 3) for layer classes" in result["other network"]


def test_a_rate_that_is_too_high_is_told(result):
    assert "no longer a number at step 7, epoch 0.58" in result["told"]
    assert "Start a new run with a lower one, such as 0.05." in result["told"]
    assert math.isinf(result["last"]) or math.isnan(result["last"])
    assert result["checkpoints"] == [0, 6]


def test_starts_from_trained_weights(result):
    assert result["same"] == [True, True]
    assert result["said"] == "4 of 4 layers with weights start from trained ones."
    assert "2 of 4 layers" in result["wider"]
    assert "dense (40 × 16 + 16 there, 40 × 17 + 17 here)" in result["wider"]
    assert "No layer of the start fits this network" in result["other"]
    assert "There is no run '20200101-000000-gone'" in result["gone"]


def test_frozen_layers_stay_frozen_after_a_pause(result):
    assert result["equal"]
    layers = ("convolution_1", "convolution_2", "dense")
    assert all(result["kept"][f"{layer}/{at}"] for layer in layers for at in (0, 1))
    assert not result["kept"]["classes/0"]  # the last layer is trained
    assert result["said"][1] == "3 of them are frozen: they stay as they are."


def test_lab_09_is_a_start(result):
    if result is None:
        pytest.skip("lab 09 (kernels/fusion) is not here")
    assert result["accuracy"] > 0.97
    assert "layers with weights start from trained ones." in result["said"]
    assert "Random" not in result["said"]


def test_lenet_learns_the_digits(result):
    first, last, epochs = result
    assert first < 0.3
    assert last >= 0.97
    assert epochs == 20


def test_each_network_has_the_promised_form(result):
    for name, image, given, outputs, dtype in result["networks"]:
        assert given == image, name
        assert len(outputs) == (2 if name == "googlenet" else 1)
        assert outputs == [outputs[0]] * len(outputs)
        assert dtype == "float32"
    assert len(result["networks"]) == 9
    assert result["mixed"] == ["float32", "float32"]
    assert result["as lab 09"]
    assert "needs images of at least 8 × 8 pixels; these have 7 × 8" in result["small"]
    assert "needs images of at least 4 × 4 pixels; these have 8 × 3" in result["smaller"]
    assert "no network 'alexnet'" in result["unknown"]
    assert "units of the network lenet must be a whole number from 1 to 16384, not 2.5" in result["option"]


def test_a_model_that_does_not_fit_the_disk_is_told(result):
    assert result["told"].startswith("Cannot write model.keras: ")
    assert result["left"] == []


def test_validations_as_often_as_asked(result):
    assert result["epochs"] == [0, 2, 4, 5]
    assert result["best"]
    assert result["listing"] == [True]
