"""`DeviceNDArray`: the device array of numba.cuda, on the simulator."""

from __future__ import annotations

import ctypes
import math

import numpy as np

from warplab.dropin.memory import DeviceArray, OnDevice


class DeviceNDArray(DeviceArray):
    """An array in device memory. The host reads it with `copy_to_host()`; kernels take it as it is."""

    def copy_to_host(self, ary: np.ndarray | None = None, stream=0) -> np.ndarray:
        """A new NumPy array, or `ary`, filled with the values. TypeError or ValueError if `ary` does not fit."""
        if ary is None:
            return self._view.copy("K")
        _check_same(self, ary)
        ary[...] = self._view.reshape(ary.shape)
        return ary

    def copy_to_device(self, ary, stream=0) -> None:
        """Overwrite with the values of `ary`, an array of the host or the device of the same shape and dtype."""
        source = ary._view if isinstance(ary, DeviceArray) else np.asarray(ary)
        _check_same(self, source)
        self._write(..., source.reshape(self.shape))

    def __getitem__(self, item):
        part = self._view[_basic(item)]
        return DeviceNDArray._wrap(self._buffer, part) if isinstance(part, np.ndarray) and part.ndim else part[()]

    def __setitem__(self, key, value) -> None:
        values = value._view if isinstance(value, DeviceArray) else np.asarray(value)
        self._write(_basic(key), values)

    def reshape(self, *shape, order: str = "C") -> DeviceNDArray:
        """The same memory in another shape. NotImplementedError where that needs a copy."""
        if len(shape) == 1 and isinstance(shape[0], tuple | list):
            shape = tuple(shape[0])
        return self._same_memory(self._view.reshape(shape, order=order))

    def ravel(self, order: str = "C", stream=0) -> DeviceNDArray:
        return self._same_memory(self._view.ravel(order))

    def squeeze(self, axis=None, stream=0) -> DeviceNDArray:
        return self._same_memory(self._view.squeeze(axis))

    def view(self, dtype) -> DeviceNDArray:
        return self._same_memory(self._view.view(dtype))

    def transpose(self, axes=None) -> DeviceNDArray:
        """The transpose of a matrix, copied, as in numba.cuda."""
        if self.ndim != 2:
            raise NotImplementedError("transposing a non-2D DeviceNDArray isn't supported")
        if axes is not None and tuple(axes) == (0, 1):
            return self
        return DeviceNDArray._from_host(np.ascontiguousarray(self._view.T))

    @property
    def T(self) -> DeviceNDArray:
        return self.transpose()

    def split(self, section: int, stream=0):
        """Parts of `section` elements each; the last one holds the rest."""
        for i in range(math.ceil(self.size / section)):
            yield self[i * section : (i + 1) * section]

    def _same_memory(self, view: np.ndarray) -> DeviceNDArray:
        if self.size and not np.may_share_memory(view, self._view):
            raise NotImplementedError("operation requires copying")
        return DeviceNDArray._wrap(self._buffer, view)

    def is_c_contiguous(self) -> bool:
        return self._view.flags.c_contiguous

    def is_f_contiguous(self) -> bool:
        return self._view.flags.f_contiguous

    @property
    def flags(self) -> dict[str, bool]:
        flags = self._view.flags
        return {"C_CONTIGUOUS": flags.c_contiguous, "F_CONTIGUOUS": flags.f_contiguous}

    @property
    def alloc_size(self) -> int:
        return self.nbytes

    @property
    def device_ctypes_pointer(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._address)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        # NumPy functions may copy a device array to the host without being asked; so they do with Numba's own.
        if copy is False:
            raise ValueError("`copy=False` is not supported. A copy is always created.")
        host = self.copy_to_host()
        return host if dtype is None else host.astype(dtype)

    def __repr__(self) -> str:
        return f"<DeviceNDArray shape={self.shape} dtype={self.dtype}; copy_to_host() brings the values to the host>"


def from_host(obj, copy: bool = True) -> DeviceNDArray:
    """`obj` on the device; arrays that are there already stay as they are."""
    if isinstance(obj, DeviceNDArray):
        return obj
    if isinstance(obj, DeviceArray):
        return DeviceNDArray._wrap(obj._buffer, obj._view)
    host = np.asarray(obj)
    if not (host.flags.c_contiguous or host.flags.f_contiguous):
        raise ValueError(
            "Array contains non-contiguous buffer and cannot be transferred as a single memory region. "
            "Please ensure contiguous buffer with numpy.ascontiguousarray()"
        )
    if copy:
        return DeviceNDArray._from_host(host)
    return DeviceNDArray._allocate(host.shape, host.dtype, "C" if host.flags.c_contiguous else "F")


def _basic(key):
    parts = key if isinstance(key, tuple) else (key,)
    for part in parts:
        if not isinstance(part, int | np.integer | slice) and part is not Ellipsis:
            raise NotImplementedError(
                f"a device array is indexed by integers and slices, not by {type(part).__name__}: "
                "copy it to the host first"
            )
    return key


def _check_same(first, second) -> None:
    # The classes of error are those of numba.cuda's check_array_compatibility.
    if isinstance(second, OnDevice) or not isinstance(second, np.ndarray):
        raise TypeError(f"expected an array of the host, not {type(second).__name__}")
    if first.dtype != second.dtype:
        raise TypeError(f"incompatible dtype: {first.dtype} vs. {second.dtype}")
    a, b = first._view.squeeze(), second.squeeze()
    if a.shape != b.shape:
        raise ValueError(f"incompatible shape: {first.shape} vs. {second.shape}")
    if first.size and a.strides != b.strides and not (_contiguous(a) and _contiguous(b)):
        raise ValueError(f"incompatible strides: {first.strides} vs. {second.strides}")


def _contiguous(array: np.ndarray) -> bool:
    return array.flags.c_contiguous or array.flags.f_contiguous
