"""cupy.cuda.device on the simulator."""

from __future__ import annotations

from collections.abc import Sequence as _Sequence

from warplab import simulator as _simulator
from warplab.dropin import simulated_device as _device
from warplab.dropin.cupy._core.missing import missing as _missing


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


def get_device_id() -> int:
    """Return the number of this thread's current device."""
    return _simulator.default_device().number


def get_compute_capability() -> str:
    return Device().compute_capability


def __getattr__(name: str):
    raise _missing("cupy.cuda.device", name)
