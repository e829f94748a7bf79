"""`forward`, `backward_data` and `backward_filter`: the passes of a convolution by any step, with arguments checked."""

import math
from typing import Any

import numpy as np

from kernels.convolution import ladder
from kernels.convolution.common.queued import address
from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution, Pair, check_layout, of_arrays
from warpcourse.bench.device_arguments import check_apart, check_array
from warplab import cp

TYPES = ("float32", "float16")
MOST_ELEMENTS = 2**31 - 2**12  # of an array: kernels count with 32 bits, also the threads beyond the last element
MOST_PIXELS = 2**30  # of a padded image's height and width


def forward(
    x: Any,
    w: Any,
    bias: Any = None,
    relu: bool = False,
    *,
    padding: int | Pair = 0,
    stride: int | Pair = 1,
    dilation: int | Pair = 1,
    groups: int = 1,
    layout: str = "NCHW",
    step: str | int = "auto",
    out: Any = None,
) -> Any:
    """Convolve `x` with the filters `w`; return the result at once, before the kernels have finished.

    `x`: device array, C-contiguous, float32 or float16, of shape (N, C, H, W), or (N, H, W, C) for the layout "NHWC".
    `w`: likewise, of x's type and shape (K, C / groups, R, S), or (K, R, S, C / groups). `bias`: likewise, float32, of
    shape (K,), or None. `relu`: whether negative results become 0. `out`: likewise, of x's type and the shape
    (N, K, P, Q), or (N, P, Q, K), without overlap with the others; None allocates it. `padding`, `stride`, `dilation`:
    whole numbers for both axes, or pairs for height and width. `step`: a name or number in `ladder.FORWARD`, or "auto"
    for the fastest that can; `ladder.planned` says where that may take three times as long as cuDNN.
    Sums are float32; bias and ReLU come before the one rounding to float16. ReLU of NaN is NaN. Like frameworks and
    cuDNN it does not turn the filter round ("cross-correlation").
    Raise TypeError for arrays in host memory, RuntimeError where the GPU lacks a step's instructions, ValueError for
    every other argument that does not fit.
    """
    _check_inputs(layout, x=x, w=w)
    conv = of_arrays(x, w, layout, padding=padding, stride=stride, dilation=dilation, groups=groups)
    if bias is not None:
        check_array("bias", bias, (conv.k,))
    inputs = {"x": x, "w": w} | ({} if bias is None else {"bias": bias})
    out = _output(out, conv.y_shape(layout), x.dtype, inputs)
    chosen = _step(step, "forward", conv, layout, x=x, w=w, out=out)
    chosen.launch(x, w, out, conv, bias, bool(relu))
    return out


def backward_data(
    dy: Any,
    w: Any,
    x_shape: tuple[int, ...],
    *,
    padding: int | Pair = 0,
    stride: int | Pair = 1,
    dilation: int | Pair = 1,
    groups: int = 1,
    layout: str = "NCHW",
    step: str | int = "auto",
    out: Any = None,
) -> Any:
    """Return the gradient of x, of shape `x_shape`, given the gradient `dy` of y; otherwise like `forward`.

    `x_shape` is needed because with a stride several heights and widths of x give the same y.
    """
    _check_inputs(layout, dy=dy, w=w)
    conv = _of_shapes(x_shape, w.shape, layout, padding, stride, dilation, groups)
    check_array("dy", dy, conv.y_shape(layout), dtype=dy.dtype)
    out = _output(out, conv.x_shape(layout), dy.dtype, {"dy": dy, "w": w})
    chosen = _step(step, "backward_data", conv, layout, dy=dy, w=w, out=out)
    chosen.launch(dy, w, out, conv)
    return out


def backward_filter(
    x: Any,
    dy: Any,
    w_shape: tuple[int, ...],
    *,
    padding: int | Pair = 0,
    stride: int | Pair = 1,
    dilation: int | Pair = 1,
    groups: int = 1,
    layout: str = "NCHW",
    step: str | int = "auto",
    out: Any = None,
) -> Any:
    """Return the gradient of w, of shape `w_shape`, given x and the gradient `dy` of y; otherwise like `forward`."""
    _check_inputs(layout, x=x, dy=dy)
    conv = _of_shapes(x.shape, w_shape, layout, padding, stride, dilation, groups)
    check_array("dy", dy, conv.y_shape(layout), dtype=dy.dtype)
    out = _output(out, conv.w_shape(layout), x.dtype, {"x": x, "dy": dy})
    chosen = _step(step, "backward_filter", conv, layout, x=x, dy=dy, out=out)
    chosen.launch(x, dy, out, conv)
    return out


class _Shape:
    """An array's shape without the array."""

    def __init__(self, name: str, shape: Any) -> None:
        if not isinstance(shape, tuple | list) or not all(isinstance(length, int | np.integer) for length in shape):
            raise ValueError(f"{name} is {shape!r}; it must be a tuple of whole numbers")
        self.shape = tuple(map(int, shape))


def _of_shapes(
    x_shape: Any, w_shape: Any, layout: str, padding: Any, stride: Any, dilation: Any, groups: int
) -> Convolution:
    x, w = _Shape("x_shape", x_shape), _Shape("w_shape", w_shape)
    return of_arrays(x, w, layout, padding=padding, stride=stride, dilation=dilation, groups=groups)


def _check_inputs(layout: str, **arrays: Any) -> None:
    """Raise unless the two arrays are on the device, without gaps, and of one type that kernels take."""
    check_layout(layout)
    for name, array in arrays.items():
        check_array(name, array, dtype=TYPES)
    (first, a), (second, b) = arrays.items()
    if a.dtype != b.dtype:
        raise ValueError(f"{first} is {a.dtype} and {second} {b.dtype}; both must be of one type: convert one")


def _output(out: Any, shape: tuple[int, ...], dtype: Any, inputs: dict[str, Any]) -> Any:
    """Return `out` if it can take the result, a new array if it is None."""
    if math.prod(shape) > MOST_ELEMENTS:
        raise ValueError(f"the result, of shape {shape}, has more than {MOST_ELEMENTS:,} elements; take fewer images")
    if out is None:
        return cp.empty(shape, dtype)
    check_array("out", out, shape, dtype=dtype)
    for name, array in inputs.items():
        check_apart(name, array, out)
    return out


def _step(name: str | int, of: str, conv: Convolution, layout: str, **arrays: Any) -> Any:
    """Return the step to take. Raise if it cannot compute `conv` here, or on these arrays."""
    _check_sizes(conv, arrays)
    dtype = arrays["out"].dtype
    if name == "auto":
        return ladder.fastest(conv, layout, dtype, of, address(*arrays.values()))
    chosen: Step = ladder.step(name, of)
    if refusal := chosen.refuses(conv, layout, dtype):
        raise ValueError(refusal)
    if missing := chosen.missing():
        raise RuntimeError(missing)
    for argument, array in arrays.items():
        check_array(argument, array, dtype=array.dtype, alignment=chosen.alignment)
    return chosen


def _check_sizes(conv: Convolution, arrays: dict[str, Any]) -> None:
    """Raise ValueError for sizes that kernels cannot count with 32 bits."""
    for name, array in arrays.items():
        if math.prod(array.shape) > MOST_ELEMENTS:
            raise ValueError(f"{name} has more than {MOST_ELEMENTS:,} elements; take fewer images at a time")
    for name in ("room", "stride"):
        if max(getattr(conv, name)) > MOST_PIXELS:
            what = "the padded image is" if name == "room" else "the stride is"
            raise ValueError(f"{what} {getattr(conv, name)}; the kernels count up to {MOST_PIXELS:,}")
