"""Batch normalisation by batch_norm.cu: inference, the forward pass of training, and its folding into a convolution.

Source: Ioffe and Szegedy, "Batch normalization", 2015, arXiv 1502.03167. As cuDNN's "spatial" mode: statistics of each
channel over images and pixels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernels.convolution.geometry import check_layout
from kernels.convolution.queued import Queued
from kernels.convolution.results import check_inputs, instance, result, vector
from warplab import cp
from warplab.bench.device_arguments import check_array

FILE = "batch_norm.cu"
LANES, COPIES, PIXELS = 8, 32, 4  # as in the kernels
BLOCK = LANES * COPIES
MOST_PARTIAL = 4 * 132  # blocks of the sums
EPSILON = 1e-5
_EXTENT = np.dtype([("n", np.int32), ("c", np.int32), ("pixels", np.int32)])


def fold(
    w: Any, bias: Any, gamma: Any, beta: Any, mean: Any, variance: Any, epsilon: float = EPSILON
) -> tuple[Any, Any]:
    """Filters and bias of the convolution that does both: with y = conv(x, w) + bias, conv(x, w') + b' is its

    γ · (y − mean) / √(variance + ε) + β, up to rounding: w' = w · γ / √(variance + ε), filter by filter, and
    b' = (bias − mean) · γ / √(variance + ε) + β. `w`: of shape (K, ...), float16 or float32, on the host or the device;
    `bias`: of shape (K,), or None for zeros; the others of shape (K,). Return w' of w's type and b', float32.
    ValueError for other shapes.
    """
    for name, array in (("bias", bias), ("gamma", gamma), ("beta", beta), ("mean", mean), ("variance", variance)):
        if array is not None and tuple(array.shape) != (w.shape[0],):
            raise ValueError(
                f"{name} has shape {tuple(array.shape)}; with {w.shape[0]} filters it must be {w.shape[:1]}"
            )
    factor = gamma.astype(np.float32) / (variance.astype(np.float32) + np.float32(epsilon)) ** np.float32(0.5)
    folded = w.astype(np.float32) * factor.reshape(-1, *(1,) * (len(w.shape) - 1))
    start = -mean if bias is None else bias - mean
    return folded.astype(w.dtype), (start * factor + beta).astype(np.float32)


def inference(
    x: Any,
    gamma: Any,
    beta: Any,
    mean: Any,
    variance: Any,
    epsilon: float = EPSILON,
    *,
    relu: bool = False,
    layout: str = "NCHW",
    out: Any = None,
) -> Any:
    """γ · (x − mean) / √(variance + ε) + β, then ReLU if wanted; return it before the kernel has finished.

    `x`: device array, C-contiguous, float16 or float32, of shape (N, C, H, W), or (N, H, W, C) for the layout "NHWC".
    `gamma`, `beta`, `mean`, `variance`: device arrays, float32, of shape (C,). `out`: of x's shape and type; None
    allocates it. Computed in float32, rounded once.
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    dtype = check_inputs(x=x)
    extent = extent_of(x, layout)
    for name, array in (("gamma", gamma), ("beta", beta), ("mean", mean), ("variance", variance)):
        check_array(name, array, (int(extent["c"]),))
    out = result(out, tuple(x.shape), dtype, x=x)
    queued_apply((x, mean, variance, gamma, beta, out), extent, layout, epsilon, relu).launch()
    return out


def training(
    x: Any,
    gamma: Any,
    beta: Any,
    epsilon: float = EPSILON,
    *,
    relu: bool = False,
    layout: str = "NCHW",
    out: Any = None,
) -> tuple[Any, Any, Any]:
    """The forward pass of training: y, and the batch's mean and variance of each channel, float32, of shape (C,).

    The variance is the mean square deviation, divided by the count and not the count less one; frameworks multiply it
    by count / (count − 1) for the running average. Otherwise like `inference`.
    """
    dtype = check_inputs(x=x)
    extent = extent_of(x, layout)
    for name, array in (("gamma", gamma), ("beta", beta)):
        check_array(name, array, (int(extent["c"]),))
    out = result(out, tuple(x.shape), dtype, x=x)
    blocks, c = _blocks(x, extent, layout), int(extent["c"])
    mean, variance = (cp.empty(c, np.float32) for _ in range(2))
    partial = cp.empty((2, blocks, c), np.float32)
    queued_sums(x, partial, extent, layout, blocks).launch()
    queued_finish((x, partial, mean, variance), extent, layout, blocks).launch()
    queued_apply((x, mean, variance, gamma, beta, out), extent, layout, epsilon, relu).launch()
    return out, mean, variance


def extent_of(x: Any, layout: str) -> Any:
    """Images, channels and pixels of x, as the kernels take them."""
    check_layout(layout)
    if len(x.shape) != 4 or 0 in x.shape:
        raise ValueError(f"x has shape {tuple(x.shape)}; it must have the four axes {layout}, none of length 0")
    n, c, h, w = (x.shape[i] for i in ((0, 1, 2, 3) if layout == "NCHW" else (0, 3, 1, 2)))
    return np.array([(n, c, h * w)], _EXTENT)[0]


def _vector(extent: Any, layout: str, *arrays: Any) -> int:
    return vector(arrays[0].dtype, int(extent["c"] if layout == "NHWC" else extent["pixels"]), *arrays)


def _chunks(c: int, layout: str, vec: int) -> int:
    """Blocks along the channels."""
    return math.ceil(c / (LANES * vec)) if layout == "NHWC" else c


def _blocks(x: Any, extent: Any, layout: str) -> int:
    """Blocks along the images and pixels: as many as leave each thread some elements, so many partial sums."""
    count, c = int(extent["n"]) * int(extent["pixels"]), int(extent["c"])
    copies = COPIES if layout == "NHWC" else BLOCK
    return max(1, min(count // (4 * copies), math.ceil(MOST_PARTIAL / _chunks(c, layout, 16 // x.dtype.itemsize))))


def queued_sums(x: Any, partial: Any, extent: Any, layout: str, blocks: int) -> Queued:
    """The launch of batch_norm_sums; `partial`: of shape (2, blocks, C)."""
    vec = _vector(extent, layout, x)
    entry = instance("batch_norm_sums", x.dtype, layout == "NHWC", vec)
    grid = _chunks(int(extent["c"]), layout, vec) * blocks
    return Queued(FILE, entry, grid, BLOCK, (x, partial, extent, np.int32(blocks)))


def queued_finish(arrays: tuple, extent: Any, layout: str, blocks: int) -> Queued:
    """The launch of batch_norm_finish; `arrays`: x, partial, mean, variance."""
    entry = instance("batch_norm_finish", arrays[0].dtype, layout == "NHWC")
    grid = math.ceil(int(extent["c"]) / 32)
    return Queued(FILE, entry, grid, (32, 32), (*arrays, extent, np.int32(blocks)))


def queued_apply(arrays: tuple, extent: Any, layout: str, epsilon: float, relu: bool) -> Queued:
    """The launch of batch_norm_apply; `arrays`: x, mean, variance, gamma, beta, y."""
    x, *_, y = arrays
    vec = _vector(extent, layout, x, y)
    if layout == "NHWC":
        pixels = int(extent["n"]) * int(extent["pixels"])
        grid = _chunks(int(extent["c"]), layout, vec) * math.ceil(pixels / (COPIES * PIXELS))
    else:
        grid = math.ceil(x.size / vec / BLOCK)
    entry = instance("batch_norm_apply", x.dtype, layout == "NHWC", vec)
    return Queued(FILE, entry, grid, BLOCK, (*arrays, extent, np.float32(epsilon), np.int32(relu)))
