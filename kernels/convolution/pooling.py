"""Pooling: the largest element or the mean of each window, forward and backward, by pooling.cu.

As in cuDNN (cudnnPoolingForward, cudnnPoolingBackward) and PyTorch. A window is like a convolution's: P and Q follow
from the same formula, and padding may be at most the window less one, so that no window is all padding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernels.convolution.geometry import Convolution, Pair, check_layout, pair
from kernels.convolution.queued import Queued
from kernels.convolution.results import check_inputs, instance, result, vector
from kernels.convolution.sources import sizes

FILE = "pooling.cu"
BLOCK = 256  # threads, as in the kernels
MOST_WINDOW = 255  # elements of a window of `maximum`, whose index is a byte
WINDOWS, STRIDES = (2, 3, 7), (1, 2)  # of both axes, that kernels are compiled for


def windows(
    x_shape: tuple[int, ...], window: int | Pair, stride: int | Pair | None, padding: int | Pair, layout: str
) -> Convolution:
    """The windows as the depthwise convolution that has the same; ValueError names what does not fit.

    `stride`: None for the window's height and width.
    """
    check_layout(layout)
    if len(x_shape) != 4:
        raise ValueError(f"x has shape {tuple(x_shape)}; it must have the four axes {layout}")
    n, c, h, w = (x_shape[i] for i in ((0, 1, 2, 3) if layout == "NCHW" else (0, 3, 1, 2)))
    r, s = pair(window, "window")
    pads = pair(padding, "padding")
    if min(r, s) < 1:
        raise ValueError(f"window is {window!r}; it must be two whole numbers, at least 1")
    if pads[0] >= r or pads[1] >= s:
        raise ValueError(
            f"padding is {pads} and the window {(r, s)}; padding must be less than the window, or a window has no "
            "element of the image"
        )
    steps = (r, s) if stride is None else pair(stride, "stride")
    return Convolution(n, c, h, w, c, r, s, pads, steps, groups=c)


def maximum(
    x: Any,
    window: int | Pair,
    stride: int | Pair | None = None,
    padding: int | Pair = 0,
    *,
    layout: str = "NCHW",
    index: Any = None,
    out: Any = None,
) -> Any:
    """The largest element of each window; return it at once, before the kernel has finished.

    `x`: device array, C-contiguous, float16 or float32, of shape (N, C, H, W), or (N, H, W, C) for the layout "NHWC".
    `window`, `stride`, `padding`: whole numbers for both axes, or pairs for height and width; stride None is the
    window. `index`: device array, uint8, of y's shape, which gets the place of each maximum in its window, r · S + s,
    for `maximum_backward`; of equal elements the first, row by row. `out`: of x's type, of shape (N, C, P, Q) or
    (N, P, Q, C); None allocates it. A NaN in a window makes the result NaN.
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    dtype = check_inputs(x=x)
    conv = windows(x.shape, window, stride, padding, layout)
    shape = conv.y_shape(layout)
    out = result(out, shape, dtype, x=x)
    if index is not None:
        if conv.r * conv.s > MOST_WINDOW:
            most = f"{MOST_WINDOW} is the most"
            raise ValueError(f"a window of {conv.r} × {conv.s} has more places than a byte holds; {most}")
        index = result(index, shape, np.uint8, "index", x=x, out=out)
    queued("pooling_max", conv, layout, dtype, (x, out, index)).launch()
    return out


def maximum_backward(
    dy: Any,
    index: Any,
    x_shape: tuple[int, ...],
    window: int | Pair,
    stride: int | Pair | None = None,
    padding: int | Pair = 0,
    *,
    layout: str = "NCHW",
    out: Any = None,
) -> Any:
    """The gradient of x, of shape `x_shape`: each element of dy goes to the place that `index` of `maximum` names.

    `dy`: like y; `index`: uint8, from the forward pass with the same parameters. Otherwise like `maximum`.
    """
    dtype = check_inputs(dy=dy)
    conv = windows(tuple(x_shape), window, stride, padding, layout)
    for name, array, held in (("dy", dy, dtype), ("index", index, np.uint8)):
        result(array, conv.y_shape(layout), held, name)
    out = result(out, conv.x_shape(layout), dtype, dy=dy, index=index)
    queued("pooling_max_backward", conv, layout, dtype, (dy, index, out)).launch()
    return out


def average(
    x: Any,
    window: int | Pair,
    stride: int | Pair | None = None,
    padding: int | Pair = 0,
    *,
    layout: str = "NCHW",
    count_padding: bool = True,
    out: Any = None,
) -> Any:
    """The mean of each window: sums are float32, rounded once.

    `count_padding`: divide by R · S, as if padding were zeros; else by the window's elements inside the image. (cuDNN's
    AVERAGE_COUNT_INCLUDE_PADDING and ..._EXCLUDE_PADDING.) Otherwise like `maximum`.
    """
    dtype = check_inputs(x=x)
    conv = windows(x.shape, window, stride, padding, layout)
    out = result(out, conv.y_shape(layout), dtype, x=x)
    queued("pooling_average", conv, layout, dtype, (x, out), np.int32(count_padding)).launch()
    return out


def average_backward(
    dy: Any,
    x_shape: tuple[int, ...],
    window: int | Pair,
    stride: int | Pair | None = None,
    padding: int | Pair = 0,
    *,
    layout: str = "NCHW",
    count_padding: bool = True,
    out: Any = None,
) -> Any:
    """The gradient of x, of shape `x_shape`: an element gets its share of dy of each window that holds it."""
    dtype = check_inputs(dy=dy)
    conv = windows(tuple(x_shape), window, stride, padding, layout)
    result(dy, conv.y_shape(layout), dtype, "dy")
    out = result(out, conv.x_shape(layout), dtype, dy=dy)
    queued("pooling_average_backward", conv, layout, dtype, (dy, out), np.int32(count_padding)).launch()
    return out


def queued(kernel: str, conv: Convolution, layout: str, dtype: Any, arrays: tuple, *more: Any) -> Queued:
    """The launch of a kernel. `arrays`, and `more`: as it takes them before and after the sizes."""
    nhwc = layout == "NHWC"
    vec = vector(dtype, conv.c, *arrays) if nhwc else 1
    window = conv.r if conv.r == conv.s and conv.r in WINDOWS else 0
    stride = conv.stride[0] if conv.stride[0] == conv.stride[1] and conv.stride[0] in STRIDES else 0
    shape = conv.x_shape() if kernel.endswith("backward") else conv.y_shape()
    grid = math.ceil(math.prod(shape) / vec / BLOCK)
    return Queued(
        FILE, instance(kernel, dtype, nhwc, vec, window, stride), grid, BLOCK, (*arrays, sizes(conv)[0], *more)
    )
