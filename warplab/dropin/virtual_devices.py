"""`virtual_devices(k)`: several simulated GPUs in one address space, whose kernels run at the same time.

    with virtual_devices(2) as devices:
        data = [device.asarray(x) for x in host]
        flags = [device.zeros(1, np.uint32) for device in devices]
        devices[0].launch(send, 1, 32, (data[0], data[1], flags[1]))        # queued; arrays of other devices will do
        devices[1].launch(wait, 1, 32, (data[1], flags[1]))
        devices.synchronize()                                               # both run; errors are raised here

They are simulated on every machine, also on one with GPUs. Without a GPU the stand-in for CuPy works on them as CuPy
does on real ones: `with cp.cuda.Device(1):` chooses where arrays go and kernels run.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from warplab import simulator
from warplab.dropin import cupy
from warplab.dropin.cupy import cuda as cupy_cuda
from warplab.hardware import backend
from warplab.launch import profiling
from warplab.launch.device_queue import DeviceQueue
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.simulate import simulate
from warplab.simulator.run.device_group import MOST_DEVICES, DeviceGroup, GroupDevice


class VirtualDevice:
    """One of several simulated GPUs. `id`: its number. `launches`: records of all launches on it, in order."""

    def __init__(self, device: GroupDevice, queue: DeviceQueue) -> None:
        self._device, self._queue = device, queue
        self.id = device.number

    # -- arrays ----------------------------------------------------------------------------------------------------

    def asarray(self, a, dtype=None) -> cupy.ndarray:
        """Return a copy of a NumPy array, or an array of any device, on this device."""
        with simulator.using_device(self._device):
            return cupy.array(a, dtype)

    def empty(self, shape, dtype=float) -> cupy.ndarray:
        """Make an array of undefined values; a kernel that reads one before it is written fails."""
        with simulator.using_device(self._device):
            return cupy.empty(shape, dtype)

    def zeros(self, shape, dtype=float) -> cupy.ndarray:
        with simulator.using_device(self._device):
            return cupy.zeros(shape, dtype)

    def full(self, shape, fill_value, dtype=None) -> cupy.ndarray:
        with simulator.using_device(self._device):
            return cupy.full(shape, fill_value, dtype)

    # -- launches --------------------------------------------------------------------------------------------------

    def launch(self, kernel, grid, block, args: tuple, *, shared_bytes: int = 0, **options) -> LaunchRecord:
        """Queue a launch on this device; `devices.synchronize()` runs it together with those of other devices.

        `kernel`, `options`: as `warplab.simulate` takes them. `grid`, `block`: ints or tuples of up to three. `args`:
        arrays of this or of other devices, and numbers. `shared_bytes`: dynamic shared memory per block. Returns the
        record, whose counters are there once the launch has run. Raises ArgumentError, PeerAccess, InvalidLaunch.
        """
        options.setdefault("counters", self._queue.counters or profiling.active())
        record = simulate(
            kernel, grid, block, tuple(args), device=self._device, shared_bytes=operator.index(shared_bytes), **options
        )
        profiling.record(record)
        return record

    @property
    def launches(self) -> list[LaunchRecord]:
        return list(self._queue.records)

    @property
    def counts(self) -> simulator.Counts:
        """Return counters summed over the launches that have run."""
        return sum((launch.counts for launch in self._queue.records), simulator.Counts())

    def synchronize(self) -> None:
        """Run what is queued, on the other devices as well."""
        self._device.synchronize()

    # -- peers -----------------------------------------------------------------------------------------------------

    def enable_peer_access(self, peer: int) -> None:
        """Let kernels of this device access the memory of device number `peer`. Raises ValueError if there is none."""
        peer = cupy_cuda.Device(peer, siblings=self._queue.group.devices).id
        self._queue.group.peer_access.add((self.id, peer))

    def can_access_peer(self, peer: int) -> bool:
        return peer == self.id or (self.id, peer) in self._queue.group.peer_access

    # -- as the current device -------------------------------------------------------------------------------------

    def __enter__(self) -> VirtualDevice:
        if backend.name() == "gpu":
            raise RuntimeError(
                "on a machine with a GPU `cp` and `cuda` are CuPy and Numba themselves, which know no virtual devices: "
                f"write devices[{self.id}].asarray(x) and devices[{self.id}].launch(kernel, grid, block, args), or set "
                "WARPLAB_BACKEND=simulator before Python starts"
            )
        simulator.push_device(self._device)
        return self

    def __exit__(self, *_) -> None:
        simulator.pop_device()

    def __int__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<virtual device {self.id} of {len(self._queue.group.devices)}>"


class VirtualDevices(Sequence[VirtualDevice]):
    """Devices 0 to k - 1; device 0 is the current one inside `with`, whose end synchronizes."""

    def __init__(self, group: DeviceGroup, counters: bool) -> None:
        self._group = group
        self._devices = [VirtualDevice(device, DeviceQueue(group, device, counters)) for device in group.devices]

    def __getitem__(self, index):
        return self._devices[index]

    def __len__(self) -> int:
        return len(self._devices)

    def synchronize(self) -> None:
        """Run all queued launches: those of one device one after another, those of several at the same time.

        Raises DeviceRace, DeviceDeadlock, PeerAccess, or what any one kernel does wrong; what has not run then is
        forgotten.
        """
        self._devices[0].synchronize()

    def __enter__(self) -> VirtualDevices:
        if backend.name() != "gpu":  # there `cp` is CuPy itself, which knows nothing of these
            simulator.push_device(self._group.devices[0], everywhere=True)
        return self

    def __exit__(self, kind, *_) -> None:
        try:
            if kind is None:
                self.synchronize()
        finally:
            if backend.name() != "gpu":
                simulator.pop_device(everywhere=True)

    def __repr__(self) -> str:
        return f"<{len(self)} virtual devices>"


def virtual_devices(
    k: int, *, peer_access: bool | Iterable[tuple[int, int]] = True, counters: bool = True, memory_bytes: int = 4 << 30
) -> VirtualDevices:
    """Make k simulated GPUs, 1 to 16, in one address space, for `with virtual_devices(k) as devices:`.

    `peer_access`: whether each can access the memory of all others, or pairs (a, b) where device a can access that of
    device b. `counters`: count what the launches do. `memory_bytes`: of all devices together; of the process's address
    space they take four times as much. Raises ValueError for a k or a pair out of range.
    """
    k = operator.index(k)
    if not 1 <= k <= MOST_DEVICES:
        raise ValueError(f"virtual_devices({k}): give a number of devices from 1 to {MOST_DEVICES}")
    every = {(a, b) for a in range(k) for b in range(k) if a != b}
    pairs = every if peer_access is True else set(peer_access or ())
    if not pairs <= every:
        raise ValueError(
            f"peer_access has {sorted(pairs - every)}; give pairs of two different devices from 0 to {k - 1}"
        )
    return VirtualDevices(DeviceGroup(k, pairs, memory_bytes), counters)
