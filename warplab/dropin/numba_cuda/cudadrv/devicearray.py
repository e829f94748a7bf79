"""`DeviceNDArray` and `DeviceRecord`: numba.cuda's arrays and records in device memory, on the simulator."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from warplab import simulator
from warplab.compile.numba_internals import errmsg_contiguous_buffer, from_dtype
from warplab.dropin.numba_cuda.cudadrv.driver import Stream
from warplab.dropin.simulated_device import in_use
from warplab.launch.device_arrays import BorrowedBuffer, Buffer, DeviceArray, OnDevice, Order, extent


@dataclass(frozen=True)
class DeviceMemory:
    """The memory of an array, from its first element on."""

    buffer: Buffer
    device_pointer: int

    @property
    def size(self) -> int:
        """Return the bytes of the whole allocation."""
        return self.buffer.nbytes

    @property
    def device_ctypes_pointer(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.device_pointer)


class _DeviceData(DeviceArray):
    """What arrays and records have in common. A stream has no effect, as a copy is done when the call returns."""

    __cuda_ndarray__ = True  # by which Numba knows an array of its own
    stream = 0

    @classmethod
    def _allocate(cls, shape, dtype, order: Order = "C", strides=None):
        in_use()
        return super()._allocate(shape, dtype, order, strides)

    def copy_to_host(self, ary: np.ndarray | None = None, stream=0) -> np.ndarray:
        """Copy the values to a new NumPy array or to `ary`. Raises TypeError or ValueError if `ary` does not fit."""
        if any(stride < 0 for stride in self.strides):
            raise NotImplementedError(f"D->H copy not implemented for negative strides: {self.strides}")
        self._buffer.device.synchronize()
        if ary is None:
            return self._view.copy("K")
        if isinstance(ary, np.void):
            for name in _same_record(self, ary).dtype.names or ():
                ary[name] = self._view[name]
            return ary
        _check_same(self, self._view, ary)
        ary[...] = self._view.reshape(ary.shape)
        return ary

    def copy_to_device(self, ary, stream=0) -> None:
        """Overwrite with the values of `ary`, an array of the host or the device with the same shape and dtype."""
        if not ary.size:
            return
        if isinstance(ary, np.void):
            ary = np.asarray(_same_record(self, ary))
        self._buffer.device.synchronize()
        _check_contiguous(self._view)
        if isinstance(ary, DeviceArray):
            source = ary._view
            _check_contiguous(source)
        else:  # an array of the host is brought into this one's order first
            order: Order = "C" if _core(self._view).flags.c_contiguous else "F"
            source = np.asarray(_core(np.asarray(ary)), order=order)
        core = _core(self._view)
        _check_same(self, core, source)
        # An array that repeats itself along an axis is written once.
        self._write(_core_of(self._view), source.reshape(core.shape))

    def bind(self, stream=0):
        """Return an array of the same memory whose `stream` is this one; on a GPU its copies are queued there."""
        bound = self._wrap(self._buffer, self._view)
        bound.stream = stream
        return bound

    @property
    def __cuda_array_interface__(self) -> dict:
        return super().__cuda_array_interface__ | {"stream": int(self.stream) or None}

    @property
    def flags(self) -> dict[str, bool]:
        flags = self._view.flags
        return {"C_CONTIGUOUS": flags.c_contiguous, "F_CONTIGUOUS": flags.f_contiguous}

    @property
    def alloc_size(self) -> int:
        return self.nbytes

    @property
    def gpu_data(self) -> DeviceMemory:
        """Return the memory that holds the values."""
        return DeviceMemory(self._buffer, self._address)

    @property
    def device_ctypes_pointer(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._address)

    def get_ipc_handle(self):
        raise NotImplementedError("memory of the simulator belongs to one process; give the other one a copy")


class DeviceNDArray(_DeviceData):
    """An array in device memory. The host reads it with `copy_to_host()`; kernels take it as it is."""

    def __init__(self, shape, strides, dtype, stream=0, gpu_data: DeviceMemory | None = None) -> None:
        dtype = np.dtype(dtype)
        sizes, nbytes, offset = extent(shape, dtype, (strides,) if isinstance(strides, int) else strides)
        buffer = Buffer(nbytes) if gpu_data is None else gpu_data.buffer
        super().__init__(buffer, np.ndarray(sizes, dtype, buffer.bytes, offset, strides))

    @classmethod
    def _wrap(cls, buffer: Buffer, view: np.ndarray) -> DeviceNDArray:
        array = cls.__new__(cls)
        DeviceArray.__init__(array, buffer, view)
        return array

    def __getitem__(self, item):
        item = _basic(item)
        part = self._view[item]
        if isinstance(part, np.ndarray) and part.ndim:
            return DeviceNDArray._wrap(self._buffer, part)
        if self.dtype.names is None:
            return part[()]
        return DeviceRecord._wrap(self._buffer, self._view[(*(item if isinstance(item, tuple) else (item,)), ...)])

    def __setitem__(self, key, value) -> None:
        self.setitem(key, value, self.stream)

    def getitem(self, item, stream=0):
        return self[item]

    def setitem(self, key, value, stream=0) -> None:
        """Assign as `array[key] = value` does. Without a stream this waits, as in numba.cuda."""
        self._write(_basic(key), _assignable(value, self._view[_basic(key)]))
        if not stream:
            Stream(0).synchronize()

    def reshape(self, *shape, order: Literal["C", "F", "A"] = "C") -> DeviceNDArray:
        """Return the same memory in another shape. Raises NotImplementedError where that needs a copy."""
        if len(shape) == 1 and isinstance(shape[0], tuple | list):
            shape = tuple(shape[0])
        return self._same_memory(self._view.reshape(shape, order=order))

    def ravel(self, order: Literal["C", "F", "A", "K"] = "C", stream=0) -> DeviceNDArray:
        return self._same_memory(self._view.ravel(order))

    def squeeze(self, axis=None, stream=0) -> DeviceNDArray:
        return self._same_memory(self._view.squeeze(axis))

    def view(self, dtype) -> DeviceNDArray:
        return self._same_memory(self._view.view(dtype))

    def transpose(self, axes=None) -> DeviceNDArray:
        """Return the transpose of a matrix, copied, as in numba.cuda."""
        if axes and tuple(axes) == tuple(range(self.ndim)):
            return self
        if self.ndim != 2:
            raise NotImplementedError("transposing a non-2D DeviceNDArray isn't supported")
        if axes is not None and set(axes) != {0, 1}:
            raise ValueError(f"invalid axes list {axes!r}")
        return DeviceNDArray._from_host(np.ascontiguousarray(self._view.T))

    @property
    def T(self) -> DeviceNDArray:
        return self.transpose()

    def split(self, section: int, stream=0):
        """Yield parts of `section` elements each, the last one with what is left."""
        if self.ndim != 1:
            raise ValueError("only support 1d array")
        if self.strides[0] != self.itemsize:
            raise ValueError("only support unit stride")
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

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        # NumPy's functions may copy a device array to the host unasked, as they do with Numba's own.
        if copy is False:
            raise ValueError("`copy=False` is not supported. A copy is always created.")
        host = self.copy_to_host()
        return host if dtype is None else host.astype(dtype)

    def __repr__(self) -> str:
        return f"<DeviceNDArray shape={self.shape} dtype={self.dtype}; copy_to_host() brings the values to the host>"


class DeviceRecord(_DeviceData):
    """One record in device memory, an element of a structured array: `record["field"]` copies the field to the host."""

    def __init__(self, dtype, stream=0, gpu_data: DeviceMemory | None = None) -> None:
        dtype = np.dtype(dtype)
        buffer = Buffer(dtype.itemsize) if gpu_data is None else gpu_data.buffer
        super().__init__(buffer, np.ndarray((), dtype, buffer.bytes))

    @classmethod
    def _wrap(cls, buffer: Buffer, view: np.ndarray) -> DeviceRecord:
        record = cls.__new__(cls)
        DeviceArray.__init__(record, buffer, view)
        return record

    def __getitem__(self, item: str):
        field = self._view[item]
        if field.dtype.names is not None and not field.ndim:
            return DeviceRecord._wrap(self._buffer, field)
        return DeviceNDArray._wrap(self._buffer, field) if field.ndim else field[()]

    def __setitem__(self, key: str, value) -> None:
        self._view[key] = value
        self._mark(self._view[key])

    def getitem(self, item: str, stream=0):
        return self[item]

    def setitem(self, key: str, value, stream=0) -> None:
        self[key] = value

    @property
    def _numba_type_(self):
        return from_dtype(self.dtype)

    def __repr__(self) -> str:
        return f"<DeviceRecord dtype={self.dtype}; copy_to_host() brings the values to the host>"


def is_cuda_ndarray(obj) -> bool:
    """Return whether `obj` is one of Numba's arrays or records in device memory."""
    return isinstance(obj, _DeviceData)


def from_array_like(ary, stream=0, gpu_data: DeviceMemory | None = None) -> DeviceNDArray:
    """Make an array of undefined values with the shape, the strides and the dtype of `ary`."""
    return DeviceNDArray(ary.shape, ary.strides, ary.dtype, gpu_data=gpu_data)


def from_record_like(rec, stream=0, gpu_data: DeviceMemory | None = None) -> DeviceRecord:
    """Make a record of undefined values with the dtype of `rec`."""
    return DeviceRecord(rec.dtype, gpu_data=gpu_data)


def auto_device(obj, stream=0, copy: bool = True, user_explicit: bool = False) -> tuple[OnDevice, bool]:
    """Put `obj` on the device unless it is there; return it, and whether it is new."""
    there = isinstance(obj, OnDevice) or hasattr(obj, "__cuda_array_interface__")
    return from_host(obj, copy), not there


def from_host(obj, copy: bool = True) -> OnDevice:
    """Put `obj` on the device; arrays that are there already stay as they are."""
    if isinstance(obj, _DeviceData):
        return obj
    if isinstance(obj, OnDevice) and obj._address_on(simulator.default_device()) is not None:
        return DeviceNDArray._wrap(obj._buffer, obj._view) if isinstance(obj, DeviceArray) else obj
    if hasattr(obj, "__cuda_array_interface__"):
        return from_interface(obj.__cuda_array_interface__, obj)
    host = np.asarray(obj)
    kind: type[_DeviceData] = DeviceRecord if isinstance(obj, np.void) else DeviceNDArray
    core = host if kind is DeviceRecord else _core(host)
    _check_contiguous(core)
    order: Order = "C" if core.flags.c_contiguous else "F"
    array = kind._from_host(core) if copy else kind._allocate(core.shape, core.dtype, order)
    if core is not host:
        view = np.lib.stride_tricks.as_strided(array._view, host.shape, host.strides)
        array = kind._wrap(array._buffer, view)
    return array


def from_interface(description: dict, owner=None) -> DeviceNDArray:
    """Return a view of the array that a `__cuda_array_interface__` describes. ValueError for memory elsewhere."""
    if description.get("mask") is not None:
        raise NotImplementedError("Masked arrays are not supported")
    dtype, (address, _) = np.dtype(description["typestr"]), description["data"]
    strides = description.get("strides")
    shape, nbytes, offset = extent(description["shape"], dtype, strides)
    if not nbytes:
        return DeviceNDArray._allocate(shape, dtype)
    start = (address or 0) - offset  # None is a null pointer of ctypes
    allocation = simulator.default_device().memory.find(start)
    if allocation is None or start + nbytes > allocation.end:
        raise ValueError(f"the {nbytes:,} bytes at {start:#x} are not in the memory of the simulated device")
    buffer = BorrowedBuffer(start, nbytes, owner)
    return DeviceNDArray._wrap(buffer, np.ndarray(shape, dtype, buffer.bytes, offset, strides))


def _basic(key):
    parts = key if isinstance(key, tuple) else (key,)
    for part in parts:
        if not isinstance(part, int | np.integer | slice) and part is not Ellipsis:
            raise NotImplementedError(
                f"a device array is indexed by integers and slices, not by {type(part).__name__}; "
                "copy it to the host first"
            )
    return key


def _assignable(value, target) -> np.ndarray:
    """Convert `value` for `array[...] = value`; `target`: the part of the array. ValueError as in numba.cuda."""
    values = value._view if isinstance(value, DeviceArray) else np.asarray(value)
    if not isinstance(value, DeviceArray):
        _check_contiguous(_core(values))
    if values.ndim > np.ndim(target):
        raise ValueError(f"Can't assign {values.ndim}-D array to {np.ndim(target)}-D self")
    return values


def _same_record(record: DeviceArray, host: np.void) -> np.void:
    if record.dtype != host.dtype:
        raise TypeError(f"incompatible dtype: {record.dtype} vs. {host.dtype}")
    return host


def _check_same(array: DeviceArray, first: np.ndarray, second) -> None:
    # The classes of error are those of numba.cuda's check_array_compatibility.
    if isinstance(second, OnDevice) or not isinstance(second, np.ndarray):
        raise TypeError(f"expected an array of the host, not {type(second).__name__}")
    if first.dtype != second.dtype:
        raise TypeError(f"incompatible dtype: {first.dtype} vs. {second.dtype}")
    a, b = first.squeeze(), second.squeeze()
    if a.shape != b.shape:
        raise ValueError(f"incompatible shape: {array.shape} vs. {second.shape}")
    if first.size and a.strides != b.strides:
        raise ValueError(f"incompatible strides: {first.strides} vs. {second.strides}")


def _core(array: np.ndarray) -> np.ndarray:
    """Return the array without the axes along which it repeats itself (strides of 0)."""
    return array[_core_of(array)]


def _core_of(array: np.ndarray) -> tuple:
    if 0 not in array.strides or not array.size:
        return (...,)
    return tuple(0 if stride == 0 else slice(None) for stride in array.strides)


def _check_contiguous(array: np.ndarray) -> None:
    if not (_core(array).flags.c_contiguous or _core(array).flags.f_contiguous):
        raise ValueError(errmsg_contiguous_buffer)
