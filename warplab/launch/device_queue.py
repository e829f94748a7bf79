"""Launches on virtual devices: prepared like any other, queued, and run at the same time by `simulator.DeviceGroup`."""

from dataclasses import replace

from warplab import simulator
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.simulate import PreparedLaunch
from warplab.launch.terms import tell
from warplab.simulator.run.device_group import DeviceGroup, GroupDevice, QueuedLaunch


class DeviceQueue:
    """The launches of one device of a group. `records`: of all launches so far, counters filled in once they have run.

    `counters`: count all launches, not only those inside a profile.
    """

    def __init__(self, group: DeviceGroup, device: GroupDevice, counters: bool) -> None:
        self.group, self.device, self.counters = group, device, counters
        self.records: list[LaunchRecord] = []
        device.queue = self

    def add(
        self,
        prepared: PreparedLaunch,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        options: simulator.Options,
    ) -> LaunchRecord:
        """Queue a launch, and return its record. Raises PeerAccess for an array that the device cannot reach, and
        InvalidLaunch."""
        bound = prepared.bound
        record = LaunchRecord(prepared.kernel, grid, block, assemble=bound.assemble, max_registers=bound.max_registers)
        arrays = prepared.args  # which must not be freed before the kernel has run

        def done(profile: simulator.LaunchProfile) -> None:
            nonlocal arrays
            arrays = ()
            for name, value in vars(profile).items():
                if name != "kernel":
                    setattr(record, name, value)

        launch = QueuedLaunch(
            self.device.number,
            prepared.kernel,
            prepared.bound.entry,
            grid,
            block,
            prepared.bound.params,
            shared_bytes,
            replace(options, counters=options.counters or self.counters),
            prepared.array_names,
            done,
        )
        for address, name in prepared.array_names.items():
            allocation = self.device.memory.find(address)
            if allocation is not None:
                self._reach(prepared.kernel, name, allocation)
                launch.arrays.append((allocation, name, allocation.item, allocation.origin))
        self.group.add(launch)
        self.records.append(record)
        return record

    def _reach(self, kernel: str, name: str, allocation: simulator.Allocation) -> None:
        own, owner = self.device.number, allocation.device
        if owner is None or owner == own or (own, owner) in self.group.peer_access:
            return
        raise simulator.PeerAccess(
            f"argument `{name}` of kernel {kernel} is an array of device {owner}, to which device {own} has no peer "
            "access",
            reason=f"Enable it first, devices[{own}].enable_peer_access({owner}), as cudaDeviceEnablePeerAccess does; "
            f"or launch the kernel on device {owner}.",
            array=name,
        )

    def synchronize(self) -> None:
        """Run what is queued on any device of the group."""
        try:
            self.group.run()
        except simulator.SimulatorError as error:
            tell(error)
            raise
