"""cupy.cuda on the simulator: streams, events, the device."""

from __future__ import annotations

import types

import numpy as np

from warplab.dropin import simulated_device as _device
from warplab.dropin.cupy._core.missing import missing as _missing
from warplab.simulator.constants import WARP_SIZE as _WARP_SIZE
from warplab.simulator.run.launch_limits import MAX_THREADS as _MAX_THREADS

get_elapsed_time = _device.elapsed_time


def is_available() -> bool:
    """Return True: kernels can be launched, on the simulator."""
    return True


class Event:
    """An event. It orders work and has no time, as `get_elapsed_time` says."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.done = True

    def record(self, stream=None) -> None:
        pass

    def synchronize(self) -> None:
        pass


class Stream:
    """A stream; also a context manager. Work in it is done when the call returns."""

    ptr = 0
    null: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority=None) -> None:
        self.done = True

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_) -> None:
        pass

    def use(self) -> Stream:
        return self

    def synchronize(self) -> None:
        pass

    def record(self, event: Event | None = None) -> Event:
        return Event() if event is None else event

    def wait_event(self, event: Event) -> None:
        pass


Stream.null = Stream(null=True)


def get_current_stream() -> Stream:
    return Stream.null


class Device:
    """The simulated device, number 0."""

    def __init__(self, device: int | None = None) -> None:
        if device not in (None, 0):
            raise ValueError(f"device {device} does not exist; the one simulated device is 0")
        self.id = 0

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_) -> None:
        pass

    def use(self) -> None:
        pass

    def synchronize(self) -> None:
        pass

    @property
    def compute_capability(self) -> str:
        return "".join(map(str, _device.COMPUTE_CAPABILITY))

    @property
    def mem_info(self) -> tuple[int, int]:
        """Bytes of device memory: free, total."""
        free, total = _device.memory_info()
        return free, total


def alloc_pinned_memory(size: int) -> np.ndarray:
    """Allocate `size` bytes on the host, for np.frombuffer. On a GPU they are locked; here that changes nothing."""
    return np.empty(size, np.uint8)


def _get_device_properties(device: int = 0) -> dict:
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


runtime = types.SimpleNamespace(
    deviceSynchronize=lambda: None,
    getDevice=lambda: 0,
    getDeviceCount=lambda: 1,
    getDeviceProperties=_get_device_properties,
    memGetInfo=lambda: Device().mem_info,
)


def __getattr__(name: str):
    raise _missing("cupy.cuda", name)
