"""Random operands of a pass on the GPU, and how far a result is from float64, on a sample of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernels.convolution.definition.geometry import Convolution
from warpcourse.bench.timing import cupy_on_gpu, sets_beyond_l2

SAMPLED_FILTERS = 4  # at either end, of the filters' gradient
Arrays = tuple[Any, ...]


def shapes(conv: Convolution, kind: str, layout: str) -> tuple[tuple[int, ...], ...]:
    """Return shapes of a pass's two inputs and its result: x, w, y; or dy, w, dx; or x, dy, dw."""
    x, w, y = (shape(layout) for shape in (conv.x_shape, conv.w_shape, conv.y_shape))
    return {"forward": (x, w, y), "backward_data": (y, w, x), "backward_filter": (x, y, w)}[kind]


def random_sets(conv: Convolution, kind: str, layout: str, dtype: str, runs: int = 10) -> list[Arrays]:
    """Return sets of operands to take turns with, so that none is found in the L2: two inputs from -1 to 1, and the
    result.

    Results are NaN at first. `runs`: as many sets at most.
    """
    cupy = cupy_on_gpu()
    itemsize = np.dtype(dtype).itemsize
    first, second, result = shapes(conv, kind, layout)

    def random(shape: Sequence[int]) -> Any:
        return cupy.random.uniform(-1, 1, shape, dtype=np.float32).astype(dtype, copy=False)

    count = sets_beyond_l2(conv.bytes(itemsize), runs)
    return [(random(first), random(second), cupy.full(result, np.nan, dtype)) for _ in range(count)]


def random_bias(conv: Convolution, dtype: str) -> Any:
    """Return one number per filter, from -1 to 1."""
    return cupy_on_gpu().random.uniform(-1, 1, conv.k, dtype=np.float32).astype(dtype, copy=False)


def error_of(conv: Convolution, kind: str, layout: str, arrays: Arrays, **after: Any) -> Callable[[Any], float]:
    """Return a function of the result: ‖result − exact‖ / ‖exact‖ over a sample, exact in float64; NaN where one is
    NaN.

    `arrays`: the inputs, of CuPy or NumPy. The sample: the first and the last image, or of the filters' gradient
    the first and last filters. `after`: `bias`, of shape (K,), and `relu`, of the forward pass.
    """
    part, exact = _sample(conv, kind, layout, *arrays[:2], **after)
    norm = float((exact * exact).sum()) ** 0.5

    def error(result: Any) -> float:
        difference = result[part].astype(np.float64) - exact
        found = float((difference * difference).sum()) ** 0.5 / norm
        return found if math.isfinite(float(result.sum(dtype=np.float64))) else math.nan

    return error


def _sample(
    conv: Convolution, kind: str, layout: str, first: Any, second: Any, bias: Any = None, relu: bool = False
) -> tuple[list[int], Any]:
    """Return indices along the result's first axis, and its elements there in float64."""
    if kind == "backward_filter":
        part = _ends(conv.k, SAMPLED_FILTERS)
        exact = _filter_gradient(conv, _nhwc(first, layout), _nhwc(second, layout), part)
    else:
        part = _ends(conv.n, 1)
        function = _forward if kind == "forward" else _data_gradient
        exact = function(conv, _nhwc(first[part], layout), _nhwc(second, layout))
        if bias is not None:
            exact = exact + bias.astype(np.float64)
        if relu:
            exact = exact * (exact > 0)
    return part, exact if layout == "NHWC" else exact.transpose(0, 3, 1, 2)


def _ends(count: int, most: int) -> list[int]:
    return sorted({*range(min(most, count)), *range(max(0, count - most), count)})


def _nhwc(array: Any, layout: str) -> Any:
    return array if layout == "NHWC" else array.transpose(0, 2, 3, 1)


def _padded(conv: Convolution, x: Any) -> Any:
    """x in float64, with its zeros around, channels split by group."""
    (top, left), (height, width) = conv.padding, conv.room
    result = _zeros(x, (x.shape[0], height, width, conv.groups, conv.c // conv.groups))
    result[:, top : top + conv.h, left : left + conv.w] = x.reshape(*x.shape[:3], conv.groups, -1)
    return result


def _zeros(like: Any, shape: Sequence[int]) -> Any:
    """Of NumPy or CuPy, as `like` is."""
    if isinstance(like, np.ndarray):
        return np.zeros(shape)
    import cupy

    return cupy.zeros(shape)


def _by_group(array: Any) -> Any:
    """(images, rows, columns, groups, channels) as (groups, pixels, channels)."""
    return array.transpose(3, 0, 1, 2, 4).reshape(array.shape[3], -1, array.shape[4])


def _window(conv: Convolution, r: int, s: int) -> tuple:
    starts, counts = (r, s), (conv.p, conv.q)
    rows, columns = (
        slice(start * dilation, start * dilation + stride * (count - 1) + 1, stride)
        for start, dilation, stride, count in zip(starts, conv.dilation, conv.stride, counts, strict=True)
    )
    return slice(None), rows, columns


def _filters(conv: Convolution, w: Any, r: int, s: int) -> Any:
    """Return (groups, filters of a group, channels of a group)."""
    return w[:, r, s].astype(np.float64).reshape(conv.groups, conv.k // conv.groups, -1)


def _forward(conv: Convolution, x: Any, w: Any) -> Any:
    padded, sums = _padded(conv, x), 0
    for r in range(conv.r):
        for s in range(conv.s):
            sums = sums + _by_group(padded[_window(conv, r, s)]) @ _filters(conv, w, r, s).transpose(0, 2, 1)
    return (
        sums.reshape(conv.groups, -1, conv.p, conv.q, conv.k // conv.groups)
        .transpose(1, 2, 3, 0, 4)
        .reshape(x.shape[0], conv.p, conv.q, conv.k)
    )


def _data_gradient(conv: Convolution, dy: Any, w: Any) -> Any:
    images, (top, left) = dy.shape[0], conv.padding
    grouped = _by_group(dy.astype(np.float64).reshape(images, conv.p, conv.q, conv.groups, -1))
    dx = _zeros(dy, (images, *conv.room, conv.groups, conv.c // conv.groups))
    for r in range(conv.r):
        for s in range(conv.s):
            part = (grouped @ _filters(conv, w, r, s)).reshape(conv.groups, images, conv.p, conv.q, -1)
            dx[_window(conv, r, s)] += part.transpose(1, 2, 3, 0, 4)
    return dx[:, top : top + conv.h, left : left + conv.w].reshape(images, conv.h, conv.w, conv.c)


def _filter_gradient(conv: Convolution, x: Any, dy: Any, filters: Sequence[int]) -> Any:
    padded, per_group = _padded(conv, x), conv.k // conv.groups
    result = _zeros(x, (len(filters), conv.r, conv.s, conv.c // conv.groups))
    for group in sorted({k // per_group for k in filters}):
        rows = [i for i, k in enumerate(filters) if k // per_group == group]
        gradient = dy[..., [filters[i] for i in rows]].astype(np.float64).reshape(-1, len(rows)).T
        for r in range(conv.r):
            for s in range(conv.s):
                window = padded[_window(conv, r, s)][..., group, :]
                result[rows, r, s] = gradient @ window.reshape(gradient.shape[1], -1)
    return result
