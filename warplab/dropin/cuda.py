"""numba.cuda on the simulator: the names and behaviour that the course uses.

What a kernel calls (`cuda.grid`, `cuda.shared.array`, ...) and Numba's types are numba.cuda's own. To Numba this
module *is* numba.cuda: `_numba_type_` below is how Numba asks any global of a kernel for its type.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType

import numba.cuda as _numba_cuda
import numpy as np

from warplab.dropin.device_array import DeviceNDArray, from_host
from warplab.dropin.memory import DeviceArray, MappedArray
from warplab.dropin.numba_kernel import jit
from warplab.dropin.runtime import Context, Event, SimulatedDevice, Stream, elapsed_time

__all__ = [
    "current_context",
    "default_stream",
    "device_array",
    "device_array_like",
    "event",
    "event_elapsed_time",
    "get_current_device",
    "gpus",
    "is_available",
    "is_cuda_array",
    "jit",
    "managed_array",
    "mapped_array",
    "mapped_array_like",
    "pinned",
    "pinned_array",
    "pinned_array_like",
    "select_device",
    "stream",
    "synchronize",
    "to_device",
]

_numba_type_ = _numba_cuda.types.Module(_numba_cuda)

# Where numba.cuda defines what a kernel may use; its host functions would ask for a GPU.
_KERNEL_SIDE = ("numba.cuda.stubs", "numba.cuda.intrinsics", "numba.cuda.cache_hints", "numba.cuda.vector_types")
_KERNEL_SIDE_MODULES = ("cg", "libdevice", "types")

event_elapsed_time = elapsed_time
gpus = [SimulatedDevice()]
_context = Context()


def __getattr__(name: str):
    value = getattr(_numba_cuda, name, None)
    if value is not None and not name.startswith("_"):
        if name in _KERNEL_SIDE_MODULES and isinstance(value, ModuleType):
            return value
        module = getattr(value, "__module__", None) or ""
        if module.startswith(_KERNEL_SIDE) or isinstance(value, _numba_cuda.types.Type):
            return value
        raise AttributeError(
            f"cuda.{name} of Numba is not on the simulator: it has what the course uses; on a GPU all of it is there"
        )
    raise AttributeError(f"numba.cuda has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(name for name in dir(_numba_cuda) if _has(name))]


def _has(name: str) -> bool:
    try:
        __getattr__(name)
    except AttributeError:
        return False
    return True


def is_available() -> bool:
    """True: kernels can be launched, on the simulator (Numba's own simulator answers the same)."""
    return True


def to_device(obj, stream=0, copy: bool = True, to: DeviceNDArray | None = None) -> DeviceNDArray:
    """`obj` (an array or what NumPy makes one of) in device memory; copied into `to` if that is given."""
    if to is None:
        return from_host(obj, copy)
    if copy:
        to.copy_to_device(np.asarray(obj), stream)
    return to


def device_array(shape, dtype=np.float64, strides=None, order: str = "C", stream=0) -> DeviceNDArray:
    """An array in device memory whose values are undefined: reading one that nothing wrote is an error."""
    if strides is not None:
        raise NotImplementedError("device_array with strides is not on the simulator")
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    if any(not isinstance(n, int | np.integer) for n in sizes):
        raise TypeError(f"shape must be an integer or tuple of integers, not {shape!r}")
    return DeviceNDArray._allocate(shape, dtype, order)


def device_array_like(ary, stream=0) -> DeviceNDArray:
    """`device_array` with the shape, dtype and order of `ary`."""
    return device_array(ary.shape, ary.dtype, order=_order(ary))


def pinned_array(shape, dtype=np.float64, strides=None, order: str = "C") -> np.ndarray:
    """An array of the host. On a GPU its pages are locked, so that copies are faster; here that changes nothing."""
    return np.empty(shape, dtype, order)


def pinned_array_like(ary) -> np.ndarray:
    return pinned_array(ary.shape, ary.dtype, order=_order(ary))


@contextlib.contextmanager
def pinned(*arylist: np.ndarray) -> Iterator[None]:
    """On a GPU, locks the pages of arrays for a while; here that changes nothing."""
    yield


def mapped_array(
    shape, dtype=np.float64, strides=None, order: str = "C", stream=0, portable: bool = False, wc: bool = False
) -> np.ndarray:
    """An array that host and kernels share."""
    return MappedArray._allocate(shape, dtype, order)


def mapped_array_like(ary, stream=0, portable: bool = False, wc: bool = False) -> np.ndarray:
    return mapped_array(ary.shape, ary.dtype, order=_order(ary))


def managed_array(
    shape, dtype=np.float64, strides=None, order: str = "C", stream=0, attach_global: bool = True
) -> np.ndarray:
    """An array that host and kernels share. On a GPU its pages migrate to whoever touches them."""
    return MappedArray._allocate(shape, dtype, order)


def is_cuda_array(obj) -> bool:
    """Whether `obj` is in device memory."""
    return isinstance(obj, DeviceArray)


def as_cuda_array(obj, sync: bool = True) -> DeviceNDArray:
    """A CuPy array as one of Numba, sharing its memory."""
    if not isinstance(obj, DeviceArray):
        raise TypeError("*obj* doesn't implement the cuda array interface.")
    return from_host(obj)


def synchronize() -> None:
    """Wait for the device. The simulator has finished already: a launch returns when its kernel has run."""


def stream() -> Stream:
    return Stream()


def default_stream() -> Stream:
    return Stream()


def event(timing: bool = True) -> Event:
    return Event()


def current_context(devnum: int | None = None) -> Context:
    return _context


def get_current_device() -> SimulatedDevice:
    """The simulated device, by the name "PTX simulator"."""
    return gpus[0]


def select_device(device_id: int) -> SimulatedDevice:
    if device_id != 0:
        raise ValueError(f"there is one simulated device, 0; not {device_id}")
    return gpus[0]


def list_devices() -> list[SimulatedDevice]:
    return gpus


def close() -> None:
    """Nothing to close; arrays are freed with their last reference."""


def _order(ary) -> str:
    flags = ary.flags
    return "F" if flags["F_CONTIGUOUS"] and not flags["C_CONTIGUOUS"] else "C"
