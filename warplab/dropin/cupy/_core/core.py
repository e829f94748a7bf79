"""`ndarray`: CuPy's array on the simulator. Kernels see device memory; NumPy computes what CuPy's own kernels would.

`lift` makes a function of CuPy from one of NumPy: it takes and returns device arrays and refuses NumPy arrays.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from warplab.dropin.cupy import cuda
from warplab.dropin.cupy._core.missing import missing
from warplab.dropin.cupy.cuda.memory import MemoryPointer
from warplab.launch.device_arrays import Buffer, DeviceArray

NumpyOrder = Literal["K", "A", "C", "F"]
Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
_NUMBERS = (bool, int, float, complex, np.generic)

# CuPy's functions by the full name of NumPy's (`np.linalg.svd(a)` of a device array); the package fills it.
functions: dict[str, Callable] = {}


class ndarray(DeviceArray, NDArrayOperatorsMixin):
    """An array in device memory. `get()` or `cp.asnumpy` copies it to the host; nothing else does."""

    __array_priority__ = 100

    def __new__(cls, shape, dtype=float, memptr: MemoryPointer | None = None, strides=None, order="C"):
        if strides is not None:
            raise NotImplementedError("cp.ndarray with strides is not on the simulator")
        if memptr is None:
            return cls._allocate(shape, dtype, order)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        offset = memptr.ptr - memptr.mem.address
        return cls._wrap(memptr.mem, np.ndarray(shape, dtype, memptr.mem.bytes, offset, order=order))

    def __init__(self, *args, **kwargs) -> None:
        pass  # __new__ has done it

    @classmethod
    def _wrap(cls, buffer: Buffer, view: np.ndarray):
        array = object.__new__(cls)
        array._buffer, array._view = buffer, view
        return array

    # -- to and from the host ------------------------------------------------------------------------------

    def get(
        self, stream=None, order: Literal["C", "F", "A"] = "C", out: np.ndarray | None = None, blocking: bool = True
    ):
        """Return a copy as a NumPy array."""
        self._buffer.device.synchronize()
        if out is None:
            fortran = order == "F" or (order == "A" and self.flags.fnc)
            return self._view.copy("F" if fortran else "C")
        if out.dtype != self.dtype or out.shape != self.shape:
            raise ValueError(f"out is {out.dtype} {out.shape}; make it {self.dtype} {self.shape} like the array")
        out[...] = self._view
        return out

    def set(self, arr: np.ndarray, stream=None) -> None:
        """Overwrite with a NumPy array of the same shape and dtype."""
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {arr.shape}")
        self._buffer.device.synchronize()
        self._write(..., arr)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Return a capsule by which a library of CPU arrays shares this memory, as on a GPU one of GPU arrays does."""
        self._buffer.device.synchronize()
        self._mark(self._view)  # it may be written at any time
        return self._view.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._view.__dlpack_device__()

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy "
            "array explicitly."
        )

    def item(self, *index):
        return self._view.item(*index)

    def tolist(self):
        return self._view.tolist()

    def tobytes(self, order: Literal["C", "F", "A"] = "C") -> bytes:
        return self._view.tobytes(order)

    def __bool__(self) -> bool:
        return bool(self._view)

    def __int__(self) -> int:
        return int(self._view)

    def __float__(self) -> float:
        return float(self._view)

    def __complex__(self) -> complex:
        return complex(self._view)

    def __index__(self) -> int:
        return self._view.__index__()

    def __repr__(self) -> str:
        return repr(self._view)

    def __str__(self) -> str:
        return str(self._view)

    def __format__(self, spec: str) -> str:
        return format(self._view, spec)

    # -- elements ------------------------------------------------------------------------------------------

    def __getitem__(self, key):
        key = _index(key)
        part = self._view[key]
        if not isinstance(part, np.ndarray):  # CuPy keeps a single element on the device, as an array without axes
            part = self._view[(*(key if isinstance(key, tuple) else (key,)), ...)]
        return _device(part, [self])

    def __setitem__(self, key, value) -> None:
        if not isinstance(value, (ndarray, *_NUMBERS)):
            raise TypeError(f"Unsupported type {type(value)}: assign a CuPy array, made with cp.asarray(...)")
        self._buffer.device.synchronize()
        self._write(_index(key), to_host(value))

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def fill(self, value) -> None:
        self._buffer.device.synchronize()
        self._write(..., to_host(value))

    # -- other shapes and types ----------------------------------------------------------------------------

    @property
    def T(self) -> ndarray:
        return _device(self._view.T, [self])

    @property
    def real(self) -> ndarray:
        return _device(self._view.real, [self])

    @property
    def imag(self) -> ndarray:
        return _device(self._view.imag, [self])

    def transpose(self, *axes) -> ndarray:
        return _device(self._view.transpose(*axes), [self])

    def reshape(self, *shape, order: Literal["C", "F", "A"] = "C") -> ndarray:
        return _device(self._view.reshape(*shape, order=order), [self])

    def astype(
        self, dtype, order: NumpyOrder = "K", casting: Casting = "unsafe", subok=None, copy: bool = True
    ) -> ndarray:
        if not copy and self.dtype == np.dtype(dtype):
            return self
        return ndarray._from_host(self._view.astype(dtype, order, casting=casting))

    def copy(self, order: NumpyOrder = "C") -> ndarray:
        return ndarray._from_host(self._view.copy(order))

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, memo) -> ndarray:
        return self.copy()

    def flatten(self, order: NumpyOrder = "C") -> ndarray:
        return ndarray._from_host(self._view.flatten(order))

    def view(self, dtype=None) -> ndarray:
        return _device(self._view.view(dtype) if dtype is not None else self._view.view(), [self])

    def sort(self, axis: int = -1) -> None:
        self._write(..., np.sort(self._view, axis))

    # -- attributes ----------------------------------------------------------------------------------------

    @property
    def flags(self):
        return self._view.flags

    @property
    def data(self) -> MemoryPointer:
        return MemoryPointer(self._buffer, self._address)

    @property
    def device(self) -> cuda.Device:
        return self.data.device

    @property
    def base(self) -> ndarray | None:
        """Return an array of the whole memory that a view is of; None for an array of its own memory."""
        if self._view.nbytes == self._buffer.nbytes:
            return None
        return ndarray._wrap(self._buffer, self._buffer.bytes)

    @property
    def mT(self) -> ndarray:
        return _device(self._view.mT, [self])

    # -- NumPy's protocols: np.add(a, b), np.sum(a) give device arrays ----------------------------------------

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method == "at":
            return lift_in_place(ufunc.at)(*inputs, **kwargs)
        return lift(getattr(ufunc, method), elementwise=True)(*inputs, **kwargs)

    def __array_function__(self, function, types, args, kwargs):
        own = functions.get(f"{function.__module__}.{function.__name__}")
        if own is None:
            raise missing(function.__module__.replace("numpy", "cupy", 1), function.__name__)
        return own(*args, **kwargs)


def lift(function: Callable, elementwise: bool = False) -> Callable:
    """Make `function` of NumPy take and return device arrays. It refuses NumPy arrays, and lists if `elementwise`
    (TypeError)."""

    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def lifted(*args, **kwargs):
        out = kwargs.pop("out", None)
        outs = out if isinstance(out, tuple) else (out,)
        if elementwise:
            for arg in args:
                if not isinstance(arg, (DeviceArray, *_NUMBERS)) and not hasattr(arg, "_traced"):  # by `fuse`
                    raise TypeError(f"Unsupported type {type(arg)}")
        inputs = [a for a in (*args, *kwargs.values()) if isinstance(a, DeviceArray)]
        inputs += [a for arg in args if isinstance(arg, tuple | list) for a in arg if isinstance(a, DeviceArray)]
        host_kwargs = {name: to_host(value) for name, value in kwargs.items()}
        if out is not None:
            host_kwargs["out"] = to_host(out)
        if out is None:
            return _device(function(*map(to_host, args), **host_kwargs), inputs)
        with writing(*(array for array in outs if array is not None)):
            function(*map(to_host, args), **host_kwargs)
        return outs[0] if len(outs) == 1 else outs

    return lifted


@contextlib.contextmanager
def writing(*arrays: DeviceArray) -> Iterator[None]:
    """Write to the bytes of these arrays inside the block."""
    with contextlib.ExitStack() as stack:
        for array in arrays:
            stack.enter_context(array._buffer.device.memory.host_write(array._buffer.address))
        yield
    for array in arrays:
        array._mark(array._view)


def lift_in_place(function: Callable) -> Callable:
    """Make a function of NumPy that changes its first argument do so with a device array."""

    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def lifted(a: ndarray, *args, **kwargs) -> None:
        host = [to_host(arg) for arg in args], {name: to_host(value) for name, value in kwargs.items()}
        with writing(a):
            function(to_host(a), *host[0], **host[1])

    return lifted


def lift_answer(function: Callable) -> Callable:
    """Make a function of NumPy that returns no array take device arrays."""

    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def lifted(*args, **kwargs):
        return function(*map(to_host, args), **{name: to_host(value) for name, value in kwargs.items()})

    return lifted


class ufunc:
    """An elementwise function of CuPy, by NumPy's of the same name."""

    def __init__(self, function: np.ufunc) -> None:
        self._function, self._lifted = function, lift(function, elementwise=True)
        self.__name__ = self.name = function.__name__
        self.__doc__ = function.__doc__
        self.nin, self.nout, self.nargs, self.types = function.nin, function.nout, function.nargs, function.types
        self.at = lift_in_place(function.at)
        for method in ("reduce", "accumulate", "reduceat", "outer"):
            setattr(self, method, lift(getattr(function, method), elementwise=True))

    def __call__(self, *args, **kwargs):
        return self._lifted(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<ufunc '{self.name}'>"

    def __reduce__(self) -> str:
        return self.name


def lift_method(function: Callable) -> Callable:
    """Make a method of `ndarray` from a function of NumPy."""
    lifted = lift(function)

    @functools.wraps(lifted)
    def method(self, *args, **kwargs):
        return lifted(self, *args, **kwargs)

    return method


_METHODS = """
    all any argmax argmin argpartition argsort choose clip compress conj conjugate cumprod cumsum diagonal dot max mean
    min nonzero prod ptp ravel repeat round searchsorted squeeze std sum swapaxes take trace var
"""
for _name in _METHODS.split():
    setattr(ndarray, _name, lift_method(getattr(np, _name)))
ndarray.put = lift_in_place(np.ndarray.put)  # type: ignore[attr-defined]
ndarray.partition = lift_in_place(np.ndarray.partition)  # type: ignore[attr-defined]


def to_host(value):
    """Convert `value` for NumPy, a device array to a view of its bytes. Refuse NumPy arrays with axes, as CuPy does."""
    if isinstance(value, DeviceArray):
        value._buffer.device.synchronize()
        return value._view
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}: make it a device array with cp.asarray(...)")
    if type(value) in (tuple, list):
        return type(value)(map(to_host, value))
    return value


def _index(key):
    """Convert a key of `[...]` for NumPy; CuPy takes index arrays of the host, too."""
    if isinstance(key, tuple):
        return tuple(map(_index, key))
    return key._view if isinstance(key, DeviceArray) else key


def _device(result, inputs: list[DeviceArray]):
    """Put a result of NumPy on the device: as a view of an input if it is one, else as a new array."""
    if isinstance(result, tuple | list):
        kind = type(result) if type(result) in (tuple, list) else tuple  # NumPy has named tuples where CuPy has none
        return kind(_device(part, inputs) for part in result)
    if not isinstance(result, np.ndarray | np.generic | bool | int | float | complex):
        return result
    array = np.asarray(result)
    if array.size:
        for source in inputs:
            if np.may_share_memory(array, source._view):
                return ndarray._wrap(source._buffer, array)
    return ndarray._from_host(array)
