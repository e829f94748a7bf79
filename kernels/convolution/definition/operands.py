"""Random operands of a pass on the GPU, and how far a result is from float64, on a sample of it."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.convolution.definition import reference
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
        return part, _filter_gradient(conv, layout, first, second, part)
    part = _ends(conv.n, 1)
    exact = getattr(reference, kind)(first[part], second, replace(conv, n=len(part)), layout)
    if bias is not None:
        exact = exact + (bias if layout == "NHWC" else bias[:, None, None]).astype(np.float64)
    return part, exact * (exact > 0) if relu else exact


def _ends(count: int, most: int) -> list[int]:
    return sorted({*range(min(most, count)), *range(max(0, count - most), count)})


def _filter_gradient(conv: Convolution, layout: str, x: Any, dy: Any, filters: Sequence[int]) -> Any:
    """Return the gradient of these filters, in rising order: group by group, each a convolution of its own."""
    channels, per_group, found = conv.c // conv.groups, conv.k // conv.groups, []
    for group, members in itertools.groupby(filters, lambda k: k // per_group):
        of_x, of_dy = slice(group * channels, (group + 1) * channels), list(members)
        one = replace(conv, c=channels, k=len(of_dy), groups=1)
        parts = (x[:, of_x], dy[:, of_dy]) if layout == "NCHW" else (x[..., of_x], dy[..., of_dy])
        found.append(reference.backward_filter(*parts, one, layout))
    return np.concatenate(found)
