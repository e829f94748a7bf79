"""Texture fetches and surface reads of what the same launch has written: undefined, whoever wrote it and whatever
barriers there were, as the caches for textures do not follow the writes of a running kernel.
[CUDA Programming Guide, Read/Write Coherency]
"""

import numpy as np

from warplab.simulator.errors import StaleTexel
from warplab.simulator.memory.device_memory import Allocation, DeviceMemory
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.observer import Observer
from warplab.simulator.translate.operations.textures import TexelSite

_REASON = (
    "Let one kernel write and the next one read: textures and surfaces see what was written before a launch, not in it."
)


def may_be_stale(translation) -> bool:
    """Return whether a kernel both reads texels and writes global memory."""
    writes = any(site.op != "load" and site.space in ("global", "generic") for site in translation.sites)
    return writes and any(isinstance(site, TexelSite) and site.op == "load" for site in translation.sites)


class StaleTexels(Observer):
    """Follows the bytes that one launch writes in the memory of textures and surfaces."""

    def __init__(self, memory: DeviceMemory) -> None:
        found = (memory.find(address) for address in memory.handles.addresses())
        self.written: list[tuple[Allocation, np.ndarray]] = [
            (allocation, np.zeros(allocation.nbytes, bool)) for allocation in set(found) if allocation is not None
        ]

    def store(self, site, space: str, addresses: Addresses, lanes, values) -> None:
        if space != "global":
            return
        for allocation, written in self.written:
            offset = addresses.at(site.offset).view(np.int64) - allocation.address
            offset = offset[(offset >= 0) & (offset < allocation.nbytes)]
            for k in range(site.width):
                written[offset + k] = True

    copy_done = store

    atomic = store

    def copy_read(self, site, space: str, addresses: Addresses, lanes) -> None:
        if not isinstance(site, TexelSite):
            return
        for allocation, written in self.written:
            if addresses.low >= allocation.end or addresses.high < allocation.address:
                continue
            offset = addresses.at(site.offset).view(np.int64) - allocation.address
            stale = (offset >= 0) & (offset < allocation.nbytes)
            stale &= np.logical_or.reduce([written.take(offset + k, mode="clip") for k in range(site.width)])
            if stale.any():
                at = int(np.argmax(stale))
                what = "a texture fetch or surface read of memory that this launch has written, which is undefined"
                found = {"address": allocation.address + int(offset[at]), "array": allocation.name}
                raise self.chunk.error(site, self.chunk.lane(at, lanes), what, _REASON, StaleTexel, **found)
