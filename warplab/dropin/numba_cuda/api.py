"""numba.cuda's functions of the host, on the simulator: arrays, streams and events, devices."""

import contextlib
from collections.abc import Callable, Iterator

import numpy as np

from warplab import simulator
from warplab.compile.numba_internals import config
from warplab.dropin.numba_cuda.cudadrv.devicearray import DeviceNDArray, from_host, from_interface
from warplab.dropin.numba_cuda.cudadrv.devices import DeviceList, gpus
from warplab.dropin.numba_cuda.cudadrv.driver import Context, Device, Event, Stream, context, device
from warplab.dropin.simulated_device import disabled, elapsed_time, in_use
from warplab.launch.device_arrays import DeviceArray, MappedArray, OnDevice, Order, extent

event_elapsed_time = elapsed_time

# -- arrays ------------------------------------------------------------------------------------------------------------


def to_device(obj, stream=0, copy: bool = True, to: DeviceNDArray | None = None) -> OnDevice:
    """Copy `obj`, an array, a record or what NumPy makes an array of, to device memory, into `to` if given."""
    if to is None:
        found = from_host(obj, copy)
        return found.bind(stream) if stream and isinstance(found, DeviceNDArray) else found
    if copy:
        to.copy_to_device(obj if hasattr(obj, "dtype") else np.asarray(obj), stream)
    return to


def device_array(shape, dtype=np.float64, strides=None, order: Order = "C", stream=0) -> DeviceNDArray:
    """Make an array in device memory of undefined values; reading one that nothing wrote is an error."""
    sizes = shape if isinstance(shape, tuple | list) else np.ravel(shape) if np.ndim(shape) else (shape,)
    if any(not isinstance(n, int | np.integer) for n in sizes):
        raise TypeError(f"shape must be an integer or tuple of integers, not {shape!r}")
    array = DeviceNDArray._undefined(tuple(map(int, sizes)), dtype, order, _strides(strides))
    return array.bind(stream) if stream else array


def device_array_like(ary, stream=0) -> DeviceNDArray:
    """Make a `device_array` with the shape and dtype of `ary`, its axes in memory in the same order."""
    return device_array(**_like(ary))


def pinned_array(shape, dtype=np.float64, strides=None, order: Order = "C") -> np.ndarray:
    """Make a host array. On a GPU its pages are locked, so that copies are faster; here that changes nothing."""
    dtype, strides = np.dtype(dtype), _strides(strides)
    shape, nbytes, offset = extent(shape, dtype, strides)
    return np.ndarray(shape, dtype, np.empty(nbytes, np.uint8), offset, strides, order)


def pinned_array_like(ary) -> np.ndarray:
    return pinned_array(**_like(ary))


@contextlib.contextmanager
def pinned(*arylist: np.ndarray) -> Iterator[None]:
    """Lock the pages of host arrays meanwhile on a GPU; here that changes nothing."""
    yield


def mapped(*arylist, **kws):
    raise NotImplementedError(
        "cuda.mapped is not on the simulator, whose memory is not the host's; make the array with cuda.mapped_array, "
        "which host and kernels share"
    )


def mapped_array(
    shape, dtype=np.float64, strides=None, order: Order = "C", stream=0, portable: bool = False, wc: bool = False
) -> np.ndarray:
    """Make an array that host and kernels share."""
    return _shared(shape, dtype, strides, order, stream)


def mapped_array_like(ary, stream=0, portable: bool = False, wc: bool = False) -> np.ndarray:
    return mapped_array(**_like(ary))


def managed_array(
    shape, dtype=np.float64, strides=None, order: Order = "C", stream=0, attach_global: bool = True
) -> np.ndarray:
    """Make an array that host and kernels share. On a GPU its pages migrate to whichever touches them."""
    return _shared(shape, dtype, strides, order, stream)


def _shared(shape, dtype, strides, order: Order, stream) -> MappedArray:
    array = MappedArray._allocate(shape, dtype, order, _strides(strides))
    if stream:
        array._stream = int(stream)
    return array


def is_cuda_array(obj) -> bool:
    """Return whether `obj` says that it is in device memory."""
    return hasattr(obj, "__cuda_array_interface__")


def as_cuda_array(obj, sync: bool = True) -> OnDevice:
    """Return an array of another library, such as CuPy, as one of Numba that shares its memory."""
    if not is_cuda_array(obj):
        raise TypeError("*obj* doesn't implement the cuda array interface.")
    if isinstance(obj, OnDevice):
        return from_host(obj)
    return from_cuda_array_interface(obj.__cuda_array_interface__, obj, sync)


def from_cuda_array_interface(desc: dict, owner=None, sync: bool = True) -> DeviceNDArray:
    """Return an array that shares the memory that a `__cuda_array_interface__` describes, and keeps `owner` alive."""
    array = from_interface(desc, owner)
    if not desc.get("stream"):
        return array
    stream = external_stream(desc["stream"])
    if sync and config.CUDA_ARRAY_INTERFACE_SYNC:
        stream.synchronize()
    return array.bind(stream)


def open_ipc_array(handle, shape, dtype, strides=None, offset=0):
    raise NotImplementedError("memory of the simulator belongs to one process; give the other one a copy")


def _strides(strides) -> tuple[int, ...] | None:
    return (int(strides),) if isinstance(strides, int | np.integer) else strides


def _like(ary) -> dict:
    host = ary._view if isinstance(ary, DeviceArray) else ary
    return {"shape": host.shape, "dtype": host.dtype, "strides": np.empty_like(host, subok=False).strides}


# -- streams, events, devices ------------------------------------------------------------------------------------------


def is_available() -> bool:
    """Return whether kernels can be launched on the simulator: they can, unless NUMBA_DISABLE_CUDA is set."""
    return disabled() is None


def cuda_error() -> str | None:
    """Return why the device cannot be used, None if it can. No driver is used, so none has failed."""
    return disabled()


def is_float16_supported() -> bool:
    return device.supports_float16


def is_bfloat16_supported() -> bool:
    return device.supports_bfloat16


def is_fp8_supported() -> bool:
    return device.supports_fp8


def synchronize() -> None:
    """Wait for the device. A launch returns when its kernel has run, but for those on `warplab.virtual_devices`."""
    context.synchronize()


def stream() -> Stream:
    return Stream()


def default_stream() -> Stream:
    return Stream(0)


def legacy_default_stream() -> Stream:
    return Stream(1)


def per_thread_default_stream() -> Stream:
    return Stream(2)


def external_stream(ptr: int) -> Stream:
    """Return the stream of another library, such as `cupy.cuda.Stream().ptr`. Work in it is done already."""
    return Stream(ptr, external=True)


def event(timing: bool = True) -> Event:
    return Event()


def current_context(devnum: int | None = None) -> Context:
    in_use()
    return context


def require_context(fn: Callable) -> Callable:
    """Return `fn` itself, as the one context is always there."""
    return fn


def get_current_device() -> Device:
    """Return the simulated device, named "PTX simulator"."""
    in_use()
    return gpus.current


def select_device(device_id: int) -> Device:
    if not 0 <= device_id < len(gpus):
        have = "the one simulated device is 0" if len(gpus) == 1 else f"there are 0 to {len(gpus) - 1}"
        raise ValueError(f"device {device_id} does not exist; {have}; `with virtual_devices(k):` makes k of them")
    siblings = simulator.default_device().siblings
    if siblings:
        simulator.replace_device(siblings[device_id])
    return gpus[device_id]


def list_devices() -> DeviceList:
    return gpus


def close() -> None:
    """Do nothing: arrays are freed with their last reference."""


@contextlib.contextmanager
def defer_cleanup() -> Iterator[None]:
    """Free arrays later on a GPU; here freeing one delays nothing."""
    yield


@contextlib.contextmanager
def profiling() -> Iterator[None]:
    """Limit what NVIDIA's profilers record, none of which is here. `with warplab.profile() as p:` counts."""
    yield


def profile_start() -> None:
    """Do nothing, as `profiling`."""


def profile_stop() -> None:
    """Do nothing, as `profiling`."""


def detect() -> bool:
    """Print the devices that kernels can run on; return whether there is one."""
    print(f"Found {len(gpus)} CUDA devices")
    print(f"id {device.id}    {device.name!r:>20} {'[SIMULATED]':>40}")
    for key, value in (
        ("Compute Capability", "{}.{}".format(*device.compute_capability)),
        ("Memory", f"{device.get_primary_context().get_memory_info().total:,} bytes"),
    ):
        print(f"{key:>40}: {value}")
    print(f"Summary:\n\t{len(gpus)}/{len(gpus)} devices are supported")
    return True
