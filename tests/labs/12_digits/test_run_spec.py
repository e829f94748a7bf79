"""A run's description: written and read without loss, and wrong values refused with a sentence."""

from __future__ import annotations

import json
import math

import pytest

from digits.files import DigitsError
from digits.training.spec import RunSpec, Solver


def test_what_is_written_is_read_again():
    solver = Solver(epochs=3, policy={"name": "step", "size": 20}, augment={"shift": 0.1}, precision="mixed_bfloat16")
    spec = RunSpec("data", {"name": "lenet", "units": 64}, solver, name="Größe", start="some-run")
    stored = json.loads(json.dumps(spec.to_json()))
    assert RunSpec.from_json(stored) == spec
    assert stored["network"] == {"name": "lenet", "units": 64}


def test_a_run_without_a_name_has_its_networks():
    assert RunSpec("data", {"name": "googlenet"}, name="  ").name == "googlenet"


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"epochs": 0}, "epochs must be from 1"),
        ({"epochs": 2.5}, "epochs must be a whole number"),
        ({"epochs": "3"}, "epochs must be a whole number"),
        ({"epochs": math.inf}, "epochs must be a whole number"),
        ({"batch": 0}, "batch must be from 1"),
        ({"batch": True}, "batch must be a whole number"),
        ({"rate": 0}, "learning rate is 0"),
        ({"rate": -1}, "rate must be from 0"),
        ({"rate": math.nan}, "rate must be a number"),
        ({"seed": -1}, "seed must be from 0"),
        ({"seed": 2**31}, "seed must be from 0"),
        ({"optimizer": "newton"}, "optimizer must be one of sgd"),
        ({"precision": "float8"}, "precision must be one of float32"),
        ({"precision": ["float32"]}, "precision must be one of float32"),
        ({"momentum": 1}, "momentum must be from 0"),
        ({"policy": {"name": "no"}}, "learning-rate policy 'no'"),
        ({"augment": {"shift": 3}}, "shift is 3"),
        ({"augment": []}, None),
        ({"augment": [1]}, "Augmentation"),
        ({"validate_every": 0}, "validate_every must be from 1"),
    ],
)
def test_a_wrong_solver_is_refused(setting, told):
    if told is None:
        Solver(**setting)
        return
    with pytest.raises(DigitsError, match=told):
        Solver(**setting)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"dataset": ""}, "No dataset is chosen"),
        ({"dataset": None}, "No dataset is chosen"),
        ({"network": "lenet"}, "network must be a table"),
        ({"network": {"name": "fcn"}}, "network of a run of kind classification must be one of lenet"),
        ({"kind": "generation"}, "kind must be one of classification"),
        ({"start": ""}, "start must be the ID"),
        ({"name": "x" * 201}, "at most 200 characters"),
        ({"solver": {}}, "solver must be a Solver"),
    ],
)
def test_a_wrong_run_is_refused(setting, told):
    with pytest.raises(DigitsError, match=told):
        RunSpec(**{"dataset": "data", **setting})


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        ({}, "names no dataset"),
        ({"dataset": "d", "epochs": 3}, "no setting 'epochs'"),
        ({"dataset": "d", "id": "mine"}, "no setting 'id'"),
        ({"dataset": "d", "solver": {"epoch": 3}}, "A solver has no setting 'epoch'. It has epochs, batch"),
        ({"dataset": "d", "network": {"name": "lenet", "unit": 3}}, "no option 'unit'. It has filters, units, dropout"),
        ({"dataset": "d", "solver": [3]}, "solver must be a table"),
    ],
)
def test_a_damaged_description_is_refused(stored, told):
    with pytest.raises(DigitsError, match=told):
        RunSpec.from_json(stored)
