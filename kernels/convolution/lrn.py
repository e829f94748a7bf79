"""Local response normalisation across channels, AlexNet's, forward and backward, by lrn.cu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernels.convolution.geometry import Convolution, check_layout
from kernels.convolution.queued import Queued
from kernels.convolution.results import check_inputs, instance, result
from kernels.convolution.sources import sizes

FILE = "lrn.cu"
BLOCK = 256  # threads, as in the kernels
# Krizhevsky, Sutskever and Hinton, "ImageNet classification with deep convolutional neural networks", 2012, 3.3.
SIZE, ALPHA, BETA, K = 5, 1e-4, 0.75, 2.0


def lrn(
    x: Any,
    size: int = SIZE,
    alpha: float = ALPHA,
    beta: float = BETA,
    k: float = K,
    *,
    layout: str = "NCHW",
    scale: Any = None,
    out: Any = None,
) -> Any:
    """x / (k + alpha · Σ x²)^beta, the sum over `size` channels around; return it before the kernel has finished.

    The formula and the defaults are AlexNet's. cuDNN and PyTorch divide alpha by `size`: give them alpha · size.
    `x`: device array, C-contiguous, float16 or float32, of shape (N, C, H, W), or (N, H, W, C) for the layout "NHWC".
    `size`: odd. `scale`: device array, float32, of x's shape, which gets the sums k + alpha · Σ x² for `lrn_backward`.
    `out`: of x's shape and type; None allocates it.
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    dtype = check_inputs(x=x)
    conv = _shape(x, layout)
    half = _half(size, k, alpha)
    out = result(out, tuple(x.shape), dtype, x=x)
    if scale is not None:
        scale = result(scale, tuple(x.shape), np.float32, "scale", x=x, out=out)
    queued("lrn", dtype, layout, conv, (x, out, scale), half, alpha, beta, k).launch()
    return out


def lrn_backward(
    x: Any,
    y: Any,
    dy: Any,
    scale: Any,
    size: int = SIZE,
    alpha: float = ALPHA,
    beta: float = BETA,
    *,
    layout: str = "NCHW",
    out: Any = None,
) -> Any:
    """The gradient of x, given y, its gradient, and `scale` as `lrn` filled it; otherwise like `lrn`."""
    dtype = check_inputs(x=x, y=y, dy=dy)
    conv = _shape(x, layout)
    half = _half(size, 1.0, alpha)
    for name, array, held in (("y", y, dtype), ("dy", dy, dtype), ("scale", scale, np.float32)):
        result(array, tuple(x.shape), held, name)
    out = result(out, tuple(x.shape), dtype, x=x, y=y, dy=dy, scale=scale)
    queued("lrn_backward", dtype, layout, conv, (x, y, dy, scale, out), half, alpha, beta).launch()
    return out


def _shape(x: Any, layout: str) -> Convolution:
    """The sizes of x, as those of a convolution of single pixels."""
    check_layout(layout)
    if len(x.shape) != 4:
        raise ValueError(f"x has shape {tuple(x.shape)}; it must have the four axes {layout}")
    n, c, h, w = (int(x.shape[i]) for i in ((0, 1, 2, 3) if layout == "NCHW" else (0, 3, 1, 2)))
    return Convolution(n, c, h, w, c, 1, 1, groups=c)


def _half(size: int, k: float, alpha: float) -> int:
    if not isinstance(size, int) or size < 1 or size % 2 == 0:
        raise ValueError(f"size is {size!r}; it must be an odd whole number: a channel and as many on either side")
    if k <= 0 or alpha < 0:
        raise ValueError(f"k is {k} and alpha {alpha}; k must be above 0 and alpha at least 0, or sums may be 0")
    return size // 2


def queued(
    kernel: str, dtype: Any, layout: str, conv: Convolution, arrays: tuple, half: int, *numbers: float
) -> Queued:
    """The launch of "lrn" or "lrn_backward"; `numbers`: alpha, beta and, of "lrn", k."""
    arguments = (*arrays, sizes(conv)[0], np.int32(half), *map(np.float32, numbers))
    entry = instance(kernel, dtype, layout == "NHWC")
    return Queued(FILE, entry, math.ceil(math.prod(conv.x_shape()) / BLOCK), BLOCK, arguments)
