"""Graphs to ONNX and back; ONNX Runtime, which others wrote, computes what the interpreter computes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from kernels.fusion import plan
from kernels.fusion.exchange.onnx_export import export_onnx
from kernels.fusion.exchange.onnx_import import IMPORTED, UnsupportedOperator, import_onnx
from kernels.fusion.graph import Graph, GraphError, cost
from kernels.fusion.graph.interpret import run
from kernels.fusion.passes.optimise import fuse, optimise
from kernels.fusion.trained import digits
from kernels.fusion.trained.network import trained_graph
from tests.support.lazily import module
from tests.support.random_inputs import generator
from warpcourse.bench.attention import by_kernels

from . import fuzz_models, real_networks
from .random_graphs import from_seed

onnxruntime = module("onnxruntime")


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
        # What constants alone make is computed in float32 while a model is imported.
        assert abs(again[name] - expected[name]).max() <= 1e-6 * size


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
    assert len(fused.nodes) == 17
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


def where_of(condition: list) -> onnx.ModelProto:
    """A choice between x, of two features, and 1."""
    model = model_of("Where", (2,), (np.array(condition), np.array(1, np.float32)))
    model.graph.node[0].input[:] = ["w0", "w1", "x"]
    return model


def of_nodes(*nodes: onnx.NodeProto, shape: tuple = ("n", 3), **weights: np.ndarray) -> onnx.ModelProto:
    """A model of several nodes, from x to y, which may be of any shape."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(shape))
    tensors = [numpy_helper.from_array(np.asarray(values), name) for name, values in weights.items()]
    graph = helper.make_graph(nodes, "several", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def of_batch(last: onnx.NodeProto, part: int = 0) -> onnx.ModelProto:
    """x, of so many axes, and `size`, the size of an axis of it, as a float; `sizes`, as a list."""
    make = helper.make_node
    nodes = make("Shape", ["x"], ["all"]), make("Slice", ["all", "part", "next"], ["sizes"])
    cast = make("Cast", ["sizes"], ["size"], to=TensorProto.FLOAT)
    return of_nodes(*nodes, cast, last, part=np.int64([part]), next=np.int64([part + 1]), one=np.int64([1]))


FILTERS = np.ones((4, 2, 3, 3), np.float32)
MATRIX = np.ones((2, 3), np.float32)
REFUSED = {
    "'y0' is a Tan, which cannot be imported; possible are Abs, Add, .*, and what ONNX makes of these": model_of("Tan"),
    r"'y0' \(Conv\) cannot be imported: 2 channels in 2 groups meet filters of 2": model_of(
        "Conv", weights=(FILTERS,), group=2
    ),
    r"\(Conv\) cannot be imported: a window of 3 pixels does not fit the padded image's 2": model_of(
        "Conv", (2, 2, 2), (FILTERS,)
    ),
    r"\(AveragePool\) .*ceil_mode and count_include_pad are 1; possible: one of them": model_of(
        "AveragePool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, count_include_pad=1
    ),
    r"\(MaxPool\) .*dilations are \[2, 2\]; possible: 1": model_of("MaxPool", kernel_shape=[2, 2], dilations=[2, 2]),
    r"\(MaxPool\) .*more results than its first": model_of("MaxPool", kernel_shape=[2, 2], outputs=2),
    r"\(Concat\) .*axis is 0; possible: 1 to 3, since the batch's is left alone": model_of("Concat", axis=0),
    r"\(Flatten\) .*axis is 2": model_of("Flatten", axis=2),
    r"\(Gemm\) .*transA is 1": model_of("Gemm", (2,), (MATRIX,), transA=1),
    r"\(Gemm\) .*C is \(2, 1\), a number for each sample; possible: one for each output": model_of(
        "Gemm", (2,), (MATRIX, np.ones((2, 1), np.float32))
    ),
    r"\(Dropout\) .*training_mode is true; possible: false": model_of(
        "Dropout", (2,), (np.array(0.5, np.float32), np.array(True))
    ),
    r"\(Dropout\) .*is_test is 0; possible: 1": model_of("Dropout", (2,), is_test=0),
    r"\(Add\) .*'w0' is \(2, 1, 4, 4\); possible: what fits each sample of \(2, 4, 4\)": model_of(
        "Add", weights=(np.ones((2, 1, 4, 4), np.float32),)
    ),
    r"\(Add\) .*shapes \(2, 4, 4\) and \(3, 1, 1\) cannot be joined": model_of(
        "Add", weights=(np.ones((3, 1, 1), np.float32),)
    ),
    r"\(MatMul\) .*its second input is \(2, 4, 3\); possible: one matrix": model_of(
        "MatMul", weights=(np.ones((2, 4, 3), np.float32),)
    ),
    r"\(Reshape\) .*it makes \(2, -1\) of a batch of \(2, 4, 4\)": model_of("Reshape", weights=(np.array([2, -1]),)),
    r"\(Transpose\) .*perm is \[1, 0, 2, 3\]; possible: 0 first": model_of("Transpose", perm=[1, 0, 2, 3]),
    r"\(Where\) .*its condition differs from element to element; possible: one for all": where_of([True, False]),
    r"\(Where\) .*possible: a constant as large, or less": where_of([[[False]], [[False]]]),
    r"\(Cast\) .*to is INT32; possible: FLOAT": model_of("Cast", to=TensorProto.INT32),
    r"\(Gather\) .*indices are \[0, 2, 1\]; possible: one, or several at equal steps": model_of(
        "Gather", (3, 4), (np.array([0, 2, 1]),), axis=1
    ),
    r"\(Gather\) .*indices are \[4\]; possible: what axis 1 has": model_of("Gather", (4, 3), (np.array([4]),), axis=1),
    r"\(Conv\) .*pads are \[-1, 0, 0, 0\]; possible: 4 pads of 0 or more": model_of(
        "Conv", weights=(FILTERS,), pads=[-1, 0, 0, 0]
    ),
    r"\(Conv\) .*\(3, 3\), \(1, 0\) and \(1, 1\), pads are .*; possible: .* above": model_of(
        "Conv", weights=(FILTERS,), strides=[1, 0]
    ),
    r"\(MaxPool\) .*\(2, 2\), \(1, 1, 1\) and": model_of("MaxPool", kernel_shape=[2, 2], strides=[1, 1, 1]),
    r"\(MaxPool\) .*; possible: .* up to 4096": model_of("MaxPool", kernel_shape=[2, 2], strides=[2**63 - 1, 1]),
    r"\(MaxPool\) .*auto_pad is 'SAME'; possible: NOTSET, ": model_of("MaxPool", kernel_shape=[2, 2], auto_pad="SAME"),
    r"\(MaxPool\) .*ceil_mode is 2; possible: 0 or 1": model_of("MaxPool", kernel_shape=[2, 2], ceil_mode=2),
    r"\(ReduceMean\) .*keepdims is 3; possible: 0 or 1": model_of("ReduceMean", axes=[2], keepdims=3),
    r"\(Split\) .*its parts are \[1, 2\]; possible: 2 of 4 in all": model_of(
        "Split", (4,), (np.int64([1, 2]),), outputs=2, axis=1
    ),
    r"\(MatMul\) .*its second input is \(1, 2, 3\); possible: one matrix": model_of(
        "MatMul", (2,), (np.ones((1, 2, 3), np.float32),)
    ),
    r"\(Squeeze\) .*takes the batch's away; possible: others named": of_nodes(
        helper.make_node("Squeeze", ["x"], ["y"]), shape=(1, 3, 1)
    ),
    r"\(Div\) .*'size' depends on the batch, which is free": of_batch(helper.make_node("Div", ["x", "size"], ["y"])),
    r"\(Slice\) .*what it leaves depends on the batch": of_batch(
        helper.make_node("Slice", ["x", "part", "sizes", "one"], ["y"])
    ),
    r"\(Expand\) .*another axis than the batch's depends on the batch": of_batch(
        helper.make_node("Expand", ["x", "sizes"], ["y"])
    ),
    r"\(Reshape\) .*another axis than the batch's depends on the batch": of_nodes(
        helper.make_node("Shape", ["x"], ["all"]),
        helper.make_node("Min", ["all", "eight"], ["least"]),
        helper.make_node("Slice", ["least", "part", "next"], ["sizes"]),
        helper.make_node("Concat", ["sizes", "sizes", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
        shape=("n", 8),
        eight=np.int64(8),
        part=np.int64([0]),
        next=np.int64([1]),
        rest=np.int64([-1]),
    ),
    r"\(Mul\) .*'alone' depends on the batch, which is free": of_nodes(
        helper.make_node("Shape", ["x"], ["all"], end=1),
        helper.make_node("Equal", ["all", "one"], ["is"]),
        helper.make_node("Cast", ["is"], ["alone"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["x", "alone"], ["y"]),
        one=np.int64([1]),
    ),
    r"\(ConstantOfShape\) .*1,099,511,627,776 elements are more than 268,435,456": of_nodes(
        helper.make_node("ConstantOfShape", ["size"], ["zeros"]),
        helper.make_node("Add", ["x", "zeros"], ["y"]),
        size=np.int64([1, 2**40]),
    ),
    "output 'y' is INT8; possible: a node's result in FLOAT": of_nodes(
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"]), scale=np.float32(1), zero=np.int8(0)
    ),
    r"input 'x' is FLOAT of \? × -3": of_nodes(helper.make_node("Relu", ["x"], ["y"]), shape=("n", -3)),
    "input 'x' is FLOAT of -1 × 3": of_nodes(helper.make_node("Relu", ["x"], ["y"]), shape=(-1, 3)),
    r"\(Conv\) .*'w0' is float64; possible: float32": model_of("Conv", weights=(FILTERS.astype(np.float64),)),
    "is a FusedMatMul": model_of("FusedMatMul", (2,), (MATRIX,), domain="com.microsoft"),
    r"input 'x' is FLOAT of \? × 2 × \? × 4": model_of("Relu", (2, "h", 4)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_imported_is_refused_by_name(message, monkeypatch):
    # The checker would refuse some of these first, as ONNX that is wrong.
    monkeypatch.setattr(onnx.checker, "check_model", lambda model: None)
    with pytest.raises(UnsupportedOperator, match=message):
        import_onnx(REFUSED[message])


def test_weights_that_are_computed_of_constants_are_known_and_others_refused():
    model = model_of("Conv", (2, 3, 3), weights=(FILTERS,))
    nodes = [helper.make_node("Neg", ["w0"], ["w"], "opposite"), model.graph.node[0]]
    nodes[1].input[1] = "w"
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    (node,) = import_onnx(model).nodes
    assert (node.weights["filters"] == -FILTERS).all()
    model.graph.node[0].input[0] = "x"
    with pytest.raises(UnsupportedOperator, match=r"'y0' \(Conv\) cannot be imported: 'w' is computed"):
        import_onnx(model)


def test_what_is_not_onnx_is_refused():
    with pytest.raises(onnx.checker.ValidationError):
        import_onnx(onnx.ModelProto())


def test_damaged_files_are_refused_by_their_name(tmp_path):
    model, path = model_of("Conv", (2, 3, 3), (FILTERS,)), tmp_path / "model.onnx"
    data = model.SerializeToString()
    for each in (data[: len(data) // 2], b"\x89PNG\r\n" + bytes(99)):
        path.write_bytes(each)
        with pytest.raises(onnx.checker.ValidationError, match=r"model.onnx is no ONNX, or damaged .*: copy it again"):
            import_onnx(path)
    onnx.save(model, path, save_as_external_data=True, location="weights", size_threshold=0)
    (tmp_path / "weights").write_bytes(bytes(9))
    with pytest.raises(onnx.checker.ValidationError, match=r"exceeds available data .*: copy it again"):
        import_onnx(path)
    with pytest.raises(FileNotFoundError):
        import_onnx(tmp_path / "another.onnx")


def test_a_constants_bytes_must_fit_its_shape():
    model = model_of("Conv", (2, 3, 3), (FILTERS,))
    model.graph.initializer[0].data_type = TensorProto.FLOAT16
    with pytest.raises(onnx.checker.ValidationError, match=r"the model is no ONNX, or damaged \(cannot reshape"):
        import_onnx(model)


def test_a_sparse_constant_is_refused_by_its_name():
    model = model_of("MatMul", (2,), (MATRIX,))
    one = helper.make_tensor("w0", TensorProto.FLOAT, [1], [1.0]), helper.make_tensor("at", TensorProto.INT64, [1], [3])
    del model.graph.initializer[:]
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(*one, [2, 3]))
    with pytest.raises(UnsupportedOperator, match="constant 'w0' is sparse"):
        import_onnx(model)


def test_a_constant_that_is_no_number_does_not_depend_on_the_batch():
    model = of_nodes(
        helper.make_node("Neg", ["w"], ["v"]), helper.make_node("Mul", ["x", "v"], ["y"]), w=np.float32([1, np.nan, 2])
    )
    assert np.isnan(run(import_onnx(model), np.ones((2, 3)))["y"][:, 1]).all()


@pytest.mark.parametrize("files", [150, pytest.param(fuzz_models.FILES, marks=pytest.mark.thorough)])
def test_damaged_models_are_refused_or_right(files):
    rng = np.random.default_rng()
    seed = int(rng.integers(2**31))
    for network in fuzz_models.MODELS:
        assert fuzz_models.outcome(network(rng)) == "imported, equal"
    counts, failures = fuzz_models.fuzz(files, seed)
    assert not failures, "\n".join(failures)
    assert counts.total() == files
    assert min(counts[f"refused: {kind}"] for kind in ("UnsupportedOperator", "ValidationError")) > files / 50, seed
    assert counts["imported, equal"] > files / 50, seed


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
        ("Gemm", (3,), (np.eye(3, dtype=np.float32), np.float32([[5]])), {}),
        ("Sub", (3,), (np.float32([1, 2, 3]),), {}),
        ("Div", (2, 4), (np.float32([[1, 2, 4, 8]]),), {}),
        ("Mul", (3, 4, 4), (np.float32([[[1]], [[2]], [[3]]]),), {}),
        ("MaxPool", (2, 5, 6), (), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        (
            "AveragePool",
            (2, 5, 6),
            (),
            {"kernel_shape": [3, 2], "strides": [2, 3], "ceil_mode": 1, "pads": [0, 0, 1, 0]},
        ),
        ("MaxPool", (2, 7), (), {"kernel_shape": [3], "strides": [2], "pads": [1, 0]}),
        ("Conv", (2, 7), (np.arange(18, dtype=np.float32).reshape(3, 2, 3),), {"pads": [2, 0], "dilations": [2]}),
        ("Softmax", (3, 4, 5), (), {"axis": 2}),
        ("Softmax", (6, 1, 1), (), {"axis": 1}),
        ("LogSoftmax", (3, 4), (), {}),
        ("MatMul", (2, 4, 3), (np.arange(6, dtype=np.float32).reshape(3, 2),), {}),
        ("Transpose", (2, 3, 4), (), {"perm": [0, 3, 1, 2]}),
        ("Flatten", (2, 3, 4), (), {"axis": -3}),
        ("ReduceMean", (2, 3, 4), (), {"axes": [1, -1], "keepdims": 0}),
        ("InstanceNormalization", (2, 3, 4), (np.float32([1, 2]), np.float32([3, 4])), {}),
        ("LRN", (6, 3, 4), (), {"size": 3, "alpha": 0.5, "bias": 2.0}),
        ("MatMul", (3,), (np.arange(6, dtype=np.float32).reshape(3, 2),), {}),
        ("BatchNormalization", (2, 4, 4), tuple(np.float32([i + 1, i + 2]) for i in range(4)), {}),
        ("AveragePool", (2, 4, 4), (), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
        ("Softmax", (5,), (), {}),
        ("GlobalAveragePool", (2, 4, 4), (), {}),
        ("Dropout", (5,), (), {}),
        ("Dropout", (5,), (np.array(0.5, np.float32), np.array(False)), {}),
    ],
)
def test_operators_as_onnx_runtime_runs_them(op, shape, weights, attributes):
    model = model_of(op, shape, weights, **attributes)
    given = generator().normal(size=(2, *shape))
    (expected,) = by_onnx_runtime(model, [given])
    found = run(import_onnx(model), given)["y0"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert op in IMPORTED or onnx.defs.get_schema(op).has_function


ODD = {
    "logarithms of probabilities that are 0": (
        of_nodes(helper.make_node("LogSoftmax", ["x"], ["y"])),
        [[-3000, 2, 500]],
    ),
    "bounds that let infinity pass": (
        of_nodes(helper.make_node("Clip", ["x", "least", "most"], ["y"]), least=np.float32(0), most=np.float32(np.inf)),
        [[-np.inf, np.inf, 1]],
    ),
    "a divisor whose reciprocal is 0 on a GPU": (
        of_nodes(helper.make_node("Div", ["x", "by"], ["y"]), by=np.float32([1, 3e38, 4])),
        [[0, 3e38, 1]],
    ),
    "a result and an input without a name": (
        of_nodes(
            helper.make_node("Dropout", ["x"], ["d", ""]),
            helper.make_node("Clip", ["d", "", "most"], ["y"]),
            most=np.float32(1),
        ),
        [[-1, 0, 2]],
    ),
    "an axis without a list": (
        of_nodes(
            helper.make_node("Unsqueeze", ["x", "axis"], ["u"]),
            helper.make_node("Flatten", ["u"], ["y"]),
            axis=np.int64(1),
        ),
        [[1, 2, 3]],
    ),
    "sizes that do not depend on the batch": (of_batch(helper.make_node("Div", ["x", "size"], ["y"]), 1), [[1, 2, 3]]),
}


@pytest.mark.parametrize("odd", ODD)
def test_what_is_odd_but_legal_is_as_onnx_runtime_has_it(odd):
    model, given = ODD[odd]
    expected = by_onnx_runtime(model, [np.float32(given)])
    found = plan.Engine(plan.build(fuse(import_onnx(model)))).run(np.float32(given))
    np.testing.assert_allclose(found, *expected, rtol=1e-6)


def test_the_operators_set_may_be_called_by_either_name():
    """Before opset 13 a softmax is one of all axes from its first on."""
    model = of_nodes(helper.make_node("Softmax", ["x"], ["y"]), shape=("n", 2, 3))
    model.opset_import[0].domain = "ai.onnx"
    given = generator().normal(size=(2, 2, 3))
    np.testing.assert_allclose(run(import_onnx(model), given)["y"].sum(axis=2), 1)


def random_images(shape: tuple[int, ...], batch: int = 1) -> np.ndarray:
    return generator().standard_normal((batch, *shape)).astype(np.float32)


def assert_equal(found: object, expected: list[np.ndarray], graph: Graph, tolerance: float = 2e-5) -> None:
    """Within a tolerance of the largest number of each output, since sums of thousands are in another order."""
    results = found if isinstance(found, dict) else {graph.outputs[0]: found}
    for name, exact in zip(graph.outputs, expected, strict=True):
        assert results[name].shape == exact.shape
        assert np.std(exact) > 1e-4 * abs(exact).max()  # else a wrong order would be found right
        assert abs(results[name] - exact).max() <= tolerance * abs(exact).max(), name


SMALL = [name for name, side in real_networks.ZOO.items() if side < 224]
BUILT = {
    "mobilenet_v2": real_networks.mobilenet_v2,
    "efficientnet_b0": real_networks.efficientnet_b0,
    "encoder": real_networks.encoder,
}
LAUNCHES = {  # as imported and fused
    "densenet121": (668, 308),
    "inception_v1": (141, 57),
    "inception_v2": (370, 66),
    "resnet50": (175, 57),
    "squeezenet": (65, 31),
    "mobilenet_v2": (152, 55),
    "efficientnet_b0": (288, 132),
    "encoder": (50, 24),
}


def network_of(name: str) -> onnx.ModelProto:
    rng = np.random.default_rng(1)
    return BUILT[name](rng) if name in BUILT else real_networks.zoo_network(name, rng)


@pytest.mark.parametrize("name", [*SMALL, *BUILT])
def test_real_networks_compute_what_onnx_runtime_does(name):
    model = network_of(name)
    graph = import_onnx(model)
    fused = fuse(graph)
    given = random_images(graph.tensors[graph.inputs[0]].shape)
    expected = by_onnx_runtime(model, [given])
    for each in (graph, fused):
        assert_equal(run(each, given, dtype=np.float32), expected, graph)
    assert (cost.total(graph)[0], cost.total(fused)[0]) == LAUNCHES[name]


@pytest.mark.parametrize("name", ["squeezenet", "mobilenet_v2", "efficientnet_b0", "encoder"])
def test_real_networks_run_in_the_engine(name):
    model = network_of(name)
    graph = import_onnx(model)
    given = random_images(graph.tensors[graph.inputs[0]].shape)
    found = plan.Engine(plan.build(fuse(graph))).run(given)
    assert_equal(found, by_onnx_runtime(model, [given]), graph)


# Without those whose weights, five times there, take gigabytes; they have no operator that AlexNet has not.
LARGE = [name for name, side in real_networks.ZOO.items() if side == 224 and name not in ("vgg19", "zfnet512")]


@pytest.mark.thorough
@pytest.mark.parametrize("name", LARGE)
def test_networks_for_large_images_compute_what_onnx_runtime_does(name):
    model = network_of(name)
    graph = fuse(import_onnx(model))
    given = random_images(graph.tensors[graph.inputs[0]].shape)
    # A softmax turns what logits differ by into a factor, and two libraries' sums of 9,216 products differ from run to
    # run: AlexNet's probabilities were once 2.2e-5 apart.
    assert_equal(run(graph, given, dtype=np.float32), by_onnx_runtime(model, [given]), graph, 1e-4)


@pytest.mark.thorough
@pytest.mark.parametrize("name", real_networks.ZOO)
def test_the_zoo_gives_the_outputs_that_it_is_shipped_with(name):
    """Images of 224 × 224 and weights of one value, by onnx's own tolerances."""
    model, expected = real_networks.shipped(name)
    graph = fuse(import_onnx(model))
    given = real_networks.ramp((1, *graph.tensors[graph.inputs[0]].shape))
    # SqueezeNet's 1,000 equal logits are 1e10: what float32 rounds, a softmax would make all or nothing of.
    (found,) = run(graph, given, dtype=np.float64 if name == "squeezenet" else np.float32).values()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-7)


def test_an_encoders_batch_stays_free():
    """Its reshapes are computed of the batch; FP16 runs its dense layers, too."""
    model = network_of("encoder")
    graph = import_onnx(model)
    given = random_images(graph.tensors["x"].shape, batch=3)
    expected = by_onnx_runtime(model, [given])
    assert_equal(plan.Engine(plan.build(fuse(graph), 2)).run(given), expected, graph)
    assert_equal(plan.Engine(plan.build(optimise(graph, "float16"), 3)).run(given), expected, graph, 5e-3)


@pytest.mark.skipif(by_kernels() is None, reason="no lab offers kernels for attention")
def test_an_encoders_attention_runs_on_tensor_cores():
    """Two products and a softmax become a launch of the kernels that are offered, and nothing around it converts."""
    model = real_networks.encoder(generator(), size=64, heads=2)
    graph = import_onnx(model)
    given = random_images(graph.tensors["x"].shape, batch=2)
    expected = by_onnx_runtime(model, [given])
    singles, halves = (plan.Engine(plan.build(optimise(graph, precision), 2)) for precision in ("float32", "float16"))
    for engine, kernel, tolerance in ((singles, "attention", 2e-5), (halves, "attention_mma", 5e-3)):
        names = [call.kernel for call in engine.launches]
        assert names.count(kernel) == 2
        assert not {"softmax", "matmul"} & set(names)
        assert_equal(engine.run(given), expected, graph, tolerance)
    tensors = halves.plan.graph.tensors
    copies = [node for node in halves.plan.graph.nodes if node.op == "transpose"]
    assert len(copies) == 8
    assert {tensors[name].dtype for node in copies for name in (*node.inputs, node.output)} == {"float16"}


def test_onnxs_attention_becomes_one_node():
    """ONNX defines it by others: keys that are scaled, a mask, and a choice by a condition that is known."""
    shown = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3, 5, 8]) for name in "qkvy"]
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=1)
    graph = helper.make_graph([node], "attention", shown[:3], shown[3:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    found = fuse(import_onnx(model))
    assert [node.op for node in found.nodes if node.op not in ("constant", "reshape")] == ["mul", "attention"]
    given = [random_images((3, 5, 8), batch=2) for _ in range(3)]
    expected = by_onnx_runtime(model, given)
    assert_equal(run(found, *given), expected, found)
    assert_equal(plan.Engine(plan.build(found, 2)).run(*given), expected, found)


def test_an_output_keeps_its_name_where_another_node_has_it():
    nodes = [helper.make_node("Relu", ["x"], ["a"], "y"), helper.make_node("Neg", ["a"], ["y"], "last")]
    shown = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "names", shown[:1], shown[1:])
    found = import_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))
    assert found.outputs == ("y",)
    assert run(found, np.float64([[1, -2, 3]]))["y"].tolist() == [[-1, 0, -3]]


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
