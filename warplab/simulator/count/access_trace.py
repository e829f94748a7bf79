"""Which addresses the first warps of a launch touched, access by access: what pictures of accesses are drawn from."""

import numpy as np

from warplab.simulator.count.counters import Access, LaunchProfile
from warplab.simulator.count.warp_steps import traced_lanes
from warplab.simulator.memory.device_memory import DeviceMemory
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.observer import NOBODY, Observer
from warplab.simulator.translate.block_writer import Site


class AccessTrace(Observer):
    """The first `most` accesses of the first `warps` warps of a launch."""

    def __init__(self, memory: DeviceMemory, warps: int, most: int) -> None:
        self.memory, self.warps, self.most = memory, warps, most
        self.accesses: list[Access] = []

    def watch(self, chunk) -> Observer:
        if chunk.first_block:
            return NOBODY
        lanes = np.arange(min(traced_lanes(chunk.threads, self.warps), chunk.lanes))
        self._traced = lanes, lanes // chunk.threads, lanes % chunk.threads
        return super().watch(chunk)

    def end_launch(self, profile: LaunchProfile, finished: bool) -> None:
        profile.accesses = self.accesses

    def wants(self, event: str, space: str = "") -> int | None:
        return self._traced[0].size if len(self.accesses) < self.most else 0

    def load(self, site: Site, space: str, addresses: Addresses, lanes: np.ndarray | None, _=None) -> None:
        if len(self.accesses) >= self.most:
            return
        chunk = self.chunk
        if lanes is None:
            lanes, block, thread = self._traced
        else:
            lanes = lanes[: np.searchsorted(lanes, traced_lanes(chunk.threads, self.warps))]
            block, thread = lanes // chunk.threads, lanes % chunk.threads
        if not lanes.size:
            return
        first = Addresses(addresses.base[: lanes.size]).at(site.offset)  # or the one of all lanes
        address = first.copy() if first.shape == lanes.shape else np.repeat(first, lanes.size)
        start, name = 0, None
        if space == "global":
            allocation = self.memory.find(int(address[0]))
            if allocation is not None:
                start, name = allocation.address, allocation.name
        elif space == "shared":
            base, _ = chunk.own_memory(space, lanes)
            address = address - base
        where = site.where
        self.accesses.append(
            Access(site.op, space, where.file, where.line, site.width, block, thread, address, name, start)
        )

    copy_request = store = atomic = load
