"""Attributes of numba.cuda that the drop-in takes from Numba as they are, and those that it refuses, with reasons."""

import importlib
from types import ModuleType

import numba.cuda as _numba_cuda

from warplab.compile.numba_internals import KERNEL_SIDE, driver_errors, nvrtc
from warplab.dropin.numba_cuda.cudadrv import devicearray as _device_array
from warplab.dropin.numba_cuda.cudadrv import driver as _driver

# What needs no GPU: modules for kernels and for the compiler, code to link, errors, settings.
_AS_IT_IS = """
    cg config descriptor errors extending libdevice types
    CUSource PTXSource LinkableCode Archive Cubin Fatbin LTOIR Object
    CudaSupportError KernelRuntimeError Dim3 GridGroup deferred_type optional
    HAS_NUMBA config_default_cc implementation numba_cuda_default_ptx_cc
    declare_device is_supported_version literal_unroll runtime
"""

_IMPORTED_ON_DEMAND = ("bf16", "fp16")  # functions of half precision for kernels

_MEMORY_MANAGER = "the simulator manages its memory itself; use cuda.to_device and cuda.device_array"
_POINTER = "arrays hold the simulator's memory; use cuda.device_array, cuda.pinned_array or cuda.mapped_array"
_REFUSED = {
    "BaseCUDAMemoryManager": _MEMORY_MANAGER,
    "GetIpcHandleMixin": _MEMORY_MANAGER,
    "HostOnlyCUDAMemoryManager": _MEMORY_MANAGER,
    "set_memory_manager": _MEMORY_MANAGER,
    "compile_all": "cuda.compile_ptx gives the PTX of a function, kernel.inspect_asm() a kernel's with what it links",
    "IpcHandle": "memory of the simulator belongs to one process; give the other one a copy",
    "MappedMemory": _POINTER,
    "MemoryPointer": _POINTER,
    "PinnedMemory": _POINTER,
    "driver": "there is no driver; cuda.current_context() and cuda.get_current_device() tell what the simulator knows",
    "nvvm": "cuda.jit and cuda.compile_ptx call the compiler",
    "simulator": "that is Numba's own simulator, one Python thread per CUDA thread; this one runs the compiled PTX",
}


class _Part:
    """The part of a module of numba.cuda that programs use: classes of device arrays and of errors."""

    def __init__(self, name: str, **values) -> None:
        self.__name__ = name
        self.__dict__.update(values)

    def __getattr__(self, name: str):
        here = ", ".join(n for n in self.__dict__ if not n.startswith("_"))
        raise AttributeError(
            f"{self.__name__}.{name} of Numba is not on the simulator, which has {here} of that module"
        )


_devicearray = _Part(
    "cuda.devicearray",
    DeviceNDArray=_device_array.DeviceNDArray,
    DeviceRecord=_device_array.DeviceRecord,
    is_cuda_ndarray=_device_array.is_cuda_ndarray,
    auto_device=_device_array.auto_device,
    from_array_like=_device_array.from_array_like,
    from_record_like=_device_array.from_record_like,
)
_driver_part = _Part("cuda.cudadrv.driver", Stream=_driver.Stream, Event=_driver.Event)
_OWN = {
    "devicearray": _devicearray,
    "cudadrv": _Part("cuda.cudadrv", devicearray=_devicearray, driver=_driver_part, error=driver_errors, nvrtc=nvrtc),
}


def find(name: str):
    """Return the value of `cuda.NAME`. Raises AttributeError that says why there is none."""
    if name in _OWN:
        return _OWN[name]
    if name in _IMPORTED_ON_DEMAND:
        return importlib.import_module(f"numba.cuda.{name}")
    value = getattr(_numba_cuda, name, None)
    if value is None or name.startswith("_"):
        raise AttributeError(f"numba.cuda has no attribute {name!r}")
    module = getattr(value, "__module__", None) or ""
    if name in _AS_IT_IS.split() or module.startswith(KERNEL_SIDE) or isinstance(value, _numba_cuda.types.Type):
        return value
    if name in _REFUSED:
        reason = _REFUSED[name]
    elif isinstance(value, ModuleType):
        reason = f"it is a module that Numba uses itself; import {value.__name__} where you need it"
    else:
        reason = "Numba uses it itself"
    raise AttributeError(f"cuda.{name} of Numba is not on the simulator: {reason}")


def found() -> list[str]:
    """List the names of numba.cuda for which `find` has a value."""
    return [name for name in dir(_numba_cuda) if _has(name)]


def _has(name: str) -> bool:
    try:
        find(name)
    except AttributeError:
        return False
    return True
