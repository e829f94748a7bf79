"""numba.cuda's functions that make arrays, on the simulator."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from warplab.dropin.numba_cuda.devicearray import DeviceNDArray, from_host, from_interface
from warplab.launch.device_memory import DeviceArray, MappedArray, extent


def to_device(obj, stream=0, copy: bool = True, to: DeviceNDArray | None = None) -> DeviceNDArray:
    """`obj` (an array, a record or what NumPy makes an array of) in device memory; copied into `to` if given."""
    if to is None:
        return from_host(obj, copy)
    if copy:
        to.copy_to_device(obj if hasattr(obj, "dtype") else np.asarray(obj), stream)
    return to


def device_array(shape, dtype=np.float64, strides=None, order: str = "C", stream=0) -> DeviceNDArray:
    """An array in device memory whose values are undefined: reading one that nothing wrote is an error."""
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    if any(not isinstance(n, int | np.integer) for n in sizes):
        raise TypeError(f"shape must be an integer or tuple of integers, not {shape!r}")
    return DeviceNDArray._allocate(shape, dtype, order, _strides(strides))


def device_array_like(ary, stream=0) -> DeviceNDArray:
    """`device_array` with the shape and dtype of `ary`, its axes in memory in the same order."""
    return device_array(**_like(ary))


def pinned_array(shape, dtype=np.float64, strides=None, order: str = "C") -> np.ndarray:
    """An array of the host. On a GPU its pages are locked, so that copies are faster; here that changes nothing."""
    dtype, strides = np.dtype(dtype), _strides(strides)
    shape, nbytes, offset = extent(shape, dtype, strides)
    return np.ndarray(shape, dtype, np.empty(nbytes, np.uint8), offset, strides, order)


def pinned_array_like(ary) -> np.ndarray:
    return pinned_array(**_like(ary))


@contextlib.contextmanager
def pinned(*arylist: np.ndarray) -> Iterator[None]:
    """On a GPU, locks the pages of arrays for a while; here that changes nothing."""
    yield


def mapped(*arylist, **kws):
    raise NotImplementedError(
        "cuda.mapped is not on the simulator, whose memory is not the host's: make the array with cuda.mapped_array, "
        "which host and kernels share"
    )


def mapped_array(
    shape, dtype=np.float64, strides=None, order: str = "C", stream=0, portable: bool = False, wc: bool = False
) -> np.ndarray:
    """An array that host and kernels share."""
    return MappedArray._allocate(shape, dtype, order, _strides(strides))


def mapped_array_like(ary, stream=0, portable: bool = False, wc: bool = False) -> np.ndarray:
    return mapped_array(**_like(ary))


def managed_array(
    shape, dtype=np.float64, strides=None, order: str = "C", stream=0, attach_global: bool = True
) -> np.ndarray:
    """An array that host and kernels share. On a GPU its pages migrate to whoever touches them."""
    return MappedArray._allocate(shape, dtype, order, _strides(strides))


def is_cuda_array(obj) -> bool:
    """Whether `obj` says that it is in device memory."""
    return hasattr(obj, "__cuda_array_interface__")


def as_cuda_array(obj, sync: bool = True) -> DeviceNDArray:
    """An array of another library, such as CuPy, as one of Numba, sharing its memory."""
    if not is_cuda_array(obj):
        raise TypeError("*obj* doesn't implement the cuda array interface.")
    return from_host(obj)


def from_cuda_array_interface(desc: dict, owner=None, sync: bool = True) -> DeviceNDArray:
    """The array that a `__cuda_array_interface__` describes, sharing its memory; `owner` is kept alive by it."""
    return from_interface(desc, owner)


def open_ipc_array(handle, shape, dtype, strides=None, offset=0):
    raise NotImplementedError("memory of the simulator belongs to one process: give the other one a copy")


def _strides(strides) -> tuple[int, ...] | None:
    return (strides,) if isinstance(strides, int | np.integer) else strides


def _like(ary) -> dict:
    host = ary._view if isinstance(ary, DeviceArray) else ary
    return {"shape": host.shape, "dtype": host.dtype, "strides": np.empty_like(host, subok=False).strides}
