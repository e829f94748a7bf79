"""The tactic of functions of one element or two, and of copies: elementwise.cu, for elements that lie anywhere."""

import math
from collections.abc import Sequence
from typing import Any

from kernels.fusion.graph.functions import BINARY, UNARY
from kernels.fusion.graph.operators import COPIES, Shape
from kernels.fusion.tactics.layer import Layer
from kernels.fusion.tactics.sources import CTYPES, ELEMENTWISE, MOST_AXES, SOURCES, record
from kernels.fusion.tactics.tactic import Arrays, Call, Tactic, call
from warpcourse.bench.lab_kernels import Kernel

BLOCK = 256  # threads per block


def strides(shape: Shape) -> Shape:
    """Return elements from one to the next along each axis of a tensor that lies row by row."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def broadcast_strides(shape: Shape, result: Shape) -> Shape:
    """Return the same for a tensor that is repeated along axes where it has one element and the result has more."""
    return tuple(
        0 if size == 1 != of_result else step
        for size, of_result, step in zip(shape, result, strides(shape), strict=True)
    )


def refuses_channels_last(layer: Layer) -> str:
    """Return what kernels refuse that take elements row by row."""
    for tensor in (*layer.reads, *(tensor for _, tensor in layer.writes)):
        if tensor.layout == "NHWC" and not tensor.same_in_memory():
            return f"it takes NCHW, and {tensor.name} is NHWC"
    return ""


def _read(layer: Layer) -> tuple[int, list[Shape]]:
    """Return the first element read of the first input, and where those of each go on, along the result's axes."""
    given, result = layer.node.attributes, layer.writes[0][1].shape
    shape = layer.reads[0].shape
    steps = strides(shape)
    if layer.node.op == "transpose":
        return 0, [tuple(steps[axis] for axis in given["order"])]
    if layer.node.op == "slice":
        first = sum(start * step for start, step in zip(given["starts"], steps, strict=True))
        return first, [tuple(by * step for by, step in zip(given["steps"], steps, strict=True))]
    return 0, [broadcast_strides(tensor.shape, result) for tensor in layer.reads]


def joined(shape: Shape, steps: list[Shape]) -> tuple[Shape, list[Shape]]:
    """Return fewer axes: without those of one element, and with those as one along which all go on evenly."""
    axes: list[tuple[int, ...]] = []  # extent, and a step for each
    for size, *of_each in zip(shape, *steps, strict=True):
        if size == 1:
            continue
        if axes and all(above == size * step for above, step in zip(axes[-1][1:], of_each, strict=True)):
            axes[-1] = axes[-1][0] * size, *of_each
        else:
            axes.append((size, *of_each))
    extent, *found = zip(*(axes or [(1, *(0 for _ in steps))]), strict=True)
    return extent, found


def _bind(layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], _weights: Arrays) -> list[Call]:
    given, result = layer.node.attributes, layer.writes[0][1].shape
    first, steps = _read(layer)
    images = [math.prod(tensor.shape) for tensor in layer.reads]
    extent, steps = joined((layer.batch, *result), [(n, *each) for n, each in zip(images, steps, strict=True)])
    elements = layer.batch * math.prod(result)
    padded = [(*numbers, *[0] * (MOST_AXES - len(extent))) for numbers in (extent, *steps)]
    sizes = record(
        ELEMENTWISE,
        elements=elements,
        first=first,
        alpha=given.get("alpha", 0),
        beta=given.get("beta", 0),
        **dict(zip(("extent", "a", "b"), padded, strict=False)),
    )
    function = "copy" if layer.node.op in COPIES else layer.node.op
    entry = f"elementwise<of::{function}, {len(extent)}, {CTYPES[layer.reads[0].dtype]}>"
    arguments = inputs[0], inputs[1] if len(inputs) == 2 else None, outputs[0], sizes
    return [call(Kernel(entry, SOURCES, "elementwise.cu", entry), math.ceil(elements / BLOCK), BLOCK, arguments)]


TACTICS = (Tactic("elementwise", (*UNARY, *BINARY, *COPIES), refuses_channels_last, lambda _layer: {}, _bind),)
