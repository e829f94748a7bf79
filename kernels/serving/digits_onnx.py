"""The lab's own network as ONNX: what engines that know neither this course nor Python can run."""

from __future__ import annotations

import onnx
from onnx import helper, numpy_helper

from kernels.serving import digits_network

INPUT, OUTPUT = "image", "probabilities"
OPSET, IR_VERSION = 17, 9  # what ONNX Runtime has read since 2022


def model() -> onnx.ModelProto:
    """Images (batch, 1, 8, 8), float32, to probabilities (batch, 10), float32; the batch is free."""
    weights = digits_network.load()
    nodes = [
        helper.make_node("Flatten", [INPUT], ["pixels"], axis=1),
        helper.make_node("Gemm", ["pixels", "hidden", "hidden_bias"], ["sums"]),
        helper.make_node("Relu", ["sums"], ["activations"]),
        helper.make_node("Gemm", ["activations", "classes", "classes_bias"], ["logits"]),
        helper.make_node("Softmax", ["logits"], [OUTPUT], axis=1),
    ]
    sides = [
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", *shape])]
        for name, shape in ((INPUT, digits_network.IMAGE), (OUTPUT, (digits_network.CLASSES,)))
    ]
    held = [numpy_helper.from_array(values, name) for name, values in weights.items()]
    graph = helper.make_graph(nodes, "digits", *sides, held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(made)
    return made
