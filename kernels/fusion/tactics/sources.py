"""The lab's CUDA C++ as it is compiled, and the structures of sizes that its kernels take by value."""

from typing import Any

import numpy as np

from kernels.fusion.graph.nodes import Slice, Tensor
from kernels.fusion.graph.operators import as_image
from warpcourse.bench.lab_kernels import Sources

MOST_OUTPUTS = 4  # slices that a cbr writes, at most: MOST_OUTPUTS in cbr.cuh
MOST_AXES = 6  # of a tensor with its batch: MOST_AXES in elementwise.cu
CTYPES = {"float32": "float", "float16": "half", "int8": "signed char"}
MOST_ELEMENTS = 2**31 - 1  # of a tensor: kernels number them with 32 bits


SOURCES = Sources("kernels.fusion", own_headers=["."], cuda_headers=True)


def _integers(names: str) -> list[tuple[str, type]]:
    return [(name, np.int32) for name in names.split()]


VIEW = np.dtype(_integers("first image channel row column"))
_EACH = (MOST_OUTPUTS,)
CBR = np.dtype(
    [
        *_integers("pixels h w c r s p q k pad_h pad_w stride_h stride_w dilation_h dilation_w depth relu swish"),
        ("most", np.float32),
        ("outputs", np.int32),
        ("first", np.int32, _EACH),
        ("type", np.int32, _EACH),
        ("per_step", np.float32, _EACH),
        ("x", VIEW),
        ("residual", VIEW),
        ("y", VIEW, _EACH),
    ]
)
POINTWISE = np.dtype(
    [
        *_integers("elements c h w relu"),
        *(("x_scale", np.float32), ("per_step", np.float32)),
        *(("x", VIEW), ("other", VIEW), ("y", VIEW)),
    ]
)
POOL = np.dtype(
    [
        *_integers("elements c h w r s p q pad_h pad_w stride_h stride_w area"),
        ("factor", np.float32),
        ("x", VIEW),
        ("y", VIEW),
    ]
)
_AXES = (MOST_AXES,)
ELEMENTWISE = np.dtype(
    [
        ("elements", np.int32),
        *((name, np.int32, _AXES) for name in ("extent", "a", "b")),
        ("first", np.int32),
        *(("alpha", np.float32), ("beta", np.float32)),
    ]
)
ATTENTION = np.dtype(
    [
        *_integers("heads s t d e mask_image mask_head mask_row mask_column"),
        ("scale", np.float32),
    ]
)
LRN = np.dtype(
    [
        *_integers("elements c h w before after"),
        *((name, np.float32) for name in ("factor", "beta", "bias", "x_scale", "per_step")),
        *(("x", VIEW), ("y", VIEW)),
    ]
)


def view(tensor: Tensor, part: Slice | None = None, per_element: int = 1) -> tuple[int, ...]:
    """Return `View` of view.cuh for a tensor, or for a slice of its channels.

    `per_element`: channels that the kernel takes as one element: 4 where it reads INT8 by words.
    """
    c, h, w = as_image(tensor.shape)
    start = part.start if part else 0
    if tensor.layout == "NHWC" or tensor.same_in_memory():
        strides = start, c * h * w, per_element, w * c, c
    else:
        strides = start * h * w, c * h * w, h * w, w, 1
    return tuple(number // per_element for number in strides)


def record(dtype: np.dtype, **fields: Any) -> np.ndarray:
    """Return a structure as CuPy passes it by value: an array of one element. Fields that are not given are 0."""
    made = np.zeros(1, dtype)
    for name, value in fields.items():
        made[name][0] = value
    return made
