"""The operators that a graph may hold: a row per operator with its inputs, attributes, weights and shape rule.

Shapes are of one sample: (channels, height, width), or (features,). A `cbr` is what passes make of layers: convolution
+ bias, then an optional residual tensor added, then an optional ReLU, in one kernel. It takes a vector of features for
an image of 1 × 1 pixels, and so computes dense layers, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Attributes = Mapping[str, Any]
Weights = Mapping[str, np.ndarray]
ITEMSIZE = {"float32": 4, "float16": 2, "int8": 1}
PRECISIONS = tuple(ITEMSIZE)


@dataclass(frozen=True)
class Operator:
    """What holds for all nodes of one operator.

    `shape`: from the inputs' shapes, attributes and weights to the output's shape; ValueError if they do not fit.
    `inputs`: least and most inputs. `attributes`: all of them with their defaults, None where one must be given.
    `weights`: those that a node must have, and in `optional` those that it may have. `slices`: whether kernels of this
    operator can write into some channels of a larger tensor.
    """

    shape: Callable[[list[Shape], Attributes, Weights], Shape]
    inputs: tuple[int, float] = (1, 1)
    attributes: Attributes = field(default_factory=dict)
    weights: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    slices: bool = False


def _convolution(inputs: list[Shape], attributes: Attributes, weights: Weights) -> Shape:
    filters = weights["filters"]
    if filters.ndim != 4:
        raise ValueError(f"filters have the shape {filters.shape}; they need (filters, channels, height, width)")
    pixels = as_image(inputs[0])
    if filters.shape[1] != pixels[0]:
        raise ValueError(f"the filters have {filters.shape[1]} channels and the input {pixels[0]}")
    for name in ("bias", "filter_scales"):
        if name in weights and weights[name].shape != filters.shape[:1]:
            raise ValueError(f"{name} has the shape {weights[name].shape}; {len(filters)} filters need as many numbers")
    return len(filters), *_windows(pixels, filters.shape[2:], attributes)


def _conv(inputs: list[Shape], attributes: Attributes, weights: Weights) -> Shape:
    return _convolution([_image(inputs[0])], attributes, weights)


def _cbr(inputs: list[Shape], attributes: Attributes, weights: Weights) -> Shape:
    shape = _convolution(inputs, attributes, weights)
    if attributes["precision"] not in PRECISIONS:
        raise ValueError(f"precision is {attributes['precision']!r}; choose one of {', '.join(PRECISIONS)}")
    if (attributes["precision"] == "int8") != ("filter_scales" in weights):
        raise ValueError("an INT8 cbr needs filter_scales, and no other cbr has them")
    if len(inputs[0]) == 1:
        if shape[1:] != (1, 1):
            raise ValueError(f"a vector of features is one pixel, and this convolution makes {shape[1:]} of it")
        shape = shape[:1]
    if len(inputs) == 2 and inputs[1] != shape:
        raise ValueError(f"the residual has the shape {inputs[1]} and the convolution's result {shape}")
    return shape


def _dense(inputs: list[Shape], _attributes: Attributes, weights: Weights) -> Shape:
    matrix = weights["matrix"]
    if len(inputs[0]) != 1 or matrix.ndim != 2 or matrix.shape[1] != inputs[0][0]:
        raise ValueError(f"the matrix has the shape {matrix.shape} (outputs, features) and the input {inputs[0]}")
    if "bias" in weights and weights["bias"].shape != matrix.shape[:1]:
        raise ValueError(f"bias has the shape {weights['bias'].shape}; {len(matrix)} outputs need as many numbers")
    return (len(matrix),)


def _batch_norm(inputs: list[Shape], _attributes: Attributes, weights: Weights) -> Shape:
    for name, values in weights.items():
        if values.shape != inputs[0][:1]:
            raise ValueError(f"{name} has the shape {values.shape} and the input {inputs[0][0]} channels")
    return inputs[0]


def _add(inputs: list[Shape], _attributes: Attributes, _weights: Weights) -> Shape:
    """Add a tensor of one number per channel, (channels, 1, 1), to all pixels."""
    a, b = inputs
    per_channel = [shape for shape in inputs if shape[1:] == (1, 1)]
    if a != b and not (per_channel and len(a) == len(b) and a[0] == b[0]):
        raise ValueError(f"shapes {a} and {b} cannot be added: neither equal nor one number per channel")
    return b if math.prod(b) > math.prod(a) else a


def _concat(inputs: list[Shape], _attributes: Attributes, _weights: Weights) -> Shape:
    if len({shape[1:] for shape in inputs}) > 1:
        raise ValueError(f"shapes {', '.join(map(str, inputs))} differ in more than their channels")
    return sum(shape[0] for shape in inputs), *inputs[0][1:]


def _pool(inputs: list[Shape], attributes: Attributes, _weights: Weights) -> Shape:
    (shape,) = inputs
    top, left, bottom, right = attributes["padding"]
    height, width = attributes["window"]
    if max(top, bottom) >= height or max(left, right) >= width:
        raise ValueError(f"padding {attributes['padding']} leaves windows of {height} × {width} that hold no pixel")
    return shape[0], *_windows(_image(shape), (height, width), attributes)


def _global(inputs: list[Shape], attributes: Attributes, _weights: Weights) -> Shape:
    channels = _image(inputs[0])[0]
    return (channels, 1, 1) if attributes["keep_axes"] else (channels,)


def _softmax(inputs: list[Shape], _attributes: Attributes, _weights: Weights) -> Shape:
    if len(inputs[0]) != 1:
        raise ValueError(f"the input has the shape {inputs[0]}; softmax takes a vector of features")
    return inputs[0]


def as_image(shape: Shape) -> Shape:
    """Return (channels, height, width) of an image; a vector of features is an image of one pixel."""
    return (*shape, 1, 1) if len(shape) == 1 else shape


def _image(shape: Shape) -> Shape:
    if len(shape) != 3:
        raise ValueError(f"the input has the shape {shape}; it must be an image, (channels, height, width)")
    return shape


def _windows(shape: Shape, window: Shape, attributes: Attributes) -> tuple[int, int]:
    """Count the rows and columns of windows that fit the padded image."""
    top, left, bottom, right = attributes["padding"]
    dilation = attributes.get("dilation", (1, 1))
    found = []
    for axis, padded in enumerate((shape[1] + top + bottom, shape[2] + left + right)):
        extent = dilation[axis] * (window[axis] - 1) + 1
        if extent > padded:
            raise ValueError(f"a window of {extent} pixels does not fit the padded image's {padded}")
        found.append((padded - extent) // attributes["stride"][axis] + 1)
    return found[0], found[1]


# Padding as ONNX writes it: rows above, columns left, rows below, columns right.
_STEPS = {"padding": (0, 0, 0, 0), "stride": (1, 1)}
_CONVOLUTION = {**_STEPS, "dilation": (1, 1)}
_NORM = ("gamma", "beta", "mean", "variance")

_SAME = Operator(lambda inputs, *_: inputs[0])

OPERATORS: Mapping[str, Operator] = {
    "constant": Operator(lambda _inputs, _attributes, weights: weights["value"].shape, (0, 0), weights=("value",)),
    "conv": Operator(_conv, attributes=_CONVOLUTION, weights=("filters",), optional=("bias",)),
    "batch_norm": Operator(_batch_norm, attributes={"epsilon": 1e-3}, weights=_NORM),
    "relu": _SAME,
    "add": Operator(_add, (2, 2)),
    "concat": Operator(_concat, (1, math.inf)),
    "max_pool": Operator(_pool, attributes={"window": None, **_STEPS}, slices=True),
    "average_pool": Operator(_pool, attributes={"window": None, **_STEPS, "count_padding": False}, slices=True),
    "global_average_pool": Operator(_global, attributes={"keep_axes": False}),
    "flatten": Operator(lambda inputs, *_: (math.prod(inputs[0]),)),
    "dense": Operator(_dense, weights=("matrix",), optional=("bias",)),
    "softmax": Operator(_softmax),
    "identity": _SAME,
    "dropout": _SAME,
    # What passes make.
    "cbr": Operator(
        _cbr,
        (1, 2),
        {**_CONVOLUTION, "relu": False, "precision": "float32"},
        ("filters", "bias"),
        ("filter_scales",),
        slices=True,
    ),
    "convert": _SAME,
}
