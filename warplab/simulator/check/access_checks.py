"""Tests before each access what compute-sanitizer would catch: bounds, host pointers, alignment, unwritten memory."""

import numpy as np

from warplab.simulator.errors import HostPointer, IllegalAddress, MisalignedAddress, UninitializedRead
from warplab.simulator.memory.array_locations import describe_array, describe_element, describe_shared, element
from warplab.simulator.memory.device_memory import DeviceMemory, is_host_address
from warplab.simulator.memory.lane_access import Addresses, are_written, mark_written
from warplab.simulator.observer import Observer
from warplab.simulator.translate.unwritten_fragments import RegisterRead

_TOO_LITTLE = "or was too little dynamic shared memory given at the launch?"
_OTHER_BLOCK = " An address of another block of the cluster (mapa) needs .shared::cluster, or a generic address."
_ACCESS = {"load": "a load", "store": "a store", "atomic": "an atomic operation"}


class Checks(Observer):
    """The checks of one launch. One that fails raises an error for the lowest lane concerned.

    `reads`: whether reads of what nobody wrote are errors; `shared_reads`: those of shared memory by themselves.
    """

    def __init__(self, memory: DeviceMemory, shared_reads: bool = True, reads: bool = True) -> None:
        self.memory, self.shared_reads, self.reads = memory, shared_reads, reads

    def wants(self, event: str, space: str = "") -> int | None:
        return 0

    def load(self, site, space: str, addresses: Addresses, lanes) -> None:
        allocation = self._bounds(site, space, addresses, lanes)
        self._readable(site, space, addresses, lanes, allocation)

    copy_read = load

    def _readable(self, site, space: str, addresses: Addresses, lanes, allocation) -> None:
        if space == "shared":
            arrays = self.chunk.access.shared
            if not arrays.complete:
                if arrays.all_written():
                    arrays.complete = True
                elif self.shared_reads:
                    self.initialized(site, space, addresses, lanes, arrays.written)
        elif space in ("global", "const") and (allocation is None or not allocation.complete):
            self.initialized(site, space, addresses, lanes, self.memory.written)

    def store(self, site, space: str, addresses: Addresses, lanes, values) -> None:
        self._note_written(site, space, addresses, self._bounds(site, space, addresses, lanes))

    copy_done = store

    def copy_issued(self, site, addresses: Addresses, lanes, values) -> None:
        self._bounds(site, "shared", addresses, lanes)
        shared = self.chunk.access.shared
        shared.complete = False
        mark_written(shared.written, addresses, site, 0)

    def mbarrier(self, site, addresses: Addresses, lanes, initialises: bool) -> None:
        if initialises:
            self.store(site, "shared", addresses, lanes, None)
        else:
            self.atomic(site, "shared", addresses, lanes, reads=True)

    def atomic(self, site, space: str, addresses: Addresses, lanes, reads: bool) -> None:
        """Examine an atomic operation. `reads`: the old value matters, as it does for all operations but an exchange
        whose result nobody uses."""
        allocation = self._bounds(site, space, addresses, lanes)
        if reads:
            self._readable(site, space, addresses, lanes, allocation)
        else:
            self._note_written(site, space, addresses, allocation)

    def reduced(self, site, space: str, addresses: Addresses, lanes) -> None:
        self.atomic(site, space, addresses, lanes, reads=True)

    def _note_written(self, site, space: str, addresses: Addresses, allocation) -> None:
        if space == "shared":
            if not self.chunk.access.shared.complete:
                mark_written(self.chunk.access.shared.written, addresses, site)
        elif space == "global" and (allocation is None or not allocation.complete):
            mark_written(self.memory.written, addresses, site)

    # -- bounds and alignment ------------------------------------------------------------------------------

    def _bounds(self, site, space: str, addresses: Addresses, lanes):
        if (addresses.bits | site.offset) & (site.width - 1):
            self._misaligned(site, space, addresses, lanes)
        if space in ("global", "const"):
            allocation = self.chunk.access.allocation(site, addresses)
            if allocation is None:
                self._scattered(site, addresses, lanes)
            return allocation
        start, size = self.chunk.own_memory(space, lanes)
        if space == "shared" and site.cluster and self.chunk.cluster_blocks > 1:
            self._cluster_bounds(site, addresses, start, size, lanes)
            return None
        low, high = addresses.relative(start)
        if low + site.offset < 0 or high + site.offset + site.width > size:
            distance = (addresses.at(site.offset) - start).view(np.int64)
            self._outside_own(site, space, distance, size, lanes)
        return None

    def _cluster_bounds(self, site, addresses: Addresses, start: np.ndarray, size: int, lanes) -> None:
        """Do the same for an access that may reach the shared memory of all blocks of the cluster."""
        stride, blocks = self.chunk.shared_stride, self.chunk.cluster_blocks
        address, own = addresses.at(site.offset).view(np.int64), start.view(np.int64) // stride
        block, offset = np.divmod(address, stride)
        bad = (block // blocks != own // blocks) | (offset + site.width > size)
        if bad.any():
            nearest = np.clip(block, own // blocks * blocks, own // blocks * blocks + blocks - 1)
            distance = np.where(bad, address - nearest * stride, 0)
            self._outside_own(site, "shared", distance, size, lanes)

    def _shared_offset(self, address: np.ndarray, chosen: np.ndarray, lanes) -> int:
        """Return the byte of its block's shared memory that the first of the chosen lanes accesses."""
        start, _ = self.chunk.own_memory("shared", lanes)
        if self.chunk.cluster_blocks > 1:
            start = address // np.uint64(self.chunk.shared_stride) * np.uint64(self.chunk.shared_stride)
        distance = address - start  # of an absolute address one for all lanes, unlike `start`
        return int(distance[np.broadcast_to(chosen, distance.shape)][0])

    def _scattered(self, site, addresses: Addresses, lanes) -> None:
        """Examine an access whose lanes' addresses lie in several allocations, or outside all of them."""
        address = addresses.at(site.offset)
        bad = ~self.memory.inside(address, site.width)
        if bad.any():
            self._illegal(site, address, bad, lanes)

    def _misaligned(self, site, space: str, addresses: Addresses, lanes) -> None:
        address = addresses.at(site.offset)
        bad = (address & np.uint64(site.width - 1)) != 0
        if bad.any():
            lane, at = self.first(bad, address, lanes)
            what = f"misaligned address: {_ACCESS[site.op]} of {site.width} bytes at {at:#x}"
            allocation = self.memory.find(at) if space == "global" else None
            name, index = None, None
            if allocation is not None:
                name, index = allocation.name, element(allocation, at, site.item)
                what += f", byte {at - allocation.address} of {describe_array(allocation)}, element {index}"
            elif space == "shared":
                place, name, index = describe_shared(self.chunk, self._shared_offset(address, bad, lanes), site.item)
                what = f"misaligned address: {_ACCESS[site.op]} of {site.width} bytes at {place}"
            reason = f"The address of an access of {site.width} bytes must be a multiple of {site.width}."
            raise self.chunk.error(site, lane, what, reason, MisalignedAddress, address=at, array=name, index=index)

    def _illegal(self, site, address: np.ndarray, bad: np.ndarray, lanes) -> None:
        lane, at = self.first(bad, address, lanes)
        what = f"illegal address: {_ACCESS[site.op]} of {site.width} bytes at {at:#x}"
        count = int(np.broadcast_to(bad, self.chunk.lanes if lanes is None else lanes.size).sum())
        others = f" (so do {count - 1:,} other threads)" if count > 2 else " (so does one more)" if count == 2 else ""
        freed, near = self.memory.find_freed(at), self.memory.nearest(at)
        if is_host_address(at):
            what += f": that is host memory, which a kernel cannot reach{others}"
            reason = "Copy the data to the device first (cuda.to_device, cp.asarray) and pass that array."
            raise self.chunk.error(site, lane, what, reason, HostPointer, address=at)
        if freed is not None:
            array, index = freed.name, element(freed, at, site.item)
            what += f": element {index} of {describe_array(freed)}, which has been freed{others}"
            reason = "Keep the array alive until the kernel has run."
            if freed.of_heap:
                reason = "A thread gave it back (free, delete): do that after the last use by any thread."
        elif near is not None:
            array, index = near.name, element(near, at, site.item)
            if at >= near.address:
                past = at + site.width - near.end
                what += f": {past:,} bytes past the end of {describe_array(near)}, element {index}{others}"
                last = "i" if site.count == 1 else f"{site.count} * i + {site.count - 1}"
                reason = f"Is a guard missing (`if {last} < n`), or is the index or the size wrong?"
            else:
                what += (
                    f": {near.address - at:,} bytes before the start of {describe_array(near)}, element {index}{others}"
                )
                reason = "Is an index negative?"
        else:
            array = index = None
            what += f": outside every array{others}"
            reason = "No array is there: is the index computed from the right values, or does it overflow 32 bits?"
            if at < 1 << 20:
                reason = "A null pointer, or an index far outside its array."
        raise self.chunk.error(site, lane, what, reason, IllegalAddress, address=at, array=array, index=index)

    def _outside_own(self, site, space: str, distance: np.ndarray, size: int, lanes) -> None:
        bad = (distance < 0) | (distance + site.width > size)
        lane, at = self.first(bad, distance, lanes)
        owner = {"shared": "block", "local": "thread"}[space]
        place, name, index = f"byte {at} of {space} memory", None, None
        if space == "shared":
            place, name, index = describe_shared(self.chunk, at, site.item)
        reason = f"Is an index of the {space} array "
        if at < 0:
            reason += "negative?"
        else:
            dynamic = space == "shared" and self.chunk.translation.entry.shared_variables(dynamic=True)
            reason += f"too large, {_TOO_LITTLE}" if dynamic else "too large?"
            reason += " Each block has its own." * (space == "shared" and self.chunk.cluster_blocks == 1)
        if space == "shared" and self.chunk.cluster_blocks > 1 and not site.cluster:
            reason += _OTHER_BLOCK
        what = (
            f"illegal address: {_ACCESS[site.op]} of {site.width} bytes at {place}, "
            f"of which the {owner} has {size} bytes"
        )
        raise self.chunk.error(site, lane, what, reason, IllegalAddress, address=at, array=name, index=index)

    # -- initialisation ------------------------------------------------------------------------------------

    def initialized(self, site, space: str, addresses: Addresses, lanes, record) -> None:
        """Raise UninitializedRead if a lane reads bytes that nobody wrote, by their `record`."""
        good = are_written(record, addresses, site)
        if good.all() or not self.reads:
            return
        address = addresses.at(site.offset)
        if space != "shared":  # complete arrays have no record of their bytes
            complete = [getattr(self.memory.find(int(a)), "complete", False) for a in address[~good]]
            good[~good] = complete
            if good.all():
                return
        lane, at = self.first(~good, address, lanes)
        what = "was never written"
        if space == "shared":
            place, name, index = describe_shared(self.chunk, self._shared_offset(address, ~good, lanes), site.item)
            reason = (
                "Is a store to shared memory, or a barrier before this load, missing? "
                "A barrier inside an `if` does not hold the threads that skip it."
            )
            copy = self.chunk.copies.under_way(at, site.width)
            if copy is not None:
                what = f"is still being copied (line {copy.where.line})"
                reason = (
                    "The copy is asynchronous: wait for it (cp.async.wait_group, __pipeline_wait_prior, consumer_wait, "
                    "an mbarrier), and where other threads copied, pass a __syncthreads() after the wait."
                )
        else:
            allocation = self.memory.find(at)
            assert allocation is not None  # `_bounds` has found it
            name = allocation.name
            place, index = describe_element(allocation, at, site.item)
            reason = "Fill the array before the kernel reads it; `empty` and `device_array` leave it uninitialised."
        what = f"uninitialised read: {place} {what}"
        raise self.chunk.error(site, lane, what, reason, UninitializedRead, address=at, array=name, index=index)

    def read_registers(self, read: RegisterRead, written: tuple[np.ndarray, ...], lanes) -> None:
        good = np.logical_and.reduce(np.broadcast_arrays(*written))
        if self.reads and not good.all():
            lane, _ = self.first(~good, good, lanes)
            what = f"uninitialised read: {read.what} is in registers that nothing wrote"
            raise self.chunk.error(read, lane, what, read.reason, UninitializedRead)

    @staticmethod
    def first(bad: np.ndarray, values: np.ndarray, lanes) -> tuple[int, int]:
        """Return the number and value of the first lane for which `bad` holds."""
        place = int(np.argmax(bad))
        lane = place if lanes is None else int(lanes[place if bad.shape[0] > 1 else 0])
        return lane, int(values[place if values.shape[0] > 1 else 0])
