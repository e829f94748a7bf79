"""`cuda.In(a)`, `cuda.Out(a)` and `cuda.InOut(a)` around an argument: the way in which a host array is copied."""

from collections.abc import Callable

import numpy as np
from numba.cuda import In, InOut

from warplab.compile.numba_internals import ArgHint
from warplab.dropin.numba_cuda.api import from_cuda_array_interface
from warplab.dropin.numba_cuda.cudadrv.devicearray import DeviceNDArray
from warplab.launch.device_arrays import OnDevice, Order


def resolve(args: tuple) -> tuple[tuple, Callable[[], None]]:
    """Return the arguments without hints, and a function that copies the outputs back after the launch.

    The classes of the hints are Numba's own. An array of the device stays as it is.
    """
    if not any(isinstance(arg, ArgHint) or _is_foreign(arg) for arg in args):
        return args, _nothing
    outputs: list[tuple[np.ndarray, DeviceNDArray]] = []

    def value_of(arg):
        if isinstance(arg, ArgHint):
            return _placed(arg, outputs)
        return from_cuda_array_interface(arg.__cuda_array_interface__, arg) if _is_foreign(arg) else arg

    def copy_back() -> None:
        for host, array in outputs:
            host[...] = array._view

    return tuple(map(value_of, args)), copy_back


def _is_foreign(arg) -> bool:
    """Return whether it is an array of another library that is in the device's memory."""
    known = isinstance(arg, int | float | complex | tuple | np.ndarray | np.generic | OnDevice)
    return not known and hasattr(arg, "__cuda_array_interface__")


def _placed(hint, outputs: list):
    value = hint.value
    if isinstance(hint, InOut) or isinstance(value, OnDevice) or not isinstance(value, np.ndarray):
        return value
    if isinstance(hint, In):
        return value.copy("K")  # what the kernel writes to it is lost
    order: Order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    array = DeviceNDArray._allocate(value.shape, value.dtype, order)
    outputs.append((value, array))
    return array


def _nothing() -> None:
    pass
