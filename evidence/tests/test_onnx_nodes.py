"""The page of onnx's node tests says what their runs say, here of four operators."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from evidence.onnx_nodes import run

SOME = ("Conv", "Gelu", "GroupNormalization", "Relu")


@pytest.fixture(scope="module")
def found():
    return run.outcomes(SOME)


def test_the_page_has_the_rows_of_its_runs(found):
    rows = [line for line in run.page(found).splitlines() if line.startswith("| `")]
    kept = run.PAGE.read_text(encoding="utf-8").splitlines()
    assert [row for row in rows if row not in kept] == [], "run: python -m evidence.onnx_nodes.run"
    assert {row.split("`")[1] for row in rows} == set(SOME)
    assert not [one for one in found if one.kind == run.WRONG]


def test_wrong_results_are_found(monkeypatch):
    monkeypatch.setattr(run, "fuse", lambda graph: graph.rebuilt(graph.nodes))
    monkeypatch.setattr(run.interpret, "run", lambda graph, *inputs: {graph.outputs[0]: -inputs[0]})
    (first, *_) = run.outcomes(("Relu",))
    assert (first.kind, first.why[:12]) == (run.WRONG, "interpreter:")


def test_constants_take_the_place_of_inputs():
    shown = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("a", "b", "y")]
    node = helper.make_node("Add", ["a", "b"], ["y"])
    model = helper.make_model(helper.make_graph([node], "add", shown[:2], shown[2:]))
    made = run.with_constants(model, [np.zeros((2, 3)), np.ones((2, 3), np.float32)], [0])
    assert [one.name for one in made.graph.input] == ["a"]
    assert [one.name for one in made.graph.initializer] == ["b"]
    assert len(model.graph.input) == 2
