"""From a graph to ONNX, before any pass: so that other engines, such as ONNX Runtime, can run the same network."""

from collections.abc import Callable
from typing import Any

import onnx
from onnx import helper, numpy_helper

from kernels.fusion.graph import Graph, GraphError, Node
from kernels.fusion.graph.operators import groups

OPSET, IR_VERSION = 17, 9


def export_onnx(graph: Graph) -> onnx.ModelProto:
    """Return the graph as an ONNX model with a free batch. GraphError for nodes that passes made.

    Names of nodes and tensors are the graph's. A vector of global averages is ONNX's image of 1 × 1, flattened.
    """
    nodes, weights = [], []
    for node in graph.nodes:
        if node.op not in _EXPORTED:
            raise GraphError(f"node {node.name!r} is a {node.op}, which ONNX does not have: export before any pass")
        names = []
        for key, values in node.weights.items():
            name = node.output if node.op == "constant" else f"{node.name}.{key}"
            shape = (1, *values.shape) if node.op == "constant" else values.shape
            names.append(name)
            weights.append(numpy_helper.from_array(values.reshape(shape), name))
        made = _EXPORTED[node.op](node, [*node.inputs, *names])
        if node.op == "conv":
            in_groups = groups(graph.tensors[node.inputs[0]].channels, node.weights["filters"])
            made[0].attribute.append(helper.make_attribute("group", in_groups))
        nodes += made
    inputs = [_described(graph, name) for name in graph.inputs]
    outputs = [_described(graph, name) for name in graph.outputs]
    proto = helper.make_graph(nodes, graph.name, inputs, outputs, weights)
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return model


def _described(graph: Graph, name: str) -> onnx.ValueInfoProto:
    shape = ["batch", *graph.tensors[name].shape]
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


def _plain(op: str, *attributes: str) -> Callable[[Node, list[str]], list[onnx.NodeProto]]:
    """Return an operator of ONNX with the inputs and these attributes of the graph's node."""

    def made(node: Node, inputs: list[str]) -> list[onnx.NodeProto]:
        chosen: dict[str, Any] = {_NAMES.get(key, key): node.attributes[key] for key in attributes}
        return [helper.make_node(op, inputs, [node.output], node.name, **chosen)]

    return made


def _batch_norm(node: Node, inputs: list[str]) -> list[onnx.NodeProto]:
    order = [inputs[0], *(f"{node.name}.{key}" for key in ("gamma", "beta", "mean", "variance"))]
    return _plain("BatchNormalization", "epsilon")(node, order)


def _conv(node: Node, inputs: list[str]) -> list[onnx.NodeProto]:
    return _plain("Conv", "padding", "stride", "dilation")(node, _main_first(node, inputs, "filters"))


def _dense(node: Node, inputs: list[str]) -> list[onnx.NodeProto]:
    return [helper.make_node("Gemm", _main_first(node, inputs, "matrix"), [node.output], node.name, transB=1)]


def _main_first(node: Node, inputs: list[str], main: str) -> list[str]:
    bias = [f"{node.name}.bias"] if "bias" in node.weights else []
    return [inputs[0], f"{node.name}.{main}", *bias]


def _global_average_pool(node: Node, inputs: list[str]) -> list[onnx.NodeProto]:
    if node.attributes["keep_axes"]:
        return _plain("GlobalAveragePool")(node, inputs)
    image = f"{node.name}.image"
    return [
        helper.make_node("GlobalAveragePool", inputs, [image], image),
        helper.make_node("Flatten", [image], [node.output], node.name, axis=1),
    ]


def _average_pool(node: Node, inputs: list[str]) -> list[onnx.NodeProto]:
    (made,) = _plain("AveragePool", "window", "padding", "stride")(node, inputs)
    made.attribute.append(helper.make_attribute("count_include_pad", int(node.attributes["count_padding"])))
    return [made]


def _transpose(node: Node, inputs: list[str]) -> list[onnx.NodeProto]:
    order = [0, *(1 + axis for axis in node.attributes["order"])]
    return [helper.make_node("Transpose", inputs, [node.output], node.name, perm=order)]


def _joined(node: Node, inputs: list[str]) -> list[onnx.NodeProto]:
    return [helper.make_node("Concat", inputs, [node.output], node.name, axis=1)]


_NAMES = {"padding": "pads", "stride": "strides", "dilation": "dilations", "window": "kernel_shape"}
_SAME = {
    "relu": "Relu",
    "identity": "Identity",
    "dropout": "Dropout",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "hard_swish": "HardSwish",
    "add": "Add",
    "mul": "Mul",
    "matmul": "MatMul",
}
_EXPORTED: dict[str, Callable[[Node, list[str]], list[onnx.NodeProto]]] = {
    "constant": lambda _node, _inputs: [],  # an initialiser
    "conv": _conv,
    "batch_norm": _batch_norm,
    "concat": _joined,
    "max_pool": _plain("MaxPool", "window", "padding", "stride"),
    "average_pool": _average_pool,
    "global_average_pool": _global_average_pool,
    "flatten": lambda node, inputs: [helper.make_node("Flatten", inputs, [node.output], node.name, axis=1)],
    "dense": _dense,
    "softmax": lambda node, inputs: [helper.make_node("Softmax", inputs, [node.output], node.name, axis=-1)],
    "transpose": _transpose,
    "elu": _plain("Elu", "alpha"),
    **{name: _plain(op) for name, op in _SAME.items()},
}
