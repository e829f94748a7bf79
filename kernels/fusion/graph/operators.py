"""The operators that a graph may hold: a row per operator with its inputs, attributes, weights and shape rule.

Shapes are of one sample: an image (channels, height, width), a vector (features,), rows of features (rows, features),
as of a sequence, or any other of up to 5 axes; elements lie row by row. A `cbr` is what passes make of layers:
convolution + bias, then an optional residual tensor added, then an optional ReLU or SiLU, in one kernel. It takes a
vector of features for an image of 1 × 1 pixels, and rows of features for one of 1 × rows, and so computes dense layers,
too. Where filters see fewer channels than there are, channels and filters are in groups, each with its own. Filters
that lie on INT8's steps may come with their `filter_scales`, whatever precision computes.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernels.fusion.graph.functions import BINARY, REDUCED, UNARY

Shape = tuple[int, ...]
Attributes = Mapping[str, Any]
Weights = Mapping[str, np.ndarray]
ITEMSIZE = {"float32": 4, "float16": 2, "int8": 1}
PRECISIONS = tuple(ITEMSIZE)
MOST_AXES = 5
COPIES = "transpose", "slice", "expand"  # of elements to other places


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
    if not filters.size or pixels[0] % filters.shape[1] or len(filters) % groups(pixels[0], filters):
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
    if attributes["precision"] == "int8" and "filter_scales" not in weights:
        raise ValueError("an INT8 cbr needs filter_scales")
    if len(inputs[0]) != 3:
        if weights["filters"].shape[2:] != (1, 1) or shape[1:] != as_image(inputs[0])[1:]:
            raise ValueError(f"a vector of features is one pixel, and this convolution makes {shape[1:]} of it")
        shape = with_channels(inputs[0], shape[0])
    if len(inputs) == 2 and inputs[1] != shape:
        raise ValueError(f"the residual has the shape {inputs[1]} and the convolution's result {shape}")
    return shape


def _dense(inputs: list[Shape], _attributes: Attributes, weights: Weights) -> Shape:
    matrix = weights["matrix"]
    if len(inputs[0]) > 2 or matrix.ndim != 2 or matrix.shape[1] != inputs[0][-1]:
        raise ValueError(f"the matrix has the shape {matrix.shape} (outputs, features) and the input {inputs[0]}")
    for name in ("bias", "filter_scales"):
        if name in weights and weights[name].shape != matrix.shape[:1]:
            raise ValueError(f"{name} has the shape {weights[name].shape}; {len(matrix)} outputs need as many numbers")
    return with_channels(inputs[0], len(matrix))


def _batch_norm(inputs: list[Shape], _attributes: Attributes, weights: Weights) -> Shape:
    for name, values in weights.items():
        if len(inputs[0]) > 3 or values.shape != as_image(inputs[0])[:1]:
            raise ValueError(f"{name} has the shape {values.shape} and the input {as_image(inputs[0])[0]} channels")
    return inputs[0]


def _binary(inputs: list[Shape], _attributes: Attributes, _weights: Weights) -> Shape:
    """Repeat what has one element along an axis, such as one number per channel, (channels, 1, 1), for all pixels."""
    a, b = inputs
    if len(a) != len(b) or any(i != j and 1 not in (i, j) for i, j in zip(a, b, strict=True)):
        raise ValueError(f"shapes {a} and {b} cannot be joined: as many axes, and along each as many elements, or 1")
    return tuple(map(max, a, b))


def _concat(inputs: list[Shape], _attributes: Attributes, _weights: Weights) -> Shape:
    if len({with_channels(shape, 1) for shape in inputs}) > 1:
        raise ValueError(f"shapes {', '.join(map(str, inputs))} differ in more than their channels")
    return with_channels(inputs[0], sum(shape[channel_axis(shape)] for shape in inputs))


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


def _reshape(inputs: list[Shape], attributes: Attributes, _weights: Weights) -> Shape:
    if math.prod(attributes["shape"]) != math.prod(inputs[0]):
        raise ValueError(f"the shape {attributes['shape']} has not as many elements as the input's, {inputs[0]}")
    return attributes["shape"]


def _transpose(inputs: list[Shape], attributes: Attributes, _weights: Weights) -> Shape:
    if sorted(attributes["order"]) != list(range(len(inputs[0]))):
        raise ValueError(f"the order {attributes['order']} must name each of the axes of {inputs[0]} once")
    return tuple(inputs[0][axis] for axis in attributes["order"])


def _slice(inputs: list[Shape], attributes: Attributes, _weights: Weights) -> Shape:
    parts = [attributes[name] for name in ("starts", "steps", "shape")]
    if {len(part) for part in parts} != {len(inputs[0])}:
        raise ValueError(f"starts, steps and shape must have a number for each of the axes of {inputs[0]}")
    for size, start, step, count in zip(inputs[0], *parts, strict=True):
        if count < 1 or not (0 <= start < size and 0 <= start + step * (count - 1) < size):
            raise ValueError(f"{count} elements from {start} on in steps of {step} are not all in an axis of {size}")
    return attributes["shape"]


def _expand(inputs: list[Shape], attributes: Attributes, _weights: Weights) -> Shape:
    if _binary([inputs[0], attributes["shape"]], {}, {}) != attributes["shape"]:
        raise ValueError(f"{inputs[0]} cannot be repeated to {attributes['shape']}")
    return attributes["shape"]


def _matmul(inputs: list[Shape], _attributes: Attributes, _weights: Weights) -> Shape:
    a, b = inputs
    if len(a) < 2 or a[:-2] != b[:-2] or len(a) != len(b) or a[-1] != b[-2]:
        raise ValueError(f"matrices {a} and {b} cannot be multiplied")
    return *a[:-1], b[-1]


def _attention(inputs: list[Shape], attributes: Attributes, _weights: Weights) -> Shape:
    q, k, v, *mask = inputs
    if {len(shape) for shape in inputs} != {3} or len({q[0], k[0], v[0]}) > 1 or q[2] != k[2] or k[1] != v[1]:
        raise ValueError(f"queries {q}, keys {k} and values {v} must be (heads, length, size) and fit each other")
    if mask:
        _expand(mask, {"shape": (*q[:2], k[1])}, {})
    return *q[:2], v[2]


def _layer_norm(inputs: list[Shape], _attributes: Attributes, weights: Weights) -> Shape:
    for name, values in weights.items():
        if values.shape != inputs[0][-1:]:
            raise ValueError(f"{name} has the shape {values.shape} and the last axis {inputs[0][-1]} elements")
    return inputs[0]


def _lrn(inputs: list[Shape], attributes: Attributes, _weights: Weights) -> Shape:
    if attributes["size"] < 1:
        raise ValueError(f"size is {attributes['size']}; it must be at least 1")
    return _image(inputs[0])


def as_image(shape: Shape) -> Shape:
    """Return (channels, height, width) of an image, a vector, or rows of features; what has more axes lies as this."""
    if len(shape) < 3:
        return shape[-1], 1, math.prod(shape[:-1])
    return shape[0], math.prod(shape[1:-1]), shape[-1]


def channel_axis(shape: Shape) -> int:
    """Return the axis of the channels, which are the features of rows."""
    return 1 if len(shape) == 2 else 0


def with_channels(shape: Shape, channels: int) -> Shape:
    """Return the shape with another number of channels."""
    axis = channel_axis(shape)
    return *shape[:axis], channels, *shape[axis + 1 :]


def groups(channels: int, filters: np.ndarray) -> int:
    """Return in how many groups filters see so many channels; 1 where each sees all."""
    return channels // filters.shape[1]


def reads_image(precision: str, channels: int) -> bool:
    """Return whether a cbr takes what it reads as an image comes, float32, though it computes in float16."""
    return precision == "float16" and channels == 3


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
# A ReLU, and its largest result, 0 for any (ReLU6 has 6); or x · σ(x), SiLU.
_ACTIVATION = {"relu": False, "most": 0.0, "swish": False}

_SAME = Operator(lambda inputs, *_: inputs[0])
_BINARY = Operator(_binary, (2, 2))

OPERATORS: Mapping[str, Operator] = {
    "constant": Operator(lambda _inputs, _attributes, weights: weights["value"].shape, (0, 0), weights=("value",)),
    "conv": Operator(_conv, attributes=_CONVOLUTION, weights=("filters",), optional=("bias", "filter_scales")),
    "batch_norm": Operator(_batch_norm, attributes={"epsilon": 1e-3}, weights=_NORM),
    "relu": _SAME,
    **dict.fromkeys(BINARY, _BINARY),
    **{name: replace(_SAME, attributes=function.attributes) for name, function in UNARY.items()},
    **dict.fromkeys(REDUCED, Operator(lambda inputs, *_: (*inputs[0][:-1], 1))),
    "concat": Operator(_concat, (1, math.inf)),
    "max_pool": Operator(_pool, attributes={"window": None, **_STEPS}, slices=True),
    "average_pool": Operator(_pool, attributes={"window": None, **_STEPS, "count_padding": False}, slices=True),
    "global_average_pool": Operator(_global, attributes={"keep_axes": False}),
    "flatten": Operator(lambda inputs, *_: (math.prod(inputs[0]),)),
    "dense": Operator(_dense, weights=("matrix",), optional=("bias", "filter_scales")),
    "softmax": _SAME,  # of the last axis, and so is the layer norm
    "layer_norm": Operator(_layer_norm, attributes={"epsilon": 1e-5}, weights=("gamma", "beta")),
    "lrn": Operator(_lrn, attributes={"size": None, "alpha": 1e-4, "beta": 0.75, "bias": 1.0}),
    "reshape": Operator(_reshape, attributes={"shape": None}),
    "transpose": Operator(_transpose, attributes={"order": None}),
    "slice": Operator(_slice, attributes=dict.fromkeys(("starts", "steps", "shape"))),
    "expand": Operator(_expand, attributes={"shape": None}),
    "matmul": Operator(_matmul, (2, 2)),
    "identity": _SAME,
    "dropout": _SAME,
    # What passes make.
    "cbr": Operator(
        _cbr,
        (1, 2),
        {**_CONVOLUTION, **_ACTIVATION, "precision": "float32"},
        ("filters", "bias"),
        ("filter_scales",),
        slices=True,
    ),
    "attention": Operator(_attention, (3, 4), {"scale": 1.0, "precision": "float32"}),
    "convert": _SAME,
}
