"""From a functional or sequential Keras model to a graph: one node per layer, more for a layer with an activation.

Keras keeps images as height × width × channels; the graph's shapes are channels first, and filters and the columns of a
dense layer behind a Flatten are turned to fit.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from kernels.fusion.graph import Graph
from kernels.fusion.graph.build import Builder, same_padding
from kernels.fusion.graph.operators import Shape


class UnsupportedLayer(ValueError):
    """A layer, or a setting of one, that the graph has no operator for: the message names both."""


def import_keras(model: Any, outputs: Iterable[str] | None = None) -> Graph:
    """Return the graph of a Keras model.

    `outputs`: names of the layers whose results the graph returns; all of the model's, if None. What the others need is
    imported, too, and left for a pass to remove. UnsupportedLayer names a layer that cannot be imported.
    """
    importer = _Importer(model.name)
    for tensor in model.inputs:
        importer.input(tensor)
    found = [importer.tensor(tensor) for tensor in model.outputs]
    names = {_layer(tensor).name: name for tensor, name in zip(model.outputs, found, strict=True)}
    wanted = list(names) if outputs is None else list(outputs)
    if unknown := [name for name in wanted if name not in names]:
        raise ValueError(f"{', '.join(unknown)}: not an output of the model; its outputs are {', '.join(names)}")
    return importer.finish([names[name] for name in wanted])


class _Importer:
    """Walks back from a model's outputs. Layers are added after those that they read."""

    def __init__(self, name: str) -> None:
        self.builder = Builder(name)
        self._names: dict[int, str] = {}  # of the graph's tensors, by the id of Keras' tensor
        self._calls: dict[str, int] = {}
        # Vectors that Flatten made of an image: the image's shape. Keras orders them differently.
        self._flattened: dict[str, Shape] = {}

    def input(self, tensor: Any) -> None:
        shape = tuple(tensor.shape[1:])
        if len(shape) not in (1, 3) or None in shape:
            raise UnsupportedLayer(f"input {tensor.name!r} has the shape {shape}; it must be an image or a vector")
        self._names[id(tensor)] = self.builder.input(_layer(tensor).name, (shape[-1], *shape[:-1]))

    def tensor(self, tensor: Any) -> str:
        """Return the graph's name of a tensor of Keras, its layer added if need be."""
        pending = [tensor]  # a stack, since networks are deeper than Python's recursion
        while pending:
            top = pending[-1]
            missing = [given for given in _call(top).input_tensors if id(given) not in self._names]
            if id(top) in self._names or not missing:
                pending.pop()
                if id(top) not in self._names:
                    self._names[id(top)] = self._layer(top)
            else:
                pending += reversed(missing)
        return self._names[id(tensor)]

    def finish(self, outputs: list[str]) -> Graph:
        for name in outputs:
            self._refuse_order(name, "the graph's outputs")
        return self.builder.graph(*outputs)

    def _layer(self, tensor: Any) -> str:
        layer, inputs = _layer(tensor), [self._names[id(given)] for given in _call(tensor).input_tensors]
        kind = type(layer).__name__
        if kind not in _LAYERS:
            raise UnsupportedLayer(
                f"layer {layer.name!r} is a {kind}, which cannot be imported; possible are {', '.join(_LAYERS)}"
            )
        calls = self._calls[layer.name] = self._calls.get(layer.name, 0) + 1
        name = layer.name if calls == 1 else f"{layer.name}_{calls}"  # a layer that is shared
        return _LAYERS[kind](self, layer, name, inputs)

    def add(self, op: str, name: str, inputs: list[str], weights: dict | None = None, **attributes: Any) -> str:
        result = self.builder.add(op, name, inputs, weights, **attributes)
        orders = {self._flattened.get(given) for given in inputs}
        if op in ("relu", "dropout", "identity", "add") and len(orders) == 1:
            if shape := orders.pop():
                self._flattened[result] = shape
        elif op != "dense":
            for given in inputs:
                self._refuse_order(given, f"layer {name!r}")
        return result

    def activated(self, activation: Any, result: str, layer: Any) -> str:
        """Return the result after the layer's own activation, which becomes a node of its own."""
        kind = getattr(activation, "__name__", str(activation))
        if kind == "linear":
            return result
        if kind not in ("relu", "softmax"):
            raise UnsupportedLayer(f"layer {layer.name!r} has the activation {kind}; possible: relu, softmax, linear")
        return self.add(kind, f"{result}_{kind}", [result])

    def flatten(self, name: str, given: str) -> str:
        shape = self.builder.shape(given)
        result = self.add("flatten", name, [given])
        if len(shape) == 3 and shape[0] > 1 and shape[1:] != (1, 1):
            self._flattened[result] = shape
        return result

    def matrix(self, kernel: np.ndarray, given: str) -> np.ndarray:
        """Return a dense layer's matrix, (outputs, features), for features in the graph's order."""
        if given in self._flattened:
            channels, height, width = self._flattened[given]
            kernel = kernel.reshape(height, width, channels, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)
        return kernel.T

    def _refuse_order(self, name: str, reader: str) -> None:
        if name in self._flattened:
            raise UnsupportedLayer(
                f"{reader} would see the elements of {name!r}, a flattened image, in another order than in Keras; "
                "put a Dense layer behind Flatten, or use GlobalAveragePooling2D"
            )


def _call(tensor: Any) -> Any:
    """Return the call of a layer that made a tensor; it knows the tensors that went in."""
    history = tensor._keras_history
    return history.operation._inbound_nodes[history.node_index]


def _layer(tensor: Any) -> Any:
    return tensor._keras_history.operation


def _channels_last(layer: Any) -> None:
    if getattr(layer, "data_format", "channels_last") != "channels_last":
        raise UnsupportedLayer(f"layer {layer.name!r} has data_format={layer.data_format!r}; possible: 'channels_last'")


def _padding(layer: Any, sizes: Iterable[int], window: Shape, dilation: Shape = (1, 1)) -> Shape:
    """Return rows above, columns left, rows below, columns right; as in TensorFlow, the odd row comes last."""
    if layer.padding == "valid":
        return 0, 0, 0, 0
    if layer.padding != "same":
        raise UnsupportedLayer(f"layer {layer.name!r} has padding={layer.padding!r}; possible: 'same', 'valid'")
    before, after = same_padding(sizes, window, layer.strides, dilation)
    return *before, *after


def _convolution(importer: _Importer, layer: Any, name: str, inputs: list[str]) -> str:
    _channels_last(layer)
    if layer.groups != 1:
        raise UnsupportedLayer(f"layer {layer.name!r} has groups={layer.groups}; possible: 1")
    weights = {"filters": np.asarray(layer.kernel).transpose(3, 2, 0, 1)}
    if layer.use_bias:
        weights["bias"] = np.asarray(layer.bias)
    sizes, dilation = importer.builder.shape(inputs[0])[1:], tuple(layer.dilation_rate)
    padding = _padding(layer, sizes, tuple(layer.kernel_size), dilation)
    result = importer.add(
        "conv", name, inputs, weights, padding=padding, stride=tuple(layer.strides), dilation=dilation
    )
    return importer.activated(layer.activation, result, layer)


def _dense(importer: _Importer, layer: Any, name: str, inputs: list[str]) -> str:
    weights = {"matrix": importer.matrix(np.asarray(layer.kernel), inputs[0])}
    if layer.use_bias:
        weights["bias"] = np.asarray(layer.bias)
    return importer.activated(layer.activation, importer.add("dense", name, inputs, weights), layer)


def _batch_norm(importer: _Importer, layer: Any, name: str, inputs: list[str]) -> str:
    channels = importer.builder.shape(inputs[0])[0]
    axes = len(importer.builder.shape(inputs[0])) + 1
    if layer.axis not in (-1, axes - 1):
        raise UnsupportedLayer(f"layer {layer.name!r} normalises axis {layer.axis}; possible: the last, -1")
    weights = {
        "gamma": np.asarray(layer.gamma) if layer.scale else np.ones(channels),
        "beta": np.asarray(layer.beta) if layer.center else np.zeros(channels),
        "mean": np.asarray(layer.moving_mean),
        "variance": np.asarray(layer.moving_variance),
    }
    return importer.add("batch_norm", name, inputs, weights, epsilon=float(layer.epsilon))


def _relu(importer: _Importer, layer: Any, name: str, inputs: list[str]) -> str:
    if layer.max_value is not None or layer.negative_slope or layer.threshold:
        raise UnsupportedLayer(f"layer {layer.name!r} is a ReLU with a maximum, slope or threshold; possible: without")
    return importer.add("relu", name, inputs)


def _activation(importer: _Importer, layer: Any, name: str, inputs: list[str]) -> str:
    kind = getattr(layer.activation, "__name__", str(layer.activation))
    if kind not in ("relu", "softmax", "linear"):
        raise UnsupportedLayer(f"layer {layer.name!r} is the activation {kind}; possible: relu, softmax, linear")
    return importer.add("identity" if kind == "linear" else kind, name, inputs)


def _pool(op: str) -> Callable[[_Importer, Any, str, list[str]], str]:
    def add(importer: _Importer, layer: Any, name: str, inputs: list[str]) -> str:
        _channels_last(layer)
        window = tuple(layer.pool_size)
        padding = _padding(layer, importer.builder.shape(inputs[0])[1:], window)
        return importer.add(op, name, inputs, window=window, stride=tuple(layer.strides), padding=padding)

    return add


def _global_pool(importer: _Importer, layer: Any, name: str, inputs: list[str]) -> str:
    _channels_last(layer)
    return importer.add("global_average_pool", name, inputs, keep_axes=bool(layer.keepdims))


def _concat(importer: _Importer, layer: Any, name: str, inputs: list[str]) -> str:
    axes = len(importer.builder.shape(inputs[0])) + 1
    if layer.axis not in (-1, axes - 1):
        raise UnsupportedLayer(f"layer {layer.name!r} joins axis {layer.axis}; possible: the channels, -1")
    return importer.add("concat", name, inputs)


def _add(importer: _Importer, layer: Any, name: str, inputs: list[str]) -> str:
    if len(inputs) != 2:
        raise UnsupportedLayer(f"layer {layer.name!r} adds {len(inputs)} tensors; possible: 2")
    return importer.add("add", name, inputs)


def _softmax(importer: _Importer, layer: Any, name: str, inputs: list[str]) -> str:
    if layer.axis != -1:
        raise UnsupportedLayer(
            f"layer {layer.name!r} takes the softmax along axis {layer.axis}; possible: the last, -1"
        )
    return importer.add("softmax", name, inputs)


_LAYERS: dict[str, Callable[[_Importer, Any, str, list[str]], str]] = {
    "Conv2D": _convolution,
    "Dense": _dense,
    "BatchNormalization": _batch_norm,
    "ReLU": _relu,
    "Activation": _activation,
    "Softmax": _softmax,
    "MaxPooling2D": _pool("max_pool"),
    "AveragePooling2D": _pool("average_pool"),
    "GlobalAveragePooling2D": _global_pool,
    "Concatenate": _concat,
    "Add": _add,
    "Flatten": lambda importer, _layer, name, inputs: importer.flatten(name, inputs[0]),
    "Dropout": lambda importer, _layer, name, inputs: importer.add("dropout", name, inputs),
    "Identity": lambda importer, _layer, name, inputs: importer.add("identity", name, inputs),
}
