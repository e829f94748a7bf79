"""Tactics for what is no convolution: pooling, softmax, and the pointwise layers that fusion takes away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernels.fusion.graph.nodes import Slice, Tensor
from kernels.fusion.graph.operators import as_image
from kernels.fusion.tactics.cbr_tactics import CTYPES
from kernels.fusion.tactics.layer import Layer
from kernels.fusion.tactics.sources import POINTWISE, POOL, SOURCES, record, view
from kernels.fusion.tactics.tactic import Arrays, Call, Tactic, call
from warpcourse.bench.lab_kernels import Kernel

BLOCK = 256  # threads per block
WARPS = 8  # of a block of pool_images_*: WARPS in pool.cu
ROWS = 4  # of a block of softmax: ROWS in softmax.cu


def _kernel(file: str, entry: str) -> Kernel:
    return Kernel(entry, SOURCES, file, entry)


def _nhwc(tensor: Tensor) -> str:
    return "true" if tensor.layout == "NHWC" else "false"


def pointwise(
    x: tuple[Tensor, Any],
    y: tuple[Tensor, Any],
    batch: int,
    *,
    part: Slice | None = None,
    scale: Any = None,
    shift: Any = None,
    other: tuple[Tensor, Any] | None = None,
    relu: bool = False,
) -> Call:
    """Return one launch of pointwise.cu: y = relu(x * scale + shift + other), each tensor with its array.

    `part`: the slice of y that is written. `other`: of x's shape, or one number per channel.
    """
    (source, from_array), (target, to_array) = x, y
    c, h, w = as_image(source.shape)
    strides = (0,) * 5
    if other is not None:
        strides = view(other[0])
        if as_image(other[0].shape)[1:] == (1, 1):
            strides = *strides[:3], 0, 0
    sizes = record(
        POINTWISE,
        elements=batch * c * h * w,
        c=c,
        h=h,
        w=w,
        relu=relu,
        x_scale=source.scale or 1,
        per_step=1 / (target.scale or 1),
        x=view(source),
        other=strides,
        y=view(target, part),
    )
    kernel = _kernel("pointwise.cu", f"pointwise<{CTYPES[source.dtype]}, {CTYPES[target.dtype]}, {_nhwc(target)}>")
    arguments = from_array, scale, shift, other[1] if other else None, to_array, sizes
    return call(kernel, math.ceil(batch * c * h * w / BLOCK), BLOCK, arguments)


def _one(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple:
    return (layer.reads[0], inputs[0]), (layer.writes[0][1], outputs[0]), layer.batch


def _bind_simple(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], weights: Arrays) -> list[Call]:
    relu = layer.node.op == "relu"
    return [pointwise(*_one(layer, inputs, outputs), relu=relu, scale=weights.get("scale"), shift=weights.get("shift"))]


def _bind_add(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], _weights: Arrays) -> list[Call]:
    pairs = sorted(zip(layer.reads, inputs, strict=True), key=lambda pair: -math.prod(pair[0].shape))
    return [pointwise(pairs[0], (layer.writes[0][1], outputs[0]), layer.batch, other=pairs[1])]


def _bind_concat(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], _weights: Arrays) -> list[Call]:
    calls, start, whole = [], 0, (layer.writes[0][1], outputs[0])
    for tensor, array in zip(layer.reads, inputs, strict=True):
        part = Slice(whole[0].name, start, tensor.channels)
        calls.append(pointwise((tensor, array), whole, layer.batch, part=part))
        start += tensor.channels
    return calls


def _norm_weights(layer: Layer) -> dict[str, np.ndarray]:
    w = {name: values.astype(np.float64) for name, values in layer.node.weights.items()}
    scale = w["gamma"] / np.sqrt(w["variance"] + layer.node.attributes["epsilon"])
    return {"scale": scale.astype(np.float32), "shift": (w["beta"] - w["mean"] * scale).astype(np.float32)}


def _bind_pool(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], _weights: Arrays) -> list[Call]:
    attributes, x = layer.node.attributes, layer.reads[0]
    part, y = layer.writes[0]
    (c, h, w), (p, q), (r, s) = x.shape, y.shape[1:], attributes["window"]
    (top, left), (down, across) = attributes["padding"][:2], attributes["stride"]
    elements = layer.batch * c * p * q
    sizes = record(
        POOL,
        elements=elements,
        c=c,
        h=h,
        w=w,
        r=r,
        s=s,
        p=p,
        q=q,
        pad_h=top,
        pad_w=left,
        stride_h=down,
        stride_w=across,
        area=r * s if attributes.get("count_padding") else 0,
        factor=(x.scale or 1) / (y.scale or 1),
        x=view(x),
        y=view(y, part),
    )
    maximum = str(layer.node.op == "max_pool").lower()
    kernel = _kernel("pool.cu", f"pool<{CTYPES[x.dtype]}, {maximum}, {_nhwc(y)}>")
    return [call(kernel, math.ceil(elements / BLOCK), BLOCK, (inputs[0], outputs[0], sizes))]


def _bind_pool_images(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], _weights: Arrays) -> list[Call]:
    x, y = layer.reads[0], layer.writes[0][1]
    c, h, w = x.shape
    sizes = record(
        POOL,
        elements=layer.batch * c,
        c=c,
        h=h,
        w=w,
        r=h,
        s=w,
        p=1,
        q=1,
        area=h * w,
        factor=x.scale or 1,
        x=view(x),
        y=view(y),
    )
    if x.layout == "NHWC":
        kernel, grid = _kernel("pool.cu", f"pool_images_nhwc<{CTYPES[x.dtype]}>"), layer.batch * math.ceil(c / 32)
    else:
        kernel, grid = _kernel("pool.cu", f"pool_images_nchw<{CTYPES[x.dtype]}>"), math.ceil(layer.batch * c / WARPS)
    return [call(kernel, grid, 32 * WARPS, (inputs[0], outputs[0], sizes))]


def _bind_softmax(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], _weights: Arrays) -> list[Call]:
    rows, columns = layer.batch, layer.reads[0].channels
    arguments = inputs[0], outputs[0], np.int32(rows), np.int32(columns)
    return [call(_kernel("softmax.cu", "softmax"), math.ceil(rows / ROWS), 32 * ROWS, arguments)]


def _nothing(_layer: Layer) -> str:
    return ""


def _no_weights(_layer: Layer) -> dict[str, np.ndarray]:
    return {}


TACTICS = (
    Tactic("pointwise", ("relu", "convert", "identity", "dropout"), _nothing, _no_weights, _bind_simple),
    Tactic("pointwise_norm", ("batch_norm",), _nothing, _norm_weights, _bind_simple),
    Tactic("pointwise_add", ("add",), _nothing, _no_weights, _bind_add),
    Tactic("pointwise_copies", ("concat",), _nothing, _no_weights, _bind_concat),
    Tactic("pool", ("max_pool", "average_pool"), _nothing, _no_weights, _bind_pool),
    Tactic("pool_images", ("global_average_pool",), _nothing, _no_weights, _bind_pool_images),
    Tactic("softmax", ("softmax",), _nothing, _no_weights, _bind_softmax),
)
