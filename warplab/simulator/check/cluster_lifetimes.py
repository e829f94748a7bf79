"""Accesses to the shared memory of another block of the cluster, which must have begun and must not have ended.

Blocks of a cluster start and end when they like. A thread may access another block's shared memory only after it has
heard of that block, as at a barrier of the cluster. The other block may end only after one of its threads has heard of
the access. `vector_clocks` know who has heard of what, so the order in which blocks run here plays no part.
"""

import numpy as np

from warplab.simulator.check.vector_clocks import Clocks
from warplab.simulator.memory.lane_access import Addresses

_MEET = "(cluster.sync(), barrier.cluster.arrive and wait)"


class ClusterLifetimes:
    """Of the clusters of one chunk."""

    def __init__(self, chunk, clocks: Clocks) -> None:
        self.chunk, self.clocks = chunk, clocks
        self.lanes = chunk.threads * chunk.cluster_blocks  # of a cluster
        # When each lane of a cluster last accessed each block, plus 1, and by which site.
        self.time, self.site = np.zeros((2, chunk.blocks, self.lanes), np.int32)
        self.sites: dict[int, object] = {}
        # Who has arrived where, and who knows so: even a relaxed arrival says that a block has begun.
        self.arrived: dict[int, np.ndarray] = {}
        self.begun = np.zeros((chunk.lanes, chunk.cluster_blocks), bool)

    def arrive(self, places: np.ndarray, lanes: np.ndarray) -> None:
        rank = self.chunk.block_of[lanes] % self.chunk.cluster_blocks
        places = np.broadcast_to(places, lanes.shape)
        for place in np.unique(places).tolist():
            room = self.arrived.setdefault(place, np.zeros(self.chunk.cluster_blocks, bool))
            room[rank[places == place]] = True

    def wait_over(self, places: np.ndarray, lanes: np.ndarray) -> None:
        places = np.broadcast_to(places, lanes.shape)
        for place in np.unique(places).tolist():
            if place in self.arrived:
                self.begun[lanes[places == place]] |= self.arrived[place]

    def access(self, site, addresses: Addresses, lanes) -> None:
        """Examine an access to shared memory, perhaps that of another block."""
        chunk = self.chunk
        every = chunk.all_lanes if lanes is None else lanes
        block = addresses.at(site.offset).view(np.int64) // max(1, chunk.shared_stride)
        block = np.broadcast_to(block, every.shape)
        other = block != chunk.block_of[every]
        if not other.any():
            return
        every, block = every[other], block[other]
        warps = self.clocks.warps // chunk.cluster_blocks
        column = block % chunk.cluster_blocks * warps
        known = self.clocks.known.arrays
        heard = self.begun[every, block % chunk.cluster_blocks]
        for warp in () if heard.all() else range(warps):
            heard |= (known["whole"][every, column + warp] > 0) | (known["part"][every, column + warp] > 0)
        if not heard.all():
            place = int(np.argmin(heard))
            self._report(site, int(every[place]), int(block[place]), begun=False)
        self.time[block, every % self.lanes] = self.clocks.now + 1
        self.site[block, every % self.lanes] = site.index
        self.sites[site.index] = site

    def end(self) -> None:
        """Check all blocks, as they have ended. What their threads have heard of, they had heard of before."""
        chunk = self.chunk
        for block in np.flatnonzero(self.time.any(axis=1)):
            others = np.flatnonzero(self.time[block])
            first = block // chunk.cluster_blocks * chunk.cluster_blocks * chunk.threads
            own = np.arange(block * chunk.threads, (block + 1) * chunk.threads)
            heard = np.zeros(others.shape, bool)
            for lane in own:
                if heard.all():
                    break
                left = np.flatnonzero(~heard)
                rows = np.full(left.shape, lane)
                heard[left] = self.clocks.knows(rows, first + others[left], self.time[block, others[left]] - 1)
            if not heard.all():
                other = int(others[np.argmin(heard)])
                self._report(self.sites[int(self.site[block, other])], int(first + other), int(block), begun=True)

    def _report(self, site, lane: int, block: int, begun: bool) -> None:
        chunk = self.chunk
        whose = f"of block {chunk.geometry.block_index(chunk.first_block + block)} of its cluster"
        if begun:
            what, reason = "may have ended by then", f"Let the blocks meet after the last such access {_MEET}."
        else:
            what, reason = "may not have begun yet", f"Let the blocks meet before the first such access {_MEET}."
        raise chunk.error(site, lane, f"a thread accesses the shared memory {whose}, which {what}", reason)
