"""Arrays in the simulator's device memory: `Buffer` owns an allocation, `DeviceArray` is a view of one.

The arrays of both drop-ins are made of `DeviceArray`. A kernel sees its address; the host reaches its bytes only
through the copies that the drop-ins offer, as on a GPU.
"""

import functools
import math
import weakref
from collections.abc import Iterator
from typing import Literal

import numpy as np

from warplab import simulator

Order = Literal["C", "F"]
POISON_BYTE = 0xA5  # in every byte that nobody wrote
_MOST_GARBAGE = 1 << 26  # bytes; larger arrays stay zeros, which take no memory of the host until they are written


class Buffer:
    """An allocation on a simulated device, freed when the last array that uses it is gone. Bytes start undefined."""

    def __init__(self, nbytes: int, device: simulator.Device | None = None) -> None:
        self.device = simulator.default_device() if device is None else device
        self.nbytes = nbytes
        self.address = self.device.allocate(nbytes) if nbytes else 0
        self.bytes = np.empty(0, np.uint8)
        if nbytes:
            # NumPy's views of the bytes keep `owner` alive, and `owner` the allocation: an expression that has dropped
            # the device array but still works on a view reads what was there.
            owner = _Owner(self.device.memory.view(self.address, nbytes))
            weakref.finalize(owner, self.device.memory.release, self.address).atexit = False
            self.bytes = np.asarray(owner)


class BorrowedBuffer(Buffer):
    """Memory of the default device that belongs to `owner`."""

    def __init__(self, address: int, nbytes: int, owner) -> None:
        self.device, self.address, self.nbytes, self.owner = simulator.default_device(), address, nbytes, owner
        self.bytes = self.device.memory.view(address, nbytes)


class _Owner:
    """What NumPy's views of an allocation's bytes refer to."""

    def __init__(self, data: np.ndarray) -> None:
        self._data = data
        self.__array_interface__ = data.__array_interface__


class OnDevice:
    """An array whose bytes are in a `Buffer`."""

    _buffer: Buffer

    def _address_on(self, device: simulator.Device) -> int | None:
        """Return the address of the first element; None if the array is not in the memory of `device`."""
        raise NotImplementedError


class DeviceArray(OnDevice):
    """Shape, strides and dtype over a `Buffer`. `_view` is the NumPy view of its bytes, for the drop-ins only."""

    def __init__(self, buffer: Buffer, view: np.ndarray) -> None:
        self._buffer, self._view = buffer, view

    @classmethod
    def _wrap(cls, buffer: Buffer, view: np.ndarray):
        return cls(buffer, view)

    @classmethod
    def _allocate(cls, shape, dtype, order: Order = "C", strides=None):
        """Make an array of undefined values."""
        dtype = np.dtype(dtype)
        if dtype.hasobject:
            raise TypeError("an array of Python objects cannot be on the device; give it a numeric dtype")
        shape, nbytes, offset = extent(shape, dtype, strides)
        buffer = Buffer(nbytes)
        return cls._wrap(buffer, np.ndarray(shape, dtype, buffer.bytes, offset, strides, order))

    @classmethod
    def _undefined(cls, shape, dtype, order: Order = "C", strides=None):
        """Make an array of garbage, as on a GPU: NaN, or bytes of `POISON_BYTE`; zeros would look right by luck."""
        array = cls._allocate(shape, dtype, order, strides)
        if array._buffer.nbytes <= _MOST_GARBAGE:
            array._buffer.bytes[:] = POISON_BYTE
            if array._view.dtype.kind in "fc":
                array._view[...] = np.nan
        return array

    @classmethod
    def _from_host(cls, host: np.ndarray):
        """Copy `host`, in C order unless `host` is in Fortran order only."""
        fortran = host.flags.f_contiguous and not host.flags.c_contiguous
        array = cls._allocate(host.shape, host.dtype, "F" if fortran else "C")
        array._write(..., host)
        return array

    def _write(self, key, values) -> None:
        """Assign host values: `array[key] = values`."""
        target = self._view[key]
        with self._buffer.device.memory.host_write(self._buffer.address):
            self._view[key] = values
        if not isinstance(target, np.ndarray):  # one element
            target = self._view[(*(key if isinstance(key, tuple) else (key,)), ...)]
        if np.may_share_memory(target, self._view) or not target.size:
            self._mark(target)
        else:  # indexed by arrays
            self._mark(self._view)

    def _mark(self, view: np.ndarray) -> None:
        allocation = self._buffer.device.memory.find(self._buffer.address)
        if allocation is None or allocation.complete:
            return
        for offset, nbytes in _runs(view, self._buffer.bytes):
            self._buffer.device.memory.mark_initialized(self._buffer.address + offset, nbytes)

    def _address_on(self, device: simulator.Device) -> int | None:
        return self._address if self._buffer.device.memory is device.memory else None

    @property
    def _address(self) -> int:
        return self._buffer.address + _offset(self._view, self._buffer.bytes) if self._view.size else 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self._view.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self._view.strides

    @property
    def dtype(self) -> np.dtype:
        return self._view.dtype

    @property
    def ndim(self) -> int:
        return self._view.ndim

    @property
    def size(self) -> int:
        return self._view.size

    @property
    def itemsize(self) -> int:
        return self._view.itemsize

    @property
    def nbytes(self) -> int:
        return self._view.nbytes

    def __len__(self) -> int:
        return len(self._view)

    @property
    def __cuda_array_interface__(self) -> dict:
        return {
            "shape": self.shape,
            "strides": None if self._view.flags.c_contiguous else self.strides,
            "data": (self._address, False),
            "typestr": self.dtype.str,
            "stream": None,
            "version": 3,
        }

    @functools.cached_property
    def _numba_type_(self):
        # Layout as numba.cuda types its own device arrays: C before F, and A where an axis is broadcast.
        from numba.cuda import types

        from warplab.compile.numba_internals import from_dtype

        flags = self._view.flags
        if 0 in self.strides and self.size:
            layout = "A"
        else:
            layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return types.Array(from_dtype(self.dtype), self.ndim, layout)


def extent(shape, dtype: np.dtype, strides) -> tuple[tuple[int, ...], int, int]:
    """Return an array's shape as a tuple, the bytes it spans, and the offset of its first element in them."""
    shape = (shape,) if isinstance(shape, int | np.integer) else tuple(int(n) for n in shape)
    if any(n < 0 for n in shape):
        raise ValueError("negative dimensions are not allowed")
    if strides is None or not math.prod(shape):
        return shape, math.prod(shape) * dtype.itemsize, 0
    if len(strides) != len(shape):
        raise ValueError(f"{len(strides)} strides for {len(shape)} dimensions")
    reach = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    before = -sum(min(0, r) for r in reach)
    return shape, before + sum(max(0, r) for r in reach) + dtype.itemsize, before


def _offset(view: np.ndarray, base: np.ndarray) -> int:
    return view.__array_interface__["data"][0] - base.__array_interface__["data"][0]


def _runs(view: np.ndarray, base: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield the offset in `base` and the bytes of each contiguous piece of `view`."""
    if not view.size:
        return
    if view.flags.c_contiguous or view.flags.f_contiguous:
        yield _offset(view, base), view.nbytes
        return
    for part in view:
        if isinstance(part, np.ndarray):
            yield from _runs(part, base)
        else:
            break
    else:
        return
    start, (stride,) = _offset(view, base), view.strides
    yield from ((start + i * stride, view.itemsize) for i in range(view.shape[0]))


class MappedArray(np.ndarray, OnDevice):
    """A NumPy array whose bytes host and kernels share, as `cuda.mapped_array` makes them. `_stream`: its stream."""

    _stream: int | None = None

    @classmethod
    def _allocate(cls, shape, dtype, order: Order = "C", strides=None) -> "MappedArray":
        array = DeviceArray._allocate(shape, dtype, order, strides)
        array._mark(array._view)  # the host may write any byte at any time
        mapped = array._view.view(cls)
        mapped._buffer = array._buffer
        return mapped

    @property
    def __cuda_array_interface__(self) -> dict:
        address = self._address_on(self._buffer.device)
        if address is None and self.size:  # the result of an operation, which is in host memory
            raise AttributeError("this array is in host memory; one of cuda.mapped_array is in the device's, too")
        return {
            "shape": self.shape,
            "strides": None if self.flags.c_contiguous else self.strides,
            "data": (address or 0, False),
            "typestr": self.dtype.str,
            "stream": self._stream,
            "version": 3,
        }

    def __array_finalize__(self, parent) -> None:
        buffer = getattr(parent, "_buffer", None)
        if buffer is not None:
            self._buffer = buffer

    def _address_on(self, device: simulator.Device) -> int | None:
        # The result of an operation on a mapped array is of this class but lies in host memory.
        if not hasattr(self, "_buffer") or not self.size or not np.may_share_memory(self, self._buffer.bytes):
            return None
        return (
            self._buffer.address + _offset(self, self._buffer.bytes)
            if self._buffer.device.memory is device.memory
            else None
        )
