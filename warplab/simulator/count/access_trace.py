"""Which addresses the first warps of a launch touched, access by access: what pictures of accesses are drawn from."""

import numpy as np

from warplab.simulator.count.counters import Access, LaunchProfile
from warplab.simulator.count.warp_steps import traced_lanes
from warplab.simulator.memory.device_memory import DeviceMemory
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.observer import Observer
from warplab.simulator.translate.block_writer import Site


class AccessTrace(Observer):
    """The first `most` accesses of the first `warps` warps of a launch."""

    def __init__(self, memory: DeviceMemory, warps: int, most: int) -> None:
        self.memory, self.warps, self.most = memory, warps, most
        self.accesses: list[Access] = []

    def watch(self, chunk) -> Observer:
        return super().watch(chunk) if chunk.first_block == 0 else Observer()

    def end_launch(self, profile: LaunchProfile, finished: bool) -> None:
        profile.accesses = self.accesses

    @property
    def room(self) -> int:
        """Return how many more accesses are traced."""
        return max(0, self.most - len(self.accesses))

    def load(self, site: Site, space: str, addresses: Addresses, lanes: np.ndarray | None, _=None) -> None:
        if len(self.accesses) >= self.most:
            return
        chunk = self.chunk
        threads = chunk.threads
        limit = traced_lanes(threads, self.warps)
        lanes = np.arange(min(limit, chunk.lanes)) if lanes is None else lanes[: np.searchsorted(lanes, limit)]
        if not lanes.size:
            return
        first = Addresses(addresses.base[: lanes.size])  # or the one of all lanes
        address = np.broadcast_to(first.at(site.offset), lanes.shape).copy()
        start, name = 0, None
        if space == "global":
            allocation = self.memory.find(int(address[0]))
            if allocation is not None:
                start, name = allocation.address, allocation.name
        elif space == "shared":
            base, _ = chunk.own_memory(space, lanes)
            address = address - base
        where = site.where
        block, thread = lanes // threads, lanes % threads
        self.accesses.append(
            Access(site.op, space, where.file, where.line, site.width, block, thread, address, name, start)
        )

    copy_request = store = atomic = load
