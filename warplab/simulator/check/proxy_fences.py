"""Missing proxy fences: TMA and wgmma read shared memory that an ordinary store has written, or TMA writes over it.

They go past the way of loads and stores, by the "async proxy" (PTX ISA, "Proxies"). A barrier alone does not let them
see a store: a fence.proxy.async must lie between the two. For each 16 bytes the latest ordinary store is kept, with its
time: the number of fences and synchronisations so far. A read is in order if the thread that wrote has passed the fence
since, as is usual, or a thread of either block that had synchronised since, such as the one that starts the copy.

With `fenced_barriers`, an mbarrier to which TMA reports must be fenced like a store once it is initialised, or by
fence.mbarrier_init. Not those of libcu++'s `init` (mbarrier.init without ::cta): its memcpy_async has no fence either.
"""

import numpy as np

from warplab.simulator.errors import MissingProxyFence
from warplab.simulator.memory.array_locations import describe_shared
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.observer import Observer

_BYTES, _MBARRIER = 16, 8
_REASON = (
    "TMA and wgmma reach shared memory past ordinary stores: each thread that wrote must execute fence.proxy.async "
    "after its stores and before the barrier (cuda::ptx::fence_proxy_async, cde::fence_proxy_async_shared_cta)."
)
_INITIALISED = (
    "TMA reaches mbarriers past ordinary stores: the thread that initialised them must execute fence.mbarrier_init or "
    "fence.proxy.async (fence_barrier_init) after that and before the __syncthreads()."
)


class ProxyFences(Observer):
    """Of one launch. Lanes and times are those of the chunk that runs."""

    def __init__(self, translation, fenced_barriers: bool) -> None:
        self.sites, self.fenced_barriers = translation.sites, fenced_barriers

    def watch(self, chunk) -> "ProxyFences":
        self.barriers = -(-chunk.access.shared.nbytes // _BYTES)  # where the mbarriers begin, behind the pieces
        pieces = self.barriers + -(-chunk.access.shared.nbytes // _MBARRIER)
        self.chunk, self.now = chunk, 0
        self.writer = np.full(pieces, -1, np.int32)  # lane of the latest ordinary store, -1 for none
        self.written_at = np.zeros(pieces, np.int64)
        self.site = np.zeros(pieces, np.int32)
        self.fenced, self.synced = np.full((2, chunk.lanes), -1, np.int64)  # when each lane last did so
        self.covered = np.full(chunk.blocks, -1, np.int64)  # by a fence of a lane that synchronised after that time
        return self

    # -- ordinary stores -------------------------------------------------------------------------------------------

    def store(self, site, space: str, addresses: Addresses, lanes, values) -> None:
        if space == "shared":
            piece, every = self._pieces(site, addresses, lanes)
            self.writer[piece], self.written_at[piece], self.site[piece] = every, self.now, site.index

    atomic = store

    def copy_done(self, site, space: str, addresses: Addresses, lanes, values) -> None:
        """Note cp.async as an ordinary store; the bulk copies are none."""
        if space == "shared" and ".bulk" in site.text:
            piece, _ = self._pieces(site, addresses, lanes)
            self.writer[piece] = -1
        else:
            self.store(site, space, addresses, lanes, values)

    def mbarrier(self, site, addresses: Addresses, lanes, initialises: bool) -> None:
        if initialises and "::cta" in site.text and self.fenced_barriers:
            place, every = self._pieces(site, addresses, lanes, _MBARRIER)
            self.writer[place], self.written_at[place], self.site[place] = every, self.now, site.index
        elif ".bulk" in site.text and self.fenced_barriers:
            self._require_fence("reports to", site, addresses, lanes, _MBARRIER)

    def _pieces(self, site, addresses: Addresses, lanes, size: int = _BYTES) -> tuple[np.ndarray, np.ndarray]:
        every = self.chunk.all_lanes if lanes is None else lanes
        piece = np.broadcast_to(addresses.units(site.offset, size), every.shape)
        return piece + (self.barriers if size == _MBARRIER else 0), every

    # -- what orders -----------------------------------------------------------------------------------------------

    def proxy_fence(self, lanes, kind: str) -> None:
        chosen = slice(None) if lanes is None else lanes
        if kind == "mbarrier_init":
            barriers = self.writer[self.barriers :]
            barriers[np.isin(barriers, self.chunk.all_lanes[chosen])] = -1
        if kind != "async":
            return
        self.now += 1
        self.fenced[chosen] = self.now
        np.maximum.at(self.covered, self.chunk.block_of[chosen], self.synced[chosen])

    def barrier(self, lanes) -> None:
        self.now += 1
        self.synced[slice(None) if lanes is None else lanes] = self.now

    sync_warp = exchange = barrier

    def grid_barrier(self) -> None:
        self.barrier(None)

    def wait_over(self, places: np.ndarray, lanes: np.ndarray) -> None:
        self.barrier(lanes)

    # -- reads -----------------------------------------------------------------------------------------------------

    def copy_read(self, site, space: str, addresses: Addresses, lanes) -> None:
        if space == "shared":
            self._require_fence("reads", site, addresses, lanes)

    def copy_issued(self, site, addresses: Addresses, lanes, values) -> None:
        if ".bulk" in site.text:
            self._require_fence("writes over", site, addresses, lanes)

    def _require_fence(self, does: str, site, addresses: Addresses, lanes, size: int = _BYTES) -> None:
        piece, every = self._pieces(site, addresses, lanes, size)
        writer = self.writer.take(piece)
        if writer.max() < 0:
            return
        time = self.written_at[piece]
        block_of = self.chunk.block_of
        latest = np.maximum(self.fenced[writer], self.covered[block_of[every]])
        missing = (writer >= 0) & (np.maximum(latest, self.covered[block_of[writer]]) <= time)
        if missing.any():
            self._report(does, site, addresses, every, int(np.argmax(missing)), piece)

    def _report(self, does: str, site, addresses: Addresses, every: np.ndarray, place: int, piece: np.ndarray) -> None:
        chunk, at = self.chunk, int(np.broadcast_to(addresses.at(site.offset), every.shape)[place])
        store = self.sites[int(self.site[piece[place]])]
        other = chunk.indices(int(self.writer[piece[place]]))
        what, name, index = describe_shared(chunk, at % chunk.shared_stride, store.item)
        barrier = does == "reports to"
        raise MissingProxyFence(
            f"`{site.text.split()[0]}` {does} {what}, which thread {other[1]} of block {other[0]} "
            f"{'initialised' if barrier else 'wrote by an ordinary store'} at line {store.where.line}, without a "
            f"fence{'' if barrier else '.proxy.async'} in between",
            reason=_INITIALISED if barrier else _REASON,
            address=at,
            array=name,
            index=index,
            other_line=store.where.line,
            other_thread=other,
            **chunk.where(site, int(every[place])),
        )
