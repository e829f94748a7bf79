"""Launches of depthwise convolutions, of the layers beside the convolution and of LSTM cells for `make compare-ncu`.

`launches` joins them to those of the steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.convolution import batch_norm, depthwise, dropout, lrn, pooling, recurrent, softmax
from kernels.convolution.geometry import Convolution
from kernels.convolution.queued import Queued
from warplab.bench.compared_launches import EFFICIENCY, Difference, Launch

LAYOUTS = {"float16": "NHWC", "float32": "NCHW"}
# Whole tiles; tails, stride 2 and channels that fill no vector; what only the kernels for anything take.
DEPTHWISE = {
    "whole tiles": Convolution(2, 64, 14, 16, 64, 3, 3, (1, 1), groups=64),
    "stride 2 and tails": Convolution(1, 20, 13, 11, 20, 3, 3, (1, 1), (2, 2), groups=20),
    "dilation": Convolution(1, 6, 9, 10, 6, 3, 2, (1, 1), (1, 2), (2, 1), groups=6),
}
POOLED = {
    "3 × 3 with stride 2": ((2, 16, 15, 15), 3, 2, 1),
    "2 × 4, odd channels": ((1, 5, 9, 11), (2, 4), (2, 3), (1, 2)),
}

_PREDICATES = (
    "What depends on whether an element lies in the image, or in the row, carries a predicate in machine code, where "
    "PTX branches around it, and is not the same share of all instructions."
)
# By the beginning of the launch's name.
DIFFERENCES = (
    ("depthwise", Difference(EFFICIENCY, 0.12, _PREDICATES)),
    ("pooling", Difference(EFFICIENCY, 0.08, _PREDICATES)),
    ("softmax", Difference(EFFICIENCY, 0.10, _PREDICATES)),
    ("batch_norm", Difference(EFFICIENCY, 0.06, _PREDICATES)),
    (
        "depthwise_backward_filter, float16, whole tiles",
        Difference("local_", 1.0, "ptxas puts 8 bytes of each thread into local memory, so that a block more fits."),
    ),
    (
        "softmax, float16, 7 × 8195",
        Difference("shared_load_wavefronts", 1.0, "ptxas loads the warps' results, which lie side by side, together."),
    ),
)


def _random(shape: Any, dtype: str) -> np.ndarray:
    shape = (shape,) if isinstance(shape, int) else shape
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(dtype)


def _empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.full(shape, np.nan, dtype)


def _launch(name: str, queued: Queued) -> Launch:
    differences = tuple(found for start, found in DIFFERENCES if name.startswith(start))
    return Launch(name, queued.function, queued.grid, queued.block, queued.arguments, differences=differences)


def _depthwise(what: str, conv: Convolution, dtype: str) -> list[Launch]:
    layout, name = LAYOUTS[dtype], f"{dtype}, {what}"
    x, w, dy = (_random(shape(layout), dtype) for shape in (conv.x_shape, conv.w_shape, conv.y_shape))
    arrays = x, w, _random(conv.k, "float32"), _empty(dy.shape, dtype)
    tile = {kind: depthwise.tile(conv, kind, dtype) for kind in ("forward", "backward_data", "backward_filter")}
    forward = depthwise.queued(conv, "forward", dtype, arrays, tile["forward"], depthwise.least(True))
    gradient = dy, w, _empty(x.shape, dtype)
    data = depthwise.queued(conv, "backward_data", dtype, gradient, tile["backward_data"])
    chosen = tile["backward_filter"]
    blocks = depthwise.partial_blocks(conv, dtype, chosen)[1] if chosen else 0
    partial = _random((blocks, conv.c * conv.r * conv.s), "float32")
    filters = depthwise.queued_filter(conv, x, dy, _empty(w.shape, dtype), chosen, partial)
    steps = zip(("depthwise_backward_filter", "depthwise_add_partial"), filters, strict=False)
    return [
        _launch(f"depthwise_forward, {name}", forward),
        _launch(f"depthwise_backward_data, {name}", data),
        *(_launch(f"{step}, {name}", queued) for step, queued in steps),
    ]


def _pooling(what: str, sizes: tuple, window: Any, stride: Any, padding: Any, dtype: str) -> list[Launch]:
    layout, name = LAYOUTS[dtype], f"{dtype}, {what}"
    n, c, h, w = sizes
    x = _random(sizes if layout == "NCHW" else (n, h, w, c), dtype)
    conv = pooling.windows(x.shape, window, stride, padding, layout)
    y, places = _random(conv.y_shape(layout), dtype), np.zeros(conv.y_shape(layout), np.uint8)
    out, back, count = np.zeros_like(y), np.zeros_like(x), np.int32(0)
    kernels = {
        "pooling_max": (x, out, places),
        "pooling_max_backward": (y, places, back),
        "pooling_average": (x, out, count),
        "pooling_average_backward": (y, back, count),
    }
    found = []
    for kernel, given in kernels.items():
        arrays, more = (given[:-1], given[-1:]) if given[-1] is count else (given, ())
        found.append(_launch(f"{kernel}, {name}", pooling.queued(kernel, conv, layout, dtype, arrays, *more)))
    return found


def _softmax(columns: int, dtype: str) -> list[Launch]:
    x, y, dy = (_random((7, columns), dtype) for _ in range(3))
    what = f"{dtype}, 7 × {columns}"
    return [
        _launch(f"softmax, {what}", softmax.queued("softmax", dtype, (x, _empty(x.shape, dtype)))),
        _launch(
            f"softmax_backward, {what}", softmax.queued("softmax_backward", dtype, (y, dy, _empty(x.shape, dtype)))
        ),
    ]


def _norms(dtype: str) -> list[Launch]:
    """LRN, dropout, batch normalisation."""
    layout, shape = LAYOUTS[dtype], (2, 9, 6, 24) if LAYOUTS[dtype] == "NHWC" else (2, 24, 9, 6)
    x, y, dy = (_random(shape, dtype) for _ in range(3))
    scale, out = _random(shape, "float32") + np.float32(3), _empty(shape, dtype)
    conv = Convolution(2, 24, 9, 6, 24, 1, 1, groups=24)
    extent, blocks = batch_norm.extent_of(x, layout), 2
    gamma, beta, mean, variance = (_random(24, "float32") + np.float32(1) for _ in range(4))
    partial, epsilon = _random((2, blocks, 24), "float32"), batch_norm.EPSILON
    statistics = (x, partial, np.zeros_like(mean), np.zeros_like(variance))
    normalised = (x, mean, variance, gamma, beta, out)
    queued = {
        "lrn": lrn.queued("lrn", dtype, layout, conv, (x, out, scale), 2, lrn.ALPHA, lrn.BETA, lrn.K),
        "lrn_backward": lrn.queued("lrn_backward", dtype, layout, conv, (x, y, dy, scale, out), 2, lrn.ALPHA, lrn.BETA),
        "dropout": dropout.queued(x, out, 2017, 1, 2**31, 2.0),
        "batch_norm_sums": batch_norm.queued_sums(x, np.zeros_like(partial), extent, layout, blocks),
        "batch_norm_finish": batch_norm.queued_finish(statistics, extent, layout, blocks),
        "batch_norm_apply": batch_norm.queued_apply(normalised, extent, layout, epsilon, True),
    }
    return [_launch(f"{name}, {dtype}", one) for name, one in queued.items()]


def _lstm(dtype: str) -> Launch:
    n, hidden = 5, 24
    of_x, of_h = (_random((n, 4 * hidden), dtype) for _ in range(2))
    bias, c, h = _random(4 * hidden, "float32"), _random((n, hidden), "float32"), _empty((n, hidden), dtype)
    return _launch(f"lstm_cell, {dtype}", recurrent.cell(of_x, of_h, bias, c, h))


def _launches() -> list[Launch]:
    """What float32 in NCHW shares with float16 in NHWC is there once."""
    found = []
    for what, conv in DEPTHWISE.items():
        found += _depthwise(what, conv, "float16")
    found += _depthwise("whole tiles", DEPTHWISE["whole tiles"], "float32")
    for dtype, (what, windows) in zip(LAYOUTS, POOLED.items(), strict=True):
        found += _pooling(what, *windows, dtype)
    for columns in (1000, 1030, 8195):
        found += _softmax(columns, "float16")
    for dtype in LAYOUTS:
        found += _norms(dtype)
    return [*found, _lstm("float16")]


LAUNCHES = _launches()
