"""Launches of lab 06's kernels whose counters are compared with Nsight Compute's (`make compare-ncu`): all that the
simulator runs.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from kernels.convolution.beside import depthwise, recurrent, winograd
from kernels.convolution.common.queued import Queued
from kernels.convolution.common.sources import sizes
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.steps import direct, gemm_backward, gemm_steps, mma_backward, mma_step
from warpcourse.bench.compared_launches import EFFICIENCY, Difference, Launch
from warpcourse.bench.copy_differences import DURING_COPIES, NOT_COUNTED, PREDICATED, PREDICATED_LARGE, ZERO_FILL

# Whole tiles; padding, tails and a stride; dilation and groups.
WHOLE = Convolution(2, 16, 8, 8, 64, 3, 3, (1, 1))
TAILS = Convolution(1, 5, 9, 7, 10, 3, 3, (1, 2), (2, 1))
GROUPS = Convolution(2, 16, 7, 6, 20, 3, 2, (2, 1), (1, 1), (2, 1), groups=2)
CASES = {"whole tiles": WHOLE, "tails and a stride": TAILS, "dilation and groups": GROUPS}
WINOGRAD = {"whole tiles": WHOLE, "odd sizes": Convolution(1, 5, 9, 7, 10, 3, 3, (1, 1))}
COPIES = (NOT_COUNTED, PREDICATED_LARGE, PREDICATED, ZERO_FILL, *DURING_COPIES)
PREDICATES = Difference(
    EFFICIENCY,
    0.04,
    "What depends on whether a tap lies in the image carries a predicate in machine code, where PTX branches around "
    "it, and is not the same share of all instructions.",
)
LAYOUTS = {"float16": "NHWC", "float32": "NCHW"}
# Whole tiles; tails, stride 2 and channels that fill no vector; what only the kernels for anything take.
DEPTHWISE = {
    "whole tiles": Convolution(2, 64, 14, 16, 64, 3, 3, (1, 1), groups=64),
    "stride 2 and tails": Convolution(1, 20, 13, 11, 20, 3, 3, (1, 1), (2, 2), groups=20),
    "dilation": Convolution(1, 6, 9, 10, 6, 3, 2, (1, 1), (1, 2), (2, 1), groups=6),
}
BESIDE = {  # differences of launches whose name begins so
    "depthwise": Difference(EFFICIENCY, 0.12, PREDICATES.reason),
    "depthwise_backward_filter, float16, whole tiles": Difference(
        "local_", 1.0, "ptxas puts 8 bytes of each thread into local memory, so that a block more fits."
    ),
}
RELU = np.int32(1)


def _random(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(dtype)


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _forward(what: str, conv: Convolution) -> list[Launch]:
    """Return steps 1 to 3, with bias and ReLU."""
    numba, written = direct.FORWARD
    im2col, implicit = gemm_steps.FORWARD
    x, w, bias, y = (_random(conv.x_shape()), _random(conv.w_shape()), _random((conv.k,)), _zeros(*conv.y_shape()))
    columns, g = _zeros(conv.c * conv.r * conv.s * conv.gemm[0]), sizes(conv)
    pairs = conv.padding, conv.stride, conv.dilation
    blocks, threads = gemm_steps.grid(conv), gemm_steps.THREADS
    to_columns, product = (functools.partial(_one, im2col.functions, i) for i in range(2))
    return [
        Launch(f"numba_direct, {what}", numba.function, numba.grid(conv), direct.BLOCK, (x, w, bias, y, *pairs, RELU)),
        Launch(
            f"direct, {what}",
            written.function,
            written.grid(conv),
            direct.BLOCK,
            (x, w, bias, y, g, RELU),
            differences=(PREDICATES,),
        ),
        Launch(f"im2col, {what}", to_columns, im2col.im2col_grid(conv), threads, (x, columns, g)),
        Launch(f"im2col_product, {what}", product, blocks, threads, (_random(columns.shape), w, bias, y, g, RELU)),
        Launch(f"implicit_gemm, {what}", implicit.function, blocks, threads, (x, w, bias, y, g, RELU)),
    ]


def _one(functions: Any, which: Any) -> Any:
    return functions()[which]


def _mma(what: str, conv: Convolution) -> list[Launch]:
    """Step 4, whole tiles in two sizes; without vectors where the channels allow none."""
    x, w = (_random(shape, np.float16) for shape in (conv.x_shape("NHWC"), conv.w_shape("NHWC")))
    arguments = x, w, _random((conv.k,)), np.zeros(conv.y_shape("NHWC"), np.float16), sizes(conv), RELU
    vectors = conv.c // conv.groups % 8 == 0
    return [
        Launch(
            f"mma_nhwc {chosen.bm} × {chosen.bn}, {what}",
            functools.partial(mma_step.function, chosen, vectors),
            chosen.grid(conv),
            chosen.threads,
            arguments,
            chosen.shared_bytes,
            differences=COPIES if vectors else (PREDICATES,),
        )
        for chosen in ((mma_step.FLAT, mma_step.SMALL) if conv == WHOLE else (mma_step.SMALL,))
    ]


def _winograd(what: str, conv: Convolution) -> list[Launch]:
    step, g = winograd.FORWARD[0], sizes(conv)
    u, v, m = (_random((count,)) for count in winograd.elements(conv))
    arguments = {
        "filters": (_random(conv.w_shape()), np.zeros_like(u), g),
        "inputs": (_random(conv.x_shape()), np.zeros_like(v), g),
        "products": (u, v, np.zeros_like(m), g),
        "outputs": (m, _random((conv.k,)), _zeros(*conv.y_shape()), g, RELU),
    }
    return [
        Launch(
            f"winograd_{name}, {what}",
            functools.partial(_one, step.functions, name),
            winograd.grids(conv)[name],
            winograd.THREADS,
            arguments[name],
        )
        for name in winograd.KERNELS
    ]


def _backward(what: str, conv: Convolution) -> list[Launch]:
    (data,), (of_filters,) = gemm_backward.BACKWARD_DATA, gemm_backward.BACKWARD_FILTER
    x, w, dy, g = _random(conv.x_shape()), _random(conv.w_shape()), _random(conv.y_shape()), sizes(conv)
    dw, count, splits, length = _zeros(*conv.w_shape()), math.prod(conv.w_shape()), 2, math.ceil(conv.gemm[0] / 2)
    product, total = (functools.partial(_one, of_filters.functions, i) for i in range(2))
    threads = gemm_backward.THREADS
    return [
        Launch(
            f"backward_data, {what}",
            functools.partial(data.function, conv),
            data.grid(conv),
            threads,
            (dy, w, _zeros(*x.shape), g),
        ),
        Launch(
            f"backward_filter, {what}",
            product,
            (of_filters.grid(conv)[0], splits),
            threads,
            (x, dy, _zeros(splits * count), g, np.int32(length)),
        ),
        Launch(
            f"backward_filter_sum, {what}",
            total,
            math.ceil(count / threads),
            threads,
            (_random((splits * count,)), dw, np.int32(count), np.int32(splits)),
        ),
    ]


def _mma_backward(what: str, conv: Convolution) -> list[Launch]:
    (data,), (of_filters,) = mma_backward.BACKWARD_DATA, mma_backward.BACKWARD_FILTER
    shapes = conv.x_shape("NHWC"), conv.w_shape("NHWC"), conv.y_shape("NHWC")
    x, w, dy = (_random(shape, np.float16) for shape in shapes)
    chosen, g, count, splits = mma_step.SMALL, sizes(conv), math.prod(conv.w_shape()), 2
    length = math.ceil(conv.gemm[0] / splits / mma_step.DEPTH) * mma_step.DEPTH
    vectors = conv.c // conv.groups % 8 == conv.k // conv.groups % 8 == 0
    differences = COPIES if vectors else (PREDICATES,)
    return [
        Launch(
            f"mma_backward_data, {what}",
            functools.partial(mma_backward.function, "data", chosen, vectors, conv.stride == (1, 1)),
            data.grid(conv, chosen),
            chosen.threads,
            (dy, w, np.zeros_like(x), g),
            chosen.shared_bytes,
            differences=differences,
        ),
        Launch(
            f"mma_backward_filter, {what}",
            functools.partial(mma_backward.function, "filter", chosen, vectors),
            (of_filters.grid(conv)[0], math.ceil(conv.gemm[0] / length)),
            chosen.threads,
            (x, dy, _zeros(splits * count), g, np.int32(length)),
            chosen.shared_bytes,
            differences=differences,
        ),
        Launch(
            f"mma_backward_filter_sum, {what}",
            of_filters.sum_function,
            math.ceil(count / mma_backward.SUM_THREADS),
            mma_backward.SUM_THREADS,
            (_random((splits * count,)), np.zeros_like(w), np.int32(count), np.int32(splits)),
        ),
    ]


def _empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.full(shape, np.nan, dtype)


def _launch(name: str, queued: Queued) -> Launch:
    differences = tuple(found for start, found in BESIDE.items() if name.startswith(start))
    return Launch(name, queued.function, queued.grid, queued.block, queued.arguments, differences=differences)


def _depthwise(what: str, conv: Convolution, dtype: str) -> list[Launch]:
    layout, name = LAYOUTS[dtype], f"{dtype}, {what}"
    x, w, dy = (_random(shape(layout), dtype) for shape in (conv.x_shape, conv.w_shape, conv.y_shape))
    arrays = x, w, _random((conv.k,)), _empty(dy.shape, dtype)
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


def _lstm(dtype: str) -> Launch:
    n, hidden = 5, 24
    of_x, of_h = (_random((n, 4 * hidden), dtype) for _ in range(2))
    bias, c, h = _random((4 * hidden,)), _random((n, hidden), "float32"), _empty((n, hidden), dtype)
    return _launch(f"lstm_cell, {dtype}", recurrent.cell(of_x, of_h, bias, c, h))


def _launches() -> list[Launch]:
    found = []
    for what, conv in CASES.items():
        found += _forward(what, conv) + _mma(what, conv) + _backward(what, conv) + _mma_backward(what, conv)
    for what, conv in WINOGRAD.items():
        found += _winograd(what, conv)
    return found


def _beside() -> list[Launch]:
    """Depthwise convolutions and LSTM cells. What float32 in NCHW shares with float16 in NHWC is there once."""
    found = []
    for what, conv in DEPTHWISE.items():
        found += _depthwise(what, conv, "float16")
    return [*found, *_depthwise("whole tiles", DEPTHWISE["whole tiles"], "float32"), _lstm("float16")]


OF_STEPS, BESIDE_STEPS = _launches(), _beside()
LAUNCHES = [*OF_STEPS, *BESIDE_STEPS]
