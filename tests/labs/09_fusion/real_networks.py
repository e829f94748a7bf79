"""Real networks as ONNX models: those that the onnx package ships, and three that are built here.

Weights are random and seeded: with those that are shipped, all equal, channels in a wrong order give the right result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
# By name the side of the smallest images that a network takes, if its last pool takes whatever there is.
ZOO = {
    "bvlc_alexnet": 224,
    "densenet121": 32,
    "inception_v1": 64,
    "inception_v2": 32,
    "resnet50": 32,
    "shufflenet": 224,
    "squeezenet": 32,
    "vgg19": 224,
    "zfnet512": 224,
}


def shipped(name: str) -> tuple[onnx.ModelProto, np.ndarray]:
    """A model of the onnx package, with weights of one value each, and the output that it comes with."""
    expected = onnx.TensorProto.FromString((LIGHT / f"light_{name}_output_0.pb").read_bytes())
    return onnx.load(LIGHT / f"light_{name}.onnx"), numpy_helper.to_array(expected)


def ramp(shape: tuple[int, ...]) -> np.ndarray:
    """What onnx's own test runner gives these models."""
    size = math.prod(shape)
    return (np.arange(size).reshape(shape) / size).astype(np.float32)


def images(model: onnx.ModelProto) -> onnx.ValueInfoProto:
    """The one input that is no weight."""
    weights = {one.name for one in model.graph.initializer}
    (found,) = (one for one in model.graph.input if one.name not in weights)
    return found


def zoo_network(name: str, rng: np.random.Generator) -> onnx.ModelProto:
    """A model of the onnx package with random weights, for its smallest images."""
    model, _ = shipped(name)
    x = images(model)
    shapes = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    kept, weights = [], []
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape":
            weights.append(_weight(rng, node.output[0], shapes[node.input[0]]))
            continue
        window = next((one.ints for one in node.attribute if one.name == "kernel_shape"), [])
        if node.op_type == "AveragePool" and list(window) == [7, 7] and ZOO[name] < 224:
            node = helper.make_node("GlobalAveragePool", node.input, node.output, node.name)
        kept.append(node)
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(kept)
    read = {name for node in kept for name in node.input}
    model.graph.initializer.extend([*weights, *(numpy_helper.from_array(shapes[n], n) for n in shapes if n in read)])
    for axis in (2, 3):
        x.type.tensor_type.shape.dim[axis].dim_value = ZOO[name]
    del model.graph.input[:]
    model.graph.input.append(x)
    model.ir_version = 9  # in which weights need not be inputs
    if kept[-1].op_type == "Softmax":  # which may leave next to nothing of the differences between classes
        axes = len(model.graph.output[0].type.tensor_type.shape.dim)
        model.graph.output.append(_shown(kept[-1].input[0], axes))
    return model


def _shown(name: str, axes: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * axes)


def _weight(rng: np.random.Generator, name: str, shape: Iterable[int]) -> onnx.TensorProto:
    """Filters and matrices that keep the size of what they meet; scales, biases, means and variances around 1."""
    shape = tuple(int(size) for size in shape)
    if len(shape) > 1:
        values = rng.standard_normal(shape) * math.sqrt(2 / math.prod(shape[1:]))
    else:
        values = rng.uniform(0.5, 1.5, shape)
    return numpy_helper.from_array(values.astype(np.float32), name)


class Network:
    """An ONNX model under construction; each call of `add` returns the name of the new node's result."""

    def __init__(self, shape: tuple[int, ...], rng: np.random.Generator) -> None:
        self.shape, self._rng = shape, rng
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def add(self, op: str, inputs: list[str], *weights: tuple[int, ...] | np.ndarray, **attributes: Any) -> str:
        """Add a node. `weights`: shapes of random ones, or arrays."""
        name, names = f"{op}_{len(self._nodes)}", []
        for i, weight in enumerate(weights):
            names.append(f"{name}.{i}")
            random = isinstance(weight, tuple)
            self._weights.append(
                _weight(self._rng, names[-1], weight) if random else numpy_helper.from_array(weight, names[-1])
            )
        self._nodes.append(helper.make_node(op, [*inputs, *names], [name], name, **attributes))
        return name

    def convolution(self, x: str, channels: int, filters: int, size: int = 1, stride: int = 1, group: int = 1) -> str:
        """Add a convolution and its batch norm."""
        pads = [size // 2] * 4
        x = self.add(
            "Conv", [x], (filters, channels // group, size, size), pads=pads, strides=[stride] * 2, group=group
        )
        return self.add("BatchNormalization", [x], *[(filters,)] * 4)

    def model(self, output: str, axes: int) -> onnx.ModelProto:
        """The model, with a free batch. `axes`: of the output."""
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *self.shape])
        graph = helper.make_graph(self._nodes, "network", [x], [_shown(output, axes)], self._weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.checker.check_model(made, full_check=True)
        return made


def _classified(net: Network, x: str, channels: int, classes: int = 10) -> onnx.ModelProto:
    x = net.add("Flatten", [net.add("GlobalAveragePool", [x])])
    return net.model(net.add("Softmax", [net.add("Gemm", [x], (classes, channels), (classes,), transB=1)]), 2)


def mobilenet_v2(rng: np.random.Generator, side: int = 32) -> onnx.ModelProto:
    """MobileNetV2 (arXiv 1801.04381), with 10 classes: its 17 blocks with their expansions, strides and residuals."""
    net = Network((3, side, side), rng)

    def relu6(x: str) -> str:
        return net.add("Clip", [x], np.array(0, np.float32), np.array(6, np.float32))

    x, channels = relu6(net.convolution("x", 3, 32, 3, stride=2)), 32
    blocks = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expansion, filters, count, first in blocks:
        for stride in (first, *[1] * (count - 1)):
            wide, before = channels * expansion, x
            if expansion > 1:
                x = relu6(net.convolution(x, channels, wide))
            x = relu6(net.convolution(x, wide, wide, 3, stride, group=wide))
            x = net.convolution(x, wide, filters)
            if stride == 1 and channels == filters:
                x = net.add("Add", [x, before])
            channels = filters
    return _classified(net, relu6(net.convolution(x, channels, 1280)), 1280)


def efficientnet_b0(rng: np.random.Generator, side: int = 32) -> onnx.ModelProto:
    """EfficientNet-B0 (arXiv 1905.11946), with 10 classes: its 16 blocks with SiLU and squeeze-and-excitation."""
    net = Network((3, side, side), rng)

    def silu(x: str) -> str:
        return net.add("Mul", [x, net.add("Sigmoid", [x])])

    x, channels = silu(net.convolution("x", 3, 32, 3, stride=2)), 32
    blocks = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5))
    for expansion, filters, count, first, size in (*blocks, (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for stride in (first, *[1] * (count - 1)):
            wide, before, squeezed = channels * expansion, x, max(channels // 4, 1)
            if expansion > 1:
                x = silu(net.convolution(x, channels, wide))
            x = silu(net.convolution(x, wide, wide, size, stride, group=wide))
            mean = net.add("ReduceMean", [x], np.array([2, 3]), keepdims=1)
            gate = silu(net.add("Conv", [mean], (squeezed, wide, 1, 1), (squeezed,)))
            gate = net.add("Sigmoid", [net.add("Conv", [gate], (wide, squeezed, 1, 1), (wide,))])
            x = net.convolution(net.add("Mul", [x, gate]), wide, filters)
            if stride == 1 and channels == filters:
                x = net.add("Add", [x, before])
            channels = filters
    return _classified(net, silu(net.convolution(x, channels, 1280)), 1280)


def encoder(rng: np.random.Generator, length: int = 12, size: int = 32, heads: int = 4, layers: int = 2) -> Any:
    """An encoder as BERT's (arXiv 1810.04805), from embeddings on, as PyTorch exports it: shapes are computed."""
    net = Network((length, size), rng)

    def dense(x: str, inputs: int, outputs: int) -> str:
        return net.add(
            "Add", [net.add("MatMul", [x], rng.standard_normal((inputs, outputs)).astype(np.float32) / 6)], (outputs,)
        )

    def split(x: str, order: list[int]) -> str:
        batch = net.add("Gather", [net.add("Shape", [x])], np.array([0]), axis=0)
        shape = net.add("Concat", [batch], np.array([-1, heads, size // heads]), axis=0)
        return net.add("Transpose", [net.add("Reshape", [x, shape])], perm=order)

    x = "x"
    for _ in range(layers):
        q, v = (split(dense(x, size, size), [0, 2, 1, 3]) for _ in range(2))
        k = split(dense(x, size, size), [0, 2, 3, 1])
        scores = net.add("Div", [net.add("MatMul", [q, k])], np.array(math.sqrt(size / heads), np.float32))
        mixed = net.add("MatMul", [net.add("Softmax", [scores], axis=-1), v])
        mixed = net.add("Transpose", [mixed], perm=[0, 2, 1, 3])
        mixed = net.add("Reshape", [mixed], np.array([0, 0, size]))
        x = net.add("LayerNormalization", [net.add("Add", [dense(mixed, size, size), x])], (size,), (size,))
        inner = net.add("Gelu", [dense(x, size, 4 * size)])
        x = net.add("LayerNormalization", [net.add("Add", [dense(inner, 4 * size, size), x])], (size,), (size,))
    return net.model(x, 3)
