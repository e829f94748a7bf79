"""numba.cuda on the simulator: its names, its behaviour; what is not there says why and what to use instead.

What a kernel calls (`cuda.grid`, `cuda.shared.array`, ...) and Numba's types are numba.cuda's own. To Numba this
module *is* numba.cuda: `_numba_type_` below is how Numba asks any global of a kernel for its type. The names that are
not here are in `cuda_names`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numba.cuda as _numba_cuda
from numba.cuda import In, InOut, Out

from warplab.dropin import runtime as _runtime
from warplab.dropin.numba_cuda import names as _names
from warplab.dropin.numba_cuda import random
from warplab.dropin.numba_cuda import vectorizers as _vectorize
from warplab.dropin.numba_cuda.api import (
    as_cuda_array,
    device_array,
    device_array_like,
    from_cuda_array_interface,
    is_cuda_array,
    managed_array,
    mapped,
    mapped_array,
    mapped_array_like,
    open_ipc_array,
    pinned,
    pinned_array,
    pinned_array_like,
    to_device,
)
from warplab.dropin.numba_cuda.compiler import (
    compile,
    compile_for_current_device,
    compile_ptx,
    compile_ptx_for_current_device,
)
from warplab.dropin.numba_cuda.dispatcher import jit
from warplab.dropin.numba_cuda.reduction import Reduce
from warplab.dropin.numba_cuda.vectorizers import guvectorize, vectorize
from warplab.dropin.runtime import Context, Event, MemoryInfo, SimulatedDevice, Stream, detect, elapsed_time

__all__ = [
    "In",
    "InOut",
    "MemoryInfo",
    "Out",
    "Reduce",
    "as_cuda_array",
    "close",
    "compile",
    "compile_for_current_device",
    "compile_ptx",
    "compile_ptx_for_current_device",
    "cuda_error",
    "current_context",
    "default_stream",
    "defer_cleanup",
    "detect",
    "device_array",
    "device_array_like",
    "event",
    "event_elapsed_time",
    "external_stream",
    "from_cuda_array_interface",
    "get_current_device",
    "gpus",
    "guvectorize",
    "is_available",
    "is_bfloat16_supported",
    "is_cuda_array",
    "is_float16_supported",
    "is_fp8_supported",
    "jit",
    "legacy_default_stream",
    "list_devices",
    "managed_array",
    "mapped",
    "mapped_array",
    "mapped_array_like",
    "open_ipc_array",
    "per_thread_default_stream",
    "pinned",
    "pinned_array",
    "pinned_array_like",
    "profile_start",
    "profile_stop",
    "profiling",
    "random",
    "reduce",
    "require_context",
    "select_device",
    "stream",
    "synchronize",
    "to_device",
    "vectorize",
]

_numba_type_ = _numba_cuda.types.Module(_numba_cuda)

event_elapsed_time = elapsed_time
gpus = _runtime.devices
reduce = Reduce


def __getattr__(name: str):
    return _names.find(name)


def __dir__() -> list[str]:
    return [*__all__, *_names.found()]


def is_available() -> bool:
    """True: kernels can be launched, on the simulator (Numba's own simulator answers the same)."""
    return True


def cuda_error() -> None:
    """None: no driver is used, so none has failed."""


def is_float16_supported() -> bool:
    return _runtime.devices.current.supports_float16


def is_bfloat16_supported() -> bool:
    return _runtime.devices.current.supports_bfloat16


def is_fp8_supported() -> bool:
    return _runtime.devices.current.supports_fp8


def synchronize() -> None:
    """Wait for the device. The simulator has finished already: a launch returns when its kernel has run."""


def stream() -> Stream:
    return Stream()


def default_stream() -> Stream:
    return Stream("default stream")


def legacy_default_stream() -> Stream:
    return Stream("legacy default stream")


def per_thread_default_stream() -> Stream:
    return Stream("per-thread default stream")


def external_stream(ptr: int) -> Stream:
    """The stream of another library, such as `cupy.cuda.Stream().ptr`. Work in it is done already."""
    return Stream("external stream", ptr)


def event(timing: bool = True) -> Event:
    return Event()


def current_context(devnum: int | None = None) -> Context:
    return _runtime.context


def require_context(fn: Callable) -> Callable:
    """`fn` itself: the one context is always there."""
    return fn


def get_current_device() -> SimulatedDevice:
    """The simulated device, by the name "PTX simulator"."""
    return gpus[0]


def select_device(device_id: int) -> SimulatedDevice:
    if device_id != 0:
        raise ValueError(f"there is one simulated device, 0; not {device_id}")
    return gpus[0]


def list_devices():
    return gpus


def close() -> None:
    """Nothing to close; arrays are freed with their last reference."""


@contextlib.contextmanager
def defer_cleanup() -> Iterator[None]:
    """On a GPU, frees arrays later; here freeing one holds up nothing."""
    yield


@contextlib.contextmanager
def profiling() -> Iterator[None]:
    """Limits what NVIDIA's profilers record, of which none is here. `with warplab.profile() as p:` counts."""
    yield


def profile_start() -> None:
    """As `profiling`."""


def profile_stop() -> None:
    """As `profiling`."""


def install() -> None:
    """Let `from numba.cuda.random import ...` and `numba.vectorize(target="cuda")` reach the simulator, too."""
    random.install()
    _vectorize.install()
