"""CuPy on the simulator: the names and behaviour that the course uses.

Arrays are in simulated device memory. NumPy computes on them what CuPy's own kernels would, so that results have
CuPy's shapes and dtypes. As in CuPy, nothing moves between host and device unasked, and reductions and single
elements are arrays on the device.
"""

from __future__ import annotations

import sys
from typing import Literal as _Literal

import numpy as np

from warplab.dropin.cupy import cuda, random, testing
from warplab.dropin.cupy._core.core import functions as _array_functions
from warplab.dropin.cupy._core.core import lift, ndarray
from warplab.dropin.cupy._core.core import to_host as _to_host
from warplab.dropin.cupy._core.missing import missing as _missing
from warplab.dropin.cupy._core.raw import RawKernel, RawModule
from warplab.launch.device_arrays import DeviceArray
from warplab.launch.device_arrays import Order as _Order

__all__ = ["RawKernel", "RawModule", "asarray", "asnumpy", "cuda", "ndarray", "random", "testing"]

_SAME = """
    bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 intp dtype
    e inf nan newaxis pi finfo iinfo result_type
"""

_CREATION = "arange eye identity indices linspace logspace tri"

_FUNCTIONS = """
    all allclose amax amin any argmax argmin argsort argwhere array_equal average bincount broadcast_to clip
    concatenate count_nonzero cumprod cumsum diag diagonal diff dot einsum expand_dims flip histogram hstack inner
    isclose max mean median min moveaxis nanmax nanmean nanmin nansum nonzero outer pad percentile prod ptp ravel repeat
    reshape roll round searchsorted sort split squeeze stack std sum swapaxes take tensordot tile trace transpose
    tril triu unique var vdot vstack where
"""

# Ufuncs of NumPy that CuPy 14 does not have.
_NOT_IN_CUPY = ("isnat", "matvec", "spacing", "vecdot", "vecmat")

# From here on names such as `sum` and `any` mean CuPy's functions in this module.
for _name in _SAME.split():
    globals()[_name] = getattr(np, _name)
for _name in _CREATION.split():
    globals()[_name] = lift(getattr(np, _name))
for _name in _FUNCTIONS.split():
    globals()[_name] = lift(getattr(np, _name))
for _name in dir(np):
    if isinstance(getattr(np, _name), np.ufunc) and _name not in _NOT_IN_CUPY:
        globals()[_name] = lift(getattr(np, _name), elementwise=True)


def array(
    obj, dtype=None, copy: bool = True, order: _Literal["K", "A", "C", "F"] = "K", subok: bool = False, ndmin: int = 0
) -> ndarray:
    """Make a new array on the device, from an array of the host or the device, a number or nested lists of numbers."""
    if isinstance(obj, ndarray) and not copy and dtype in (None, obj.dtype) and obj.ndim >= ndmin:
        return obj
    source = obj if isinstance(obj, np.ndarray) else _to_host(obj)
    return ndarray._from_host(np.array(source, dtype, order=order, ndmin=ndmin))


def asarray(a, dtype=None, order=None) -> ndarray:
    """Return `a` on the device, copied unless it is there already in this dtype."""
    if isinstance(a, DeviceArray) and dtype in (None, a.dtype):
        return a if isinstance(a, ndarray) else ndarray._wrap(a._buffer, a._view)
    return array(a, dtype, order=order or "K")


def ascontiguousarray(a, dtype=None) -> ndarray:
    a = asarray(a, dtype)
    return a if a.flags.c_contiguous else a.copy()


def asfortranarray(a, dtype=None) -> ndarray:
    a = asarray(a, dtype)
    return a if a.flags.f_contiguous else a.copy("F")


def asnumpy(
    a, stream=None, order: _Literal["C", "F", "A"] = "C", out: np.ndarray | None = None, *, blocking: bool = True
) -> np.ndarray:
    """Return `a` as a NumPy array; device arrays are copied."""
    return a.get(order=order, out=out) if isinstance(a, ndarray) else np.asarray(a)


def empty(shape, dtype=float, order: _Order = "C") -> ndarray:
    """Make an array of undefined values; a kernel that reads one before it is written fails on the simulator."""
    return ndarray._allocate(shape, dtype, order)


def zeros(shape, dtype=float, order: _Order = "C") -> ndarray:
    return full(shape, 0, dtype, order)


def ones(shape, dtype=float, order: _Order = "C") -> ndarray:
    return full(shape, 1, dtype, order)


def full(shape, fill_value, dtype=None, order: _Order = "C") -> ndarray:
    """Make an array filled with `fill_value`, of its dtype unless one is given."""
    filled = ndarray._allocate(shape, np.asarray(_to_host(fill_value)).dtype if dtype is None else dtype, order)
    filled._write(..., _to_host(fill_value))
    return filled


def empty_like(prototype, dtype=None, order: _Literal["K", "A", "C", "F"] = "K", subok=None, shape=None) -> ndarray:
    """Make an `empty` array of the shape, dtype and order of axes of `prototype`."""
    like = np.empty_like(_to_host(prototype), dtype, order, subok=False, shape=shape)
    return ndarray._allocate(like.shape, like.dtype, strides=like.strides)


def zeros_like(a, dtype=None, order: _Literal["K", "A", "C", "F"] = "K", subok=None, shape=None) -> ndarray:
    return full_like(a, 0, dtype, order, subok, shape)


def ones_like(a, dtype=None, order: _Literal["K", "A", "C", "F"] = "K", subok=None, shape=None) -> ndarray:
    return full_like(a, 1, dtype, order, subok, shape)


def full_like(a, fill_value, dtype=None, order: _Literal["K", "A", "C", "F"] = "K", subok=None, shape=None) -> ndarray:
    filled = empty_like(a, dtype, order, subok, shape)
    filled._write(..., _to_host(fill_value))
    return filled


def copyto(dst: ndarray, src, casting: str = "same_kind") -> None:
    """Assign `dst[...] = src`, a device array or a number."""
    dst[...] = src


def get_array_module(*args):
    """Return this module if any of the arguments is one of its arrays, else numpy."""
    for arg in args:
        if isinstance(arg, ndarray):
            return sys.modules[__name__]
    return np


def shape(a) -> tuple[int, ...]:
    return np.shape(_to_host(a))


def ndim(a) -> int:
    return np.ndim(_to_host(a))


def size(a, axis=None) -> int:
    return np.size(_to_host(a), axis)


def __getattr__(name: str):
    raise _missing("cupy", name)


_array_functions.update({name: value for name, value in globals().items() if callable(value) and name[0] != "_"})
