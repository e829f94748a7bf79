"""cupy.cuda on the simulator: streams, events, the device."""

from __future__ import annotations

import types

import numpy as np

from warplab.dropin import runtime as _runtime

get_elapsed_time = _runtime.elapsed_time


def is_available() -> bool:
    """True: kernels can be launched, on the simulator."""
    return True


class Event:
    """An event. It orders work; it has no time: `get_elapsed_time` says so."""

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
            raise ValueError(f"there is one simulated device, 0; not {device}")
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
        return "".join(map(str, _runtime.COMPUTE_CAPABILITY))

    @property
    def mem_info(self) -> tuple[int, int]:
        """Bytes of device memory: free, total."""
        return tuple(_runtime.memory_info())


def alloc_pinned_memory(size: int) -> np.ndarray:
    """`size` bytes of the host, for np.frombuffer. On a GPU they are locked; here that changes nothing."""
    return np.empty(size, np.uint8)


def _get_device_properties(device: int = 0) -> dict:
    limits = _runtime.SimulatedDevice
    return {
        "name": _runtime.NAME.encode(),
        "major": _runtime.COMPUTE_CAPABILITY[0],
        "minor": _runtime.COMPUTE_CAPABILITY[1],
        "warpSize": limits.WARP_SIZE,
        "maxThreadsPerBlock": limits.MAX_THREADS_PER_BLOCK,
        "sharedMemPerBlock": limits.MAX_SHARED_MEMORY_PER_BLOCK,
        "multiProcessorCount": limits.MULTIPROCESSOR_COUNT,
        "totalGlobalMem": _runtime.memory_info().total,
    }


runtime = types.SimpleNamespace(
    deviceSynchronize=lambda: None,
    getDevice=lambda: 0,
    getDeviceCount=lambda: 1,
    getDeviceProperties=_get_device_properties,
    memGetInfo=lambda: tuple(_runtime.memory_info()),
)


def __getattr__(name: str):
    raise AttributeError(f"cupy.cuda.{name} is not on the simulator; on a GPU the whole of CuPy is there")
