"""cupy.cuda on the simulator: streams, events, the device, memory."""

import contextlib as _contextlib
import types
from collections.abc import Iterator as _Iterator

import numpy as np

from warplab import simulator as _simulator
from warplab.compile.errors import CompileError as _CompileError
from warplab.dropin import simulated_device as _device
from warplab.dropin.cupy._core.missing import do_nothing as _do_nothing
from warplab.dropin.cupy._core.missing import missing as _missing
from warplab.dropin.cupy._core.missing import small_module as _small_module
from warplab.dropin.cupy.cuda import device, memory, stream, texture
from warplab.dropin.cupy.cuda.device import Device, get_device_id
from warplab.dropin.cupy.cuda.memory import (
    MemoryPointer,
    MemoryPool,
    UnownedMemory,
    alloc,
    get_allocator,
    malloc_managed,
    set_allocator,
    using_allocator,
)
from warplab.dropin.cupy.cuda.stream import Event, ExternalStream, Stream, get_current_stream, get_elapsed_time
from warplab.simulator.constants import WARP_SIZE as _WARP_SIZE
from warplab.simulator.run.launch_limits import MAX_THREADS as _MAX_THREADS


class PinnedMemoryPool:
    """A pool of the host's memory, which holds nothing. That a GPU locks such memory makes no difference here."""

    free_all_blocks = staticmethod(_do_nothing)

    def malloc(self, size: int) -> np.ndarray:
        return alloc_pinned_memory(size)

    def n_free_blocks(self) -> int:
        return 0


def alloc_pinned_memory(size: int) -> np.ndarray:
    """Allocate `size` bytes on the host, for np.frombuffer. On a GPU they are locked; here that changes nothing."""
    return np.empty(size, np.uint8)


set_pinned_memory_allocator = _do_nothing
compiler = _small_module("cupy.cuda.compiler", CompileException=_CompileError)
nvtx = _small_module("cupy.cuda.nvtx", RangePush=_do_nothing, RangePop=_do_nothing, Mark=_do_nothing)


def is_available() -> bool:
    """Return True: kernels can be launched, on the simulator."""
    return True


@_contextlib.contextmanager
def profile() -> _Iterator[None]:
    """Let a profiler of NVIDIA see the block, on a GPU; here `warplab.profile()` counts."""
    yield


def get_local_runtime_version() -> int:
    """Return the version of CUDA's headers that kernels are compiled with, 13000 for 13.0."""
    return runtime.runtimeGetVersion()


def _get_device_properties(number: int = 0) -> dict:
    return {
        "name": _device.NAME.encode(),
        "major": _device.COMPUTE_CAPABILITY[0],
        "minor": _device.COMPUTE_CAPABILITY[1],
        "warpSize": _WARP_SIZE,
        "maxThreadsPerBlock": _MAX_THREADS,
        "sharedMemPerBlock": _device.SHARED_BYTES,
        "multiProcessorCount": _device.MULTIPROCESSORS,
        "totalGlobalMem": _device.memory_info().total,
    }


def _peers(number: int, peer: int) -> tuple[set[tuple[int, int]], tuple[int, int]]:
    """Return the pairs of devices with peer access, and this pair."""
    here, there = Device(number), Device(peer)
    if here.id == there.id:
        raise ValueError(f"device {number} and its peer are the same; give two devices")
    return here._device.queue.group.peer_access, (here.id, there.id)


def _can_access_peer(number: int, peer: int) -> int:
    _peers(number, peer)
    return 1


def _set_peer_access(peer: int, enabled: bool) -> None:
    pairs, pair = _peers(Device().id, peer)
    if (pair in pairs) == enabled:
        raise RuntimeError(f"peer access from device {pair[0]} to device {peer} is {'' if enabled else 'not '}enabled")
    (pairs.add if enabled else pairs.remove)(pair)


runtime = types.SimpleNamespace(
    **texture.CONSTANTS,
    deviceCanAccessPeer=_can_access_peer,
    deviceDisablePeerAccess=lambda peer: _set_peer_access(peer, False),
    deviceEnablePeerAccess=lambda peer: _set_peer_access(peer, True),
    deviceSynchronize=lambda: Device().synchronize(),
    getDevice=lambda: Device().id,
    getDeviceCount=lambda: len(_simulator.default_device().siblings) or 1,
    setDevice=lambda number: Device(number).use(),
    getDeviceProperties=_get_device_properties,
    memGetInfo=lambda: Device().mem_info,
    profilerStart=lambda: None,
    profilerStop=lambda: None,
    runtimeGetVersion=lambda: 13000,
    driverGetVersion=lambda: 13000,
    streamSynchronize=lambda _: Device().synchronize(),
    is_hip=False,
    CUDARuntimeError=RuntimeError,
)


def __getattr__(name: str):
    raise _missing("cupy.cuda", name)
