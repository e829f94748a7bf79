"""cupy.cuda on the simulator: streams, events, the device."""

from __future__ import annotations

import types
from collections.abc import Sequence as _Sequence

import numpy as np

from warplab import simulator as _simulator
from warplab.dropin import simulated_device as _device
from warplab.dropin.cupy._core.missing import missing as _missing
from warplab.dropin.cupy.cuda import texture
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
        _simulator.default_device().synchronize()

    def record(self, event: Event | None = None) -> Event:
        return Event() if event is None else event

    def wait_event(self, event: Event) -> None:
        pass


Stream.null = Stream(null=True)


def get_current_stream() -> Stream:
    return Stream.null


class Device:
    """The current simulated device, or number `device` of those that share its memory (`warplab.virtual_devices`).

    As a context manager it is the current one inside the block.
    """

    def __init__(self, device: int | None = None, *, siblings: _Sequence[_simulator.Device] = ()) -> None:
        current = _simulator.default_device()
        every = siblings or current.siblings or (current,)
        number = current.number if device is None else int(device)
        if not 0 <= number < len(every):
            have = "the one simulated device is 0" if len(every) == 1 else f"there are 0 to {len(every) - 1}"
            raise ValueError(f"device {device} does not exist; {have}; `with virtual_devices(k):` makes k of them")
        self.id, self._device = number, every[number]

    def __enter__(self) -> Device:
        _simulator.push_device(self._device)
        return self

    def __exit__(self, *_) -> None:
        _simulator.pop_device()

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other) -> bool:
        return isinstance(other, Device) and other._device is self._device

    def __hash__(self) -> int:
        return hash((Device, self.id))

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def use(self) -> None:
        _simulator.replace_device(self._device)

    def synchronize(self) -> None:
        self._device.synchronize()

    @property
    def compute_capability(self) -> str:
        return "".join(map(str, _device.COMPUTE_CAPABILITY))

    @property
    def mem_info(self) -> tuple[int, int]:
        """Return bytes of device memory: free, total."""
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


def _peers(device: int, peer: int) -> tuple[set[tuple[int, int]], tuple[int, int]]:
    """Return the pairs of devices with peer access, and this pair."""
    here, there = Device(device), Device(peer)
    if here.id == there.id:
        raise ValueError(f"device {device} and its peer are the same; give two devices")
    return here._device.queue.group.peer_access, (here.id, there.id)


def _can_access_peer(device: int, peer: int) -> int:
    _peers(device, peer)
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
    setDevice=lambda device: Device(device).use(),
    getDeviceProperties=_get_device_properties,
    memGetInfo=lambda: Device().mem_info,
)


def __getattr__(name: str):
    raise _missing("cupy.cuda", name)
