"""Explicit quantisation: QuantizeLinear and DequantizeLinear imported, INT8 where they say, as ONNX Runtime has it."""

from __future__ import annotations

import logging

import ml_dtypes
import nbformat
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from kernels.fusion import passes, plan
from kernels.fusion.exchange.onnx_export import export_onnx
from kernels.fusion.exchange.onnx_import import UnsupportedOperator, import_onnx
from kernels.fusion.graph import Graph
from kernels.fusion.graph.build import Builder
from kernels.fusion.graph.int8 import filter_scales, rounded_filters
from kernels.fusion.graph.interpret import run
from kernels.fusion.passes.optimise import optimise
from kernels.fusion.trained import digits
from kernels.fusion.trained.network import OUTPUT, trained_graph
from tests.support.lazily import module
from tests.support.random_inputs import generator
from warpcourse.paths import COURSE

LESSON = COURSE / "notebooks" / "09_fusion.ipynb"
onnxruntime, quantization = module("onnxruntime"), module("onnxruntime.quantization")


class Images:
    """64 images for ONNX Runtime's calibration, one at a time."""

    def __init__(self, name: str) -> None:
        images = digits.split()[1].images[:64].astype(np.float32)
        self._given = iter([{name: image[None]} for image in images])

    def get_next(self) -> dict | None:
        return next(self._given, None)


@pytest.fixture(scope="module")
def quantised(tmp_path_factory):
    """The trained network as ONNX Runtime quantises it: a pair of operators at each tensor, scales by filter."""
    folder, raw = tmp_path_factory.mktemp("onnx"), passes.fold_batch_norm(passes.remove_dead(trained_graph()))
    onnx.save(export_onnx(raw), folder / "float.onnx")
    logging.getLogger().setLevel(logging.ERROR)  # it advises to fold batch norms, which is done
    quantization.quantize_static(
        *(folder / "float.onnx", folder / "int8.onnx", Images(raw.inputs[0])),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=True,
        activation_type=quantization.QuantType.QInt8,
        weight_type=quantization.QuantType.QInt8,
        extra_options={"ActivationSymmetric": True, "WeightSymmetric": True},
    )
    return onnx.load(folder / "int8.onnx")


def test_a_quantised_network_computes_what_onnx_runtime_does(quantised):
    test = digits.split()[2]
    session = onnxruntime.InferenceSession(quantised.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run([OUTPUT], {session.get_inputs()[0].name: test.images.astype(np.float32)})
    graph = import_onnx(quantised)
    placed = optimise(graph)
    for each in (graph, placed):
        found = run(each, test.images)[OUTPUT]
        # Sums that end between two steps may be rounded either way, and few do.
        assert np.mean(abs(found - expected).max(axis=1) > 1e-5) < 0.02
        assert (found.argmax(axis=1) == test.labels).sum() == 357
    assert sum(node.op in ("conv", "dense") for node in graph.nodes) == 16
    in_int8 = [node for node in placed.nodes if node.attributes.get("precision") == "int8"]
    # All but the stem, which sees one channel, and the dense layer of a vector; 1 x 1 branches are joined.
    assert sum(node.name.count(" + ") + 1 for node in in_int8) == 14
    found = plan.Engine(plan.build(placed, 4)).run(test.images[:4])
    np.testing.assert_allclose(found, run(placed, test.images[:4])[OUTPUT], atol=1e-6)
    (text,) = [c.source for c in nbformat.read(LESSON, as_version=4).cells if c.id == "fusion-explicit-text"]
    assert "357 of 360 images right, and 14 of 16 layers with weights compute in INT8" in text


def explicit(scale: float = 0.02, readers: int = 1) -> Graph:
    """Two layers with fake quantisation between, and more readers of the same INT8."""
    rng, builder = np.random.default_rng(3), Builder("explicit")

    def weights(filters: int) -> dict[str, np.ndarray]:
        values = rng.standard_normal((filters, 4, 3, 3))
        steps = filter_scales(values)
        return {"filters": rounded_filters(values, steps), "filter_scales": steps}

    x = builder.input("x", (4, 6, 6))
    first = builder.add("relu", "relu", [builder.add("conv", "first", [x], weights(4))])
    rounded = builder.add("fake_quantise", "rounded", [first], alpha=scale)
    outputs = [builder.add("conv", f"second{i}", [rounded], weights(8), stride=(1 + i, 1)) for i in range(readers)]
    return builder.graph(*outputs)


@pytest.mark.parametrize("readers", [1, 2])
def test_what_is_read_as_int8_is_written_as_int8(readers):
    graph = explicit(readers=readers)
    found = passes.place_int8(passes.fuse_vertical(graph))
    assert [(node.op, node.attributes["precision"]) for node in found.nodes] == [
        *[("cbr", "float32")],
        *[("cbr", "int8")] * readers,
    ]
    assert (
        found.tensors[found.node("first").output if "first" in found.tensors else found.nodes[0].output].scale == 0.02
    )
    x = generator().standard_normal((3, 4, 6, 6))
    for name, values in run(found, x).items():
        np.testing.assert_allclose(values, run(graph, x)[name], rtol=1e-6, atol=1e-6)


def test_a_layer_whose_filters_lie_on_no_steps_stays_in_float32():
    graph = explicit()
    nodes = [
        type(node)(
            *(node.name, node.op, node.inputs, node.outputs, node.attributes),
            {name: values for name, values in node.weights.items() if name != "filter_scales"},
        )
        for node in graph.nodes
    ]
    found = passes.place_int8(passes.fuse_vertical(graph.rebuilt(nodes)))
    assert [node.op for node in found.nodes] == ["cbr", "fake_quantise", "cbr"]


def test_a_batch_norm_behind_scales_the_steps_of_filters():
    builder, rng = Builder("norm"), np.random.default_rng(4)
    values = rng.standard_normal((4, 4, 1, 1))
    steps = filter_scales(values)
    x = builder.add("fake_quantise", "rounded", [builder.input("x", (4, 3, 3))], alpha=0.03)
    x = builder.add("conv", "conv", [x], {"filters": rounded_filters(values, steps), "filter_scales": steps})
    norm = {name: rng.uniform(0.5, 2, 4) for name in ("gamma", "beta", "mean", "variance")}
    gamma = -norm["gamma"] * [0, 1, 1, 1]  # and may leave nothing of a filter
    graph = builder.graph(builder.add("batch_norm", "y", [x], {**norm, "gamma": gamma}))
    found = optimise(graph)
    assert "int8" in {node.attributes.get("precision") for node in found.nodes}
    assert all((node.weights["filter_scales"] > 0).all() for node in found.nodes if "filter_scales" in node.weights)
    x = rng.standard_normal((3, 4, 3, 3))
    np.testing.assert_allclose(run(found, x)["y"], run(graph, x)["y"], rtol=1e-5, atol=1e-5)


def model_of(*nodes: onnx.NodeProto, **weights: np.ndarray) -> onnx.ModelProto:
    shown = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", "y")]
    tensors = [numpy_helper.from_array(np.asarray(values), name) for name, values in weights.items()]
    graph = helper.make_graph(nodes, "one", shown[:1], shown[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize(
    ("steps", "zero", "ours"),
    [
        (np.int8([-127, 127, 1, 0]), 0, True),
        (np.uint8([1, 255, 129, 128]), 128, True),
        (np.int8([-128, 127, 1, 0]), 0, False),
        (np.int8([-127, 127, 1, 0]), 5, False),
        (np.uint8([0, 255, 1, 2]), 0, False),
        (np.int32([1000, -1000, 1, 2]), 0, False),
        (np.array([0.125, -0.5, 3, 4], ml_dtypes.float8_e4m3fn), 0, False),
    ],
)
def test_filters_have_scales_where_they_lie_on_steps_of_ours(steps, zero, ours):
    """Those of another type, or with a zero point, may be more than 127 steps from 0, or between two."""
    scales, weights = np.float32([1, 2, 3, 4]), np.stack([steps] * 4)
    model = model_of(
        helper.make_node("DequantizeLinear", ["w", "scales", "zeros"], ["f"], axis=0),
        helper.make_node("Gemm", ["x", "f"], ["y"], transB=1),
        w=weights,
        scales=scales,
        zeros=np.full(4, zero).astype(steps.dtype),
    )
    (dense,) = import_onnx(model).nodes
    assert ("filter_scales" in dense.weights) is ours
    assert (dense.weights["matrix"] == (weights.astype(np.float32) - zero) * scales[:, None]).all()


def pair(second: str = "scale", zero: str = "zero") -> tuple[onnx.NodeProto, onnx.NodeProto]:
    return (
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], "quantise"),
        helper.make_node("DequantizeLinear", ["q", second, zero], ["y"], "dequantise"),
    )


def test_a_pair_is_fake_quantisation():
    model = model_of(*pair(), scale=np.float32(0.5), zero=np.int8(0))
    given = np.float32([[0.25, 0.75, -0.3, 200]])
    assert run(import_onnx(model), given)["y"].tolist() == [[0, 1, -0.5, 63.5]]
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": given})
    assert expected.tolist() == [[0, 1, -0.5, 63.5]]


def test_what_is_clipped_below_is_step_minus_127_where_onnx_has_minus_128():
    model, given = model_of(*pair(), scale=np.float32(0.5), zero=np.int8(0)), np.float32([[-63.5, -63.6, -90, 90]])
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": given})
    assert run(import_onnx(model), given)["y"].tolist() == [[-63.5, -63.5, -63.5, 63.5]]
    assert expected.tolist() == [[-63.5, -63.5, -64, 63.5]]


@pytest.mark.parametrize(("bits", "group"), [(4, 32), (4, 64), (8, 64)])
def test_weights_of_few_bits_are_imported_as_what_they_stand_for(bits, group):
    """INT4 with a scale for each group of a row, FP8 with one for each row: ONNX's weight-only dense layers."""
    rng = generator()
    steps = rng.integers(-8, 8, (8, 64)) if bits == 4 else rng.standard_normal((8, 64))
    steps = steps.astype(ml_dtypes.int4 if bits == 4 else ml_dtypes.float8_e4m3fn).astype(np.float32)
    scales = rng.uniform(0.1, 1, (8, 64 // group)).astype(np.float32)
    blocks = {"axis": 1, "block_size": group} if group < 64 else {"axis": 0}
    scale = scales if group < 64 else scales[:, 0]
    nodes = [helper.make_node("DequantizeLinear", ["w", "scales"], ["matrix"], "few", **blocks)]
    model = model_of(*nodes, helper.make_node("Gemm", ["x", "matrix"], ["y"], "dense", transB=1), scales=scale)
    kind = TensorProto.INT4 if bits == 4 else TensorProto.FLOAT8E4M3FN
    model.graph.initializer.append(helper.make_tensor("w", kind, steps.shape, steps.ravel().tolist()))
    for one, size in ((model.graph.input[0], 64), (model.graph.output[0], 8)):
        one.CopyFrom(helper.make_tensor_value_info(one.name, TensorProto.FLOAT, ["n", size]))
    x = rng.standard_normal((2, 64)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(run(optimise(import_onnx(model)), x)["y"], expected, rtol=1e-4, atol=1e-4)
    assert np.abs(expected - x @ (steps * scales.repeat(group, axis=1)).T).max() < 1e-3


@pytest.mark.parametrize(
    ("nodes", "weights", "message"),
    [
        (pair(), {"scale": np.float32(0.5), "zero": np.uint8(0)}, r"'quantise'.*uint8; possible: .* int8"),
        (pair(), {"scale": np.float32(0.5), "zero": np.int8(3)}, r"zero points of \[3\]"),
        (pair(), {"scale": np.float32(0), "zero": np.int8(0)}, "one scale above 0"),
        (
            pair("other"),
            {"scale": np.float32(0.5), "other": np.float32(0.25), "zero": np.int8(0)},
            r"'y' \(DequantizeLinear\).*another than its QuantizeLinear's; possible: the same",
        ),
        (
            pair(zero="other"),
            {"scale": np.float32(0.5), "other": np.int8(3), "zero": np.int8(0)},
            "its scale or zero point is another than its QuantizeLinear's; possible: the same",
        ),
        (
            (pair()[0], helper.make_node("Relu", ["q"], ["y"])),
            {"scale": np.float32(0.5), "zero": np.int8(0)},
            "it reads 'q', which is INT8; possible: a DequantizeLinear between",
        ),
    ],
)
def test_other_quantisation_is_refused_by_name(nodes, weights, message, monkeypatch):
    monkeypatch.setattr(onnx.checker, "check_model", lambda model: None)  # which refuses a ReLU of INT8
    with pytest.raises(UnsupportedOperator, match=message):
        import_onnx(model_of(*nodes, **weights))
