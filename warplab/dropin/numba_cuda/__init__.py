"""numba.cuda on the simulator: its names and its behaviour. A name that is missing says why and what to use instead.

What a kernel calls (`cuda.grid`, `cuda.shared.array`, ...) and Numba's types are numba.cuda's own. To Numba this
module *is* numba.cuda: `_numba_type_` below is how Numba asks any global of a kernel for its type. A stand-in is in
the module that has its name in numba.cuda; `module_attributes` serves the names that are not here.
"""
# ruff: noqa: F401 - what is imported here is what the module has

import os as _os

import numba.cuda as _numba_cuda
from numba.cuda import In, InOut, Out

from warplab.compile.numba_internals import config as _config
from warplab.dropin.numba_cuda import module_attributes as _module_attributes
from warplab.dropin.numba_cuda import random
from warplab.dropin.numba_cuda import vectorizers as _vectorizers
from warplab.dropin.numba_cuda.api import (
    as_cuda_array,
    close,
    cuda_error,
    current_context,
    default_stream,
    defer_cleanup,
    detect,
    device_array,
    device_array_like,
    event,
    event_elapsed_time,
    external_stream,
    from_cuda_array_interface,
    get_current_device,
    is_available,
    is_bfloat16_supported,
    is_cuda_array,
    is_float16_supported,
    is_fp8_supported,
    legacy_default_stream,
    list_devices,
    managed_array,
    mapped,
    mapped_array,
    mapped_array_like,
    open_ipc_array,
    per_thread_default_stream,
    pinned,
    pinned_array,
    pinned_array_like,
    profile_start,
    profile_stop,
    profiling,
    require_context,
    select_device,
    stream,
    synchronize,
    to_device,
)
from warplab.dropin.numba_cuda.compiler import (
    compile,
    compile_for_current_device,
    compile_ptx,
    compile_ptx_for_current_device,
)
from warplab.dropin.numba_cuda.cudadrv.devices import gpus
from warplab.dropin.numba_cuda.decorators import jit
from warplab.dropin.numba_cuda.reduction import Reduce
from warplab.dropin.numba_cuda.vectorizers import guvectorize, vectorize
from warplab.dropin.simulated_device import MemoryInfo

_numba_type_ = _numba_cuda.types.Module(_numba_cuda)

reduce = Reduce

# Importing a submodule makes it an attribute of this module. Here, as in `cuda.dispatcher`, it would pass for Numba's.
for _name in (
    *("annotations", "api", "args", "compiler", "cudadrv", "decorators", "dispatcher", "reduction", "vectorizers"),
    *("kernel", "kernels", "kernel_cache", "kernel_exceptions", "memory_management", "module_attributes"),
):
    globals().pop(_name, None)

__all__ = [name for name in globals() if not name.startswith("_")]


def __getattr__(name: str):
    return _module_attributes.find(name)


def __dir__() -> list[str]:
    return [*__all__, *_module_attributes.found()]


def install() -> None:
    """Let `from numba.cuda.random import ...` and `numba.vectorize(target="cuda")` reach the simulator, too."""
    random.install()
    _vectorizers.install()


# Numba warns of small grids and of host arrays, whose cost the simulator does not have. The warnings are here for those
# who ask: by the variables of the environment, or in `cuda.config`.
for _name in ("CUDA_LOW_OCCUPANCY_WARNINGS", "CUDA_WARN_ON_IMPLICIT_COPY"):
    if f"NUMBA_{_name}" not in _os.environ:
        setattr(_config, _name, 0)
