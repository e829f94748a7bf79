"""Graphs to ONNX and back; ONNX Runtime, which others wrote, computes what the interpreter computes."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from kernels.fusion.exchange.onnx_export import export_onnx
from kernels.fusion.exchange.onnx_import import IMPORTED, UnsupportedOperator, import_onnx
from kernels.fusion.graph import Graph, GraphError
from kernels.fusion.graph.interpret import run
from kernels.fusion.passes.optimise import fuse
from kernels.fusion.trained import digits
from kernels.fusion.trained.network import trained_graph
from tests.support.random_inputs import generator

from .random_graphs import from_seed


def by_onnx_runtime(model: onnx.ModelProto, inputs: list[np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    return session.run(None, {name: x.astype(np.float32) for name, x in zip(names, inputs, strict=True)})


def inputs_of(graph: Graph, batch: int) -> list[np.ndarray]:
    return [np.random.default_rng(5).normal(size=(batch, *graph.tensors[name].shape)) for name in graph.inputs]


def compare(graph: Graph, batch: int = 3) -> None:
    """The exported graph by ONNX Runtime, and imported again by the interpreter, against the graph itself."""
    model, given = export_onnx(graph), inputs_of(graph, batch)
    expected, again = run(graph, *given), run(import_onnx(model), *given)
    for name, found in zip(graph.outputs, by_onnx_runtime(model, given), strict=True):
        size = max(1.0, float(abs(expected[name]).max()))
        assert abs(found - expected[name]).max() <= 1e-4 * size
        assert abs(again[name] - expected[name]).max() <= 1e-9 * size


@pytest.mark.parametrize("seed", range(40))
def test_onnx_runtime_computes_random_graphs_as_the_interpreter_does(seed):
    # A batch of one, since ONNX joins no constant to a batch of several.
    compare(from_seed(seed), batch=1)


def test_the_network_keeps_its_accuracy_in_onnx():
    _, _, test = digits.split()
    graph = trained_graph()
    (found,) = by_onnx_runtime(export_onnx(graph), [test.images])
    assert abs(found - run(graph, test.images)["probabilities"]).max() < 1e-5
    assert (found.argmax(axis=1) == test.labels).mean() >= 0.97


def test_an_imported_network_is_optimised_like_the_one_exported(tmp_path):
    path = tmp_path / "network.onnx"
    onnx.save(export_onnx(trained_graph()), str(path))
    graph = import_onnx(path)
    fused = fuse(graph)
    # The vector of averages came as an image of 1 × 1 and a flatten.
    assert len(fused.nodes) == 17 + 1
    _, _, test = digits.split()
    assert abs(run(fused, test.images[:9])["probabilities"] - run(graph, test.images[:9])["probabilities"]).max() < 1e-5


def test_what_passes_made_is_not_exported():
    with pytest.raises(GraphError, match=r"'stem' is a cbr.*export before any pass"):
        export_onnx(fuse(trained_graph()))


def model_of(
    op: str, shape: tuple = (2, 4, 4), weights: tuple[np.ndarray, ...] = (), outputs: int = 1, **attributes
) -> onnx.ModelProto:
    """A model of one node, `node`, that reads x and weights."""
    names = [f"w{i}" for i in range(len(weights))]
    results = [f"y{i}" for i in range(outputs)]
    domain = attributes.pop("domain", "")
    node = helper.make_node(op, ["x", *names], results, "node", domain=domain, **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *shape])
    tensors = [numpy_helper.from_array(np.asarray(w), name) for w, name in zip(weights, names, strict=True)]
    shown = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * (1 + len(shape))) for name in results]
    graph = helper.make_graph([node], "one", [x], shown, tensors)
    imports = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


FILTERS = np.ones((4, 2, 3, 3), np.float32)
REFUSED = {
    "'y0' is a Sigmoid, which cannot be imported; possible are Conv": model_of("Sigmoid"),
    r"'y0' \(Conv\) cannot be imported: group is 2; possible: 1": model_of(
        "Conv", weights=(np.ones((4, 1, 3, 3), np.float32),), group=2
    ),
    r"\(MaxPool\) cannot be imported: ceil_mode is 1": model_of("MaxPool", kernel_shape=[2, 2], ceil_mode=1),
    r"\(MaxPool\) .*more results than its first": model_of("MaxPool", kernel_shape=[2, 2], outputs=2),
    r"\(Concat\) .*axis is 2": model_of("Concat", axis=2),
    r"\(Flatten\) .*axis is 2": model_of("Flatten", axis=2),
    r"\(Gemm\) .*transA is 1": model_of("Gemm", (2,), (np.ones((2, 3), np.float32),), transA=1),
    r"\(Conv\) .*'w0' is float64; possible: float32": model_of("Conv", weights=(FILTERS.astype(np.float64),)),
    "is a FusedMatMul": model_of("FusedMatMul", (2,), (np.ones((2, 3), np.float32),), domain="com.microsoft"),
    r"input 'x' is FLOAT of \? × 2 × \? × 4": model_of("Relu", (2, "h", 4)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_imported_is_refused_by_name(message, monkeypatch):
    # The checker would refuse some of these first, as ONNX that is wrong.
    monkeypatch.setattr(onnx.checker, "check_model", lambda model: None)
    with pytest.raises(UnsupportedOperator, match=message):
        import_onnx(REFUSED[message])


def test_weights_that_are_computed_are_refused():
    model = model_of("Conv", weights=(FILTERS,))
    nodes = [helper.make_node("Identity", ["w0"], ["w"], "copy"), model.graph.node[0]]
    nodes[1].input[1] = "w"
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    with pytest.raises(UnsupportedOperator, match=r"'copy' \(Identity\).*'w0' is \(4, 2, 3, 3\)"):
        import_onnx(model)


def test_what_is_not_onnx_is_refused():
    with pytest.raises(onnx.checker.ValidationError):
        import_onnx(onnx.ModelProto())


@pytest.mark.parametrize("kind", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("op", ["Conv", "MaxPool", "AveragePool"])
def test_automatic_padding_is_onnx_runtimes(op, kind):
    given = generator().normal(size=(2, 2, 5, 6))
    if op == "Conv":
        weights = (np.random.default_rng(1).normal(size=(4, 2, 3, 2)).astype(np.float32),)
        model = model_of(op, (2, 5, 6), weights, auto_pad=kind, strides=[2, 1])
    else:
        model = model_of(op, (2, 5, 6), kernel_shape=[3, 2], auto_pad=kind, strides=[2, 1])
    (expected,) = by_onnx_runtime(model, [given])
    np.testing.assert_allclose(run(import_onnx(model), given)["y0"], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("op", "shape", "weights", "attributes"),
    [
        ("Add", (3, 4, 4), (np.float32([[[1]], [[2]], [[3]]]),), {}),
        ("Add", (3, 4, 4), (np.float32(2),), {}),
        ("Add", (3, 4, 4), (np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4).repeat(3, 1),), {}),
        ("Add", (3,), (np.float32([1, 2, 3]),), {}),
        ("Gemm", (3,), (np.arange(6, dtype=np.float32).reshape(3, 2), np.float32([1, 2])), {"alpha": 2.0, "beta": 0.5}),
        ("Gemm", (3,), (np.arange(6, dtype=np.float32).reshape(2, 3),), {"transB": 1}),
        ("MatMul", (3,), (np.arange(6, dtype=np.float32).reshape(3, 2),), {}),
        ("BatchNormalization", (2, 4, 4), tuple(np.float32([i + 1, i + 2]) for i in range(4)), {}),
        ("AveragePool", (2, 4, 4), (), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
        ("Softmax", (5,), (), {}),
        ("GlobalAveragePool", (2, 4, 4), (), {}),
        ("Dropout", (5,), (), {}),
    ],
)
def test_operators_as_onnx_runtime_runs_them(op, shape, weights, attributes):
    model = model_of(op, shape, weights, **attributes)
    given = generator().normal(size=(2, *shape))
    (expected,) = by_onnx_runtime(model, [given])
    found = run(import_onnx(model), given)["y0"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert op in IMPORTED


def test_constants_may_be_nodes_and_names_may_be_missing():
    value = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.float32([[[5]], [[6]]])))
    relu, add = helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["c", "r"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 3, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 3, 3])
    graph = helper.make_graph([value, relu, add], "constants", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    found = import_onnx(model)
    assert [node.op for node in found.nodes] == ["relu", "constant", "add"]
    given = generator().normal(size=(4, 2, 3, 3))
    expected = np.maximum(given, 0) + np.array([5, 6]).reshape(1, 2, 1, 1)
    np.testing.assert_allclose(run(found, given)["y"], expected)
