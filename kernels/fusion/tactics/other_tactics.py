"""Tactics for what is no convolution: pooling, what is computed of rows or of channels, and the pointwise layers that
fusion takes away. Those of elements are in `element_tactics`."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernels.fusion.graph.functions import REDUCED
from kernels.fusion.graph.nodes import Slice, Tensor
from kernels.fusion.graph.operators import as_image
from kernels.fusion.tactics.element_tactics import broadcast_strides, refuses_channels_last
from kernels.fusion.tactics.layer import Layer
from kernels.fusion.tactics.sources import ATTENTION, CTYPES, LRN, POINTWISE, POOL, SOURCES, record, view
from kernels.fusion.tactics.tactic import Arrays, Call, Tactic, call
from warpcourse.bench.attention import by_kernels
from warpcourse.bench.lab_kernels import Kernel
from warplab import cp

BLOCK = 256  # threads per block
WARPS = 8  # of a block of pool_images_*: WARPS in pool.cu
ROWS = 4  # of a block, a warp each: in softmax.cu and rows.cu; WARPS in attention.cu
QUERIES = 16  # of a block of attention.cu
TILE = 16  # of a block, both ways: TILE in matmul.cu
EIGHT, SIXTEEN, SIXTY_FOUR = 8, 16, 64  # channels of a thread, and of a block of pool_images_wide
MOST_AROUND = 9  # channels of a window of lrn_eights
MOST_UNROLLED = 3  # the widest window that pool_vectors unrolls


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


def _bind_pool(
    layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], _weights: Arrays, per_thread: int = 1
) -> list[Call]:
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
    side = r if r == s and r <= MOST_UNROLLED else 0
    if per_thread > 1:
        entry = f"pool_vectors<{CTYPES[x.dtype]}, {maximum}, {side}>"
    else:
        entry = f"pool<{CTYPES[x.dtype]}, {maximum}, {_nhwc(y)}>"
    blocks = math.ceil(elements / per_thread / BLOCK)
    return [call(_kernel("pool.cu", entry), blocks, BLOCK, (inputs[0], outputs[0], sizes))]


def _refuses_eights(layer: Layer) -> str:
    x, (part, y) = layer.reads[0], layer.writes[0]
    if x.dtype != "float16" or x.layout != "NHWC":
        return "it takes float16 in NHWC"
    if any(number % EIGHT for number in (x.channels, part.start, y.channels)):
        return f"a thread has {EIGHT} channels"
    return ""


def _refuses_sixteens(layer: Layer) -> str:
    x, (part, y) = layer.reads[0], layer.writes[0]
    if x.dtype != "int8" or x.layout != "NHWC" or x.scale != y.scale:
        return "it takes INT8 in NHWC, and keeps its scale"
    if any(number % SIXTEEN for number in (x.channels, part.start, y.channels)):
        return f"a thread has {SIXTEEN} channels"
    return ""


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
    if x.layout == "NHWC" and x.dtype != "float32" and c % SIXTY_FOUR == 0:
        kernel = _kernel("pool.cu", f"pool_images_wide<{CTYPES[x.dtype]}, {CTYPES[y.dtype]}>")
        return [call(kernel, layer.batch * c // SIXTY_FOUR, 32 * WARPS, (inputs[0], outputs[0], sizes))]
    types = CTYPES[x.dtype] if y.dtype == "float32" else f"{CTYPES[x.dtype]}, {CTYPES[y.dtype]}"
    channels_last = x.layout == "NHWC"
    grid = layer.batch * math.ceil(c / 32) if channels_last else math.ceil(layer.batch * c / WARPS)
    kernel = _kernel("pool.cu", f"pool_images_{'nhwc' if channels_last else 'nchw'}<{types}>")
    return [call(kernel, grid, 32 * WARPS, (inputs[0], outputs[0], sizes))]


def _bind_softmax(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], _weights: Arrays) -> list[Call]:
    return _of_rows(layer, _kernel("softmax.cu", "softmax"), inputs[0], outputs[0])


def _bind_reduce(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], _weights: Arrays) -> list[Call]:
    return _of_rows(layer, _kernel("rows.cu", f"reduce<of::{layer.node.op}>"), inputs[0], outputs[0])


def _bind_layer_norm(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], weights: Arrays) -> list[Call]:
    arrays = inputs[0], weights["gamma"], weights["beta"], outputs[0]
    return _of_rows(
        layer, _kernel("rows.cu", "layer_norm"), *arrays, last=(np.float32(layer.node.attributes["epsilon"]),)
    )


def _of_rows(layer: Layer, kernel: Kernel, *arrays: Any, last: tuple = ()) -> list[Call]:
    """Return the launch of a kernel that takes arrays, rows and columns; a row is the last axis."""
    shape = layer.reads[0].shape
    rows = layer.batch * math.prod(shape[:-1])
    arguments = *arrays, np.int32(rows), np.int32(shape[-1]), *last
    return [call(kernel, math.ceil(rows / ROWS), 32 * ROWS, arguments)]


def _bind_matmul(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], _weights: Arrays) -> list[Call]:
    (*above, m, k), n = layer.reads[0].shape, layer.reads[1].shape[-1]
    blocks = layer.batch * math.prod(above) * math.ceil(m / TILE) * math.ceil(n / TILE)
    arguments = *inputs, outputs[0], *map(np.int32, (m, k, n))
    return [call(_kernel("matmul.cu", "matmul"), blocks, TILE * TILE, arguments)]


def _bind_attention(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], _weights: Arrays) -> list[Call]:
    (heads, s, d), (_, t, e) = layer.reads[0].shape, layer.reads[2].shape
    mask = dict.fromkeys(("mask_image", "mask_head", "mask_row", "mask_column"), 0)
    if len(inputs) == 4:
        shape = layer.reads[3].shape
        mask = dict(zip(mask, (math.prod(shape), *broadcast_strides(shape, (heads, s, t))), strict=True))
    sizes = record(ATTENTION, heads=heads, s=s, t=t, d=d, e=e, scale=layer.node.attributes["scale"], **mask)
    arguments = *inputs, *[None] * (4 - len(inputs)), outputs[0], sizes
    kernel = _kernel("attention.cu", "attention")
    return [call(kernel, layer.batch * heads * math.ceil(s / QUERIES), 32 * ROWS, arguments)]


def _refuses_halves(layer: Layer) -> str:
    return refuses_channels_last(layer) if _refuses_singles(layer) else "it takes float32"


def _refuses_singles(layer: Layer) -> str:
    return "" if layer.node.attributes["precision"] == "float16" else "it takes float16"


def _bind_halves(
    step: str, layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], _weights: Arrays
) -> list[Call]:
    """Return attention by a step of the lab that offers it."""
    kernels, lse = by_kernels(), cp.empty(inputs[0].shape[:3], np.float32)
    assert kernels
    arguments = *inputs, False, layer.node.attributes["scale"], step, outputs[0], lse
    return [Call(f"attention_{step}", functools.partial(kernels.forward, *arguments))]


def _halves(step: str, capability: int) -> Tactic:
    bind = functools.partial(_bind_halves, step)
    return Tactic(f"attention_{step}", ("attention",), _refuses_singles, _no_weights, bind, capability)


def _bind_lrn(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], _weights: Arrays) -> list[Call]:
    x, (_, y), given = layer.reads[0], layer.writes[0], layer.node.attributes
    (c, h, w), around = x.shape, given["size"] - 1
    elements = layer.batch * c * h * w
    sizes = record(
        LRN,
        elements=elements,
        c=c,
        h=h,
        w=w,
        before=around // 2,
        after=around - around // 2,
        factor=given["alpha"] / given["size"],
        beta=given["beta"],
        bias=given["bias"],
        x_scale=x.scale or 1,
        per_step=1 / (y.scale or 1),
        x=view(x),
        y=view(y),
    )
    if not _refuses_eights(layer) and given["size"] <= MOST_AROUND:
        elements, kernel = elements // EIGHT, _kernel("lrn.cu", f"lrn_eights<{given['size']}>")
    else:
        kernel = _kernel("lrn.cu", f"lrn<{CTYPES[x.dtype]}, {_nhwc(y)}>")
    return [call(kernel, math.ceil(elements / BLOCK), BLOCK, (inputs[0], outputs[0], sizes))]


def _refuses_to_add(layer: Layer) -> str:
    shapes = sorted((tensor.shape for tensor in layer.reads), key=math.prod)
    small, large = map(as_image, shapes)
    if len(shapes[0]) <= 3 and (small == large or small == (large[0], 1, 1)):
        return ""
    return f"it adds one number per channel or per element, and the inputs are {shapes[0]} and {shapes[1]}"


def _nothing(_layer: Layer) -> str:
    return ""


def _no_weights(_layer: Layer) -> dict[str, np.ndarray]:
    return {}


TACTICS = (
    Tactic("pointwise", ("relu", "convert", "identity", "dropout"), _nothing, _no_weights, _bind_simple),
    Tactic("pointwise_norm", ("batch_norm",), _nothing, _norm_weights, _bind_simple),
    Tactic("pointwise_add", ("add",), _refuses_to_add, _no_weights, _bind_add),
    Tactic("pointwise_copies", ("concat",), _nothing, _no_weights, _bind_concat),
    Tactic(
        "pool_eights",
        ("max_pool", "average_pool"),
        _refuses_eights,
        _no_weights,
        functools.partial(_bind_pool, per_thread=EIGHT),
        capability=80,
        sort=lambda _layer: 0,
    ),
    Tactic(
        "pool_sixteens",
        ("max_pool",),
        _refuses_sixteens,
        _no_weights,
        functools.partial(_bind_pool, per_thread=SIXTEEN),
        sort=lambda _layer: 0,
    ),
    Tactic("pool", ("max_pool", "average_pool"), _nothing, _no_weights, _bind_pool),
    Tactic("pool_images", ("global_average_pool",), _nothing, _no_weights, _bind_pool_images),
    Tactic("softmax", ("softmax",), refuses_channels_last, _no_weights, _bind_softmax),
    Tactic("reduce", tuple(REDUCED), refuses_channels_last, _no_weights, _bind_reduce),
    Tactic(
        "layer_norm", ("layer_norm",), refuses_channels_last, lambda layer: dict(layer.node.weights), _bind_layer_norm
    ),
    Tactic("matmul", ("matmul",), refuses_channels_last, _no_weights, _bind_matmul),
    Tactic("attention", ("attention",), _refuses_halves, _no_weights, _bind_attention),
    _halves("mma", 80),
    _halves("wgmma", 90),
    Tactic("lrn", ("lrn",), _nothing, _no_weights, _bind_lrn),
)
