"""Asynchronous copies: cp.async with its groups, and cp.async.bulk. `tensor_copies` serves those with a tensor map.

A copy reads its source when it is issued and writes its destination as late as the hardware may, which is when a thread
waits for it. Until then the destination counts as unwritten: a kernel without the wait is caught. Threads wait for
their own copies with cp.async.wait_group and wait_all, and for those of others at an mbarrier (`mbarriers`).

A bulk copy from shared to global memory also reads its source as late as the hardware may: when its thread waits for
the read (cp.async.bulk.wait_group.read). It writes when its thread waits for the copy (.wait_group) or the kernel ends.
One from shared memory to that of another block of the cluster does both when a thread there waits at the mbarrier.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from warplab.simulator.errors import IllegalAddress, MisalignedAddress
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.lane_groups import subgroup
from warplab.simulator.run.copy_reductions import combined, element_dtype
from warplab.simulator.run.late_reads import require_unchanged
from warplab.simulator.translate.block_writer import Site

_BULK_BYTES = 16  # addresses and sizes of cp.async.bulk are multiples of this
_NONE = np.zeros(1, bool)
_LATER = (
    "Before anyone writes there again, its thread must wait (cp.async.bulk.wait_group.read 0), and a __syncthreads() "
    "must follow."
)
_WAIT_FOR_READS = (
    "The thread that started the copy must commit it (cp.async.bulk.commit_group) and wait "
    "(cp.async.bulk.wait_group.read 0)."
)
_ARRIVED = "The block that wrote must know first that the copy has arrived, such as by an mbarrier or cluster.sync()."


@dataclass(eq=False)
class _Copy:
    """What one instruction copies: one entry per lane, or per 16 bytes of a bulk copy.

    `group`: number of the lane's cp.async group, -1 for bulk copies. `number`: the copy's, in order of issue.
    `source`, `origin`: site and addresses that it reads again on arrival, None if it need not. `operation`: what
    becomes of its values and those at the target (operation and type of the elements), None to replace them.
    """

    site: Site
    lanes: np.ndarray
    group: np.ndarray
    address: np.ndarray
    values: list[np.ndarray]
    number: int
    source: Site | None = None
    origin: np.ndarray | None = None
    operation: tuple[str, str] | None = None

    @functools.cached_property
    def apart(self) -> bool:
        """Return whether each entry has its own address. Threads that copy the same piece do not race by that."""
        address = np.sort(self.address)
        return bool((address[1:] != address[:-1]).all())

    @functools.cached_property
    def target(self) -> Addresses:
        return Addresses(self.address)

    def select(self, chosen: np.ndarray) -> Self:
        values = [value[chosen] for value in self.values]
        origin = None if self.origin is None else self.origin[chosen]
        return replace(
            self,
            lanes=self.lanes[chosen],
            group=self.group[chosen],
            address=self.address[chosen],
            values=values,
            origin=origin,
        )

    def written(self) -> tuple[Site, np.ndarray, np.ndarray, list[np.ndarray]]:
        """Return the accesses that write the target: site, addresses, lanes, values."""
        return self.site, self.address, self.lanes, self.values


@dataclass(eq=False)
class OutCopy(_Copy):
    """A bulk copy out of shared memory. `values`: those of its source, initially as they were at the issue.

    `is_read`: it has read its source.
    """

    is_read: bool = False


class AsynchronousCopies:
    """Copies in flight in one chunk. `lanes` are the group's, None for all lanes of the chunk."""

    def __init__(self, chunk) -> None:
        self.chunk = chunk
        self.copies: list[_Copy] = []
        self.outgoing: list[OutCopy] = []
        self.issued = 0

    @functools.cached_property
    def committed(self) -> np.ndarray:
        """Return how many groups of cp.async each lane has closed."""
        return np.zeros(self.chunk.lanes, np.int64)

    @functools.cached_property
    def committed_bulk(self) -> np.ndarray:
        """Return how many groups of bulk copies out of shared memory each lane has closed."""
        return np.zeros(self.chunk.lanes, np.int64)

    # -- cp.async --------------------------------------------------------------------------------------------------

    def copy(self, source, destination, origin: Addresses, target: Addresses, size, lanes) -> None:
        """Execute cp.async. `source`, `destination`: sites; `size`: bytes to read, None for all; the rest is zeroed."""
        chunk = self.chunk
        every = chunk.all_lanes if lanes is None else lanes
        values = self._read(source, origin, size, lanes)
        read = None if size is None else np.broadcast_to(size > 0, every.shape)
        for notify in chunk.observers.copy:
            notify(destination, source, origin, target, read)
        address = np.broadcast_to(target.base, every.shape)
        self._issue(_Copy(destination, every, self.committed[every], address, values, self.issued))
        self.issued += 1

    def commit(self, lanes) -> None:
        """Execute cp.async.commit_group."""
        self.committed[slice(None) if lanes is None else lanes] += 1

    def wait(self, most: int | None, lanes) -> None:
        """Execute cp.async.wait_group: at most the latest `most` groups of a lane stay in flight. None: wait_all."""
        if not self.copies:
            return
        limit = self._limit(np.iinfo(np.int64).max if most is None else self.committed - most, lanes)
        self.complete(lambda copy: (copy.group >= 0) & (copy.group < limit[copy.lanes]))

    def _limit(self, groups: np.ndarray | int, lanes) -> np.ndarray:
        """Return, for each lane of the chunk, the number of the first group that it does not wait for."""
        limit = np.full(self.chunk.lanes, np.iinfo(np.int64).min)
        waiting = slice(None) if lanes is None else lanes
        limit[waiting] = np.broadcast_to(groups, limit.shape)[waiting]
        return limit

    def complete_of(self, lanes: np.ndarray, before: int) -> None:
        """Complete the cp.async that these lanes issued before copy number `before`."""
        concerned = self._concerned(lanes)
        self.complete(lambda copy: concerned[copy.lanes] & (copy.group >= 0) & (copy.number < before))

    def _concerned(self, lanes: np.ndarray) -> np.ndarray:
        """Return which lanes of the chunk these are."""
        concerned = np.zeros(self.chunk.lanes, bool)
        concerned[lanes] = True
        return concerned

    def _read(self, site, addresses: Addresses, size, lanes) -> list[np.ndarray]:
        """Return the values of each lane's source: `site.count` arrays with one entry per lane."""
        chunk, count = self.chunk, self.chunk.group.count
        if size is None or (np.asarray(size) == site.width).all():
            return [np.broadcast_to(value, count) for value in chunk.load_vector(site, addresses, lanes)]
        size = np.broadcast_to(size, count)
        if (size > site.width).any():
            what = f"cp.async of {site.width} bytes with a source of {int(size.max())} bytes"
            raise chunk.error(site, chunk.lane(int(np.argmax(size)), lanes), what, kind=MisalignedAddress)
        every, base = chunk.all_lanes if lanes is None else lanes, np.broadcast_to(addresses.base, count)
        reading = size > 0
        if chunk.observers.copy_request and reading.any():
            with subgroup(chunk, every[reading]):
                for notify in chunk.observers.copy_request:
                    notify(site, "global", Addresses(base[reading]), every[reading])
        data = np.zeros((count, site.width), np.uint8)
        for k in range(int(size.max())):  # byte by byte, as a short source may end where its array does
            longer = size > k
            byte = replace(site, dtype="u1", count=1, offset=site.offset + k)
            data[longer, k] = self.fetch(byte, Addresses(base[longer]), every[longer])[0]
        return list(data.view(site.dtype).T)

    # -- cp.async.bulk ---------------------------------------------------------------------------------------------

    def bulk(
        self, source, destination, origin: Addresses, target: Addresses, size, mbarrier, mask, operation, lanes
    ) -> None:
        """Execute cp.async.bulk, `size` bytes per lane. `mbarrier`: site, addresses of the one that counts the bytes.
        `mask`: the blocks of the cluster that receive them, None for the one at `target`. `operation`: of cp.reduce."""
        chunk = self.chunk
        every = chunk.all_lanes if lanes is None else lanes
        size = np.broadcast_to(size, every.shape).astype(np.int64)
        if (size % _BULK_BYTES).any():
            what = f"cp.async.bulk of {int(size[np.argmax(size % _BULK_BYTES)])} bytes"
            reason = "The size of a bulk copy must be a multiple of 16 bytes."
            raise chunk.error(source, every[np.argmax(size % _BULK_BYTES)], what, reason, MisalignedAddress)
        for notify in chunk.observers.bulk_copy:
            notify(source, int(np.count_nonzero(size)))
        starts, to = (np.broadcast_to(x.base, every.shape) for x in (origin, target))
        for site, start in ((source, starts), (destination, to)):
            if site.space == "shared":
                self.check_room(site, start + np.uint64(site.offset & 0xFFFFFFFFFFFFFFFF), size, every)
        owner, offset = _pieces(size)
        copier, place = every[owner], starts[owner] + offset
        values = self.fetch(source, Addresses(place), copier) if owner.size else [np.zeros(0, np.uint64)] * 2
        if mbarrier is None:
            if owner.size:
                arguments = destination, copier, self.committed_bulk[copier], to[owner] + offset, values, self.issued
                self.outgoing.append(OutCopy(*arguments, source, place, operation=operation))
            return
        barrier, word = mbarrier
        words = np.broadcast_to(word.base, every.shape)
        for receiving, shift in self.receivers(destination, to, mask, every):
            chosen = np.isin(owner, receiving)
            moved = np.zeros(every.shape, np.uint64)
            moved[receiving] = shift
            again = source.space == "shared"
            self.send(
                destination,
                copier[chosen],
                (to + moved)[owner][chosen] + offset[chosen],
                [value[chosen] for value in values],
                (barrier, Addresses(words[receiving] + shift)),
                size[receiving],
                every[receiving],
                source if again else None,
                place[chosen] if again else None,
                operation,
            )

    def send(
        self, site, copiers, address, values, mbarrier, size, lanes, source=None, origin=None, operation=None, to=None
    ) -> None:
        """Put values under way to shared memory, for lanes `copiers`. When they arrive, an mbarrier hears of `size`
        bytes, one entry for each of `lanes`. `source`, `origin`, `operation`: as in `_Copy`. `to`: the addresses again,
        if they are known to differ."""
        number, self.issued = self.issued, self.issued + 1
        if copiers.size:
            group = np.full(copiers.shape, -1)
            copy = _Copy(site, copiers, group, address, values, number, source, origin, operation)
            if to is not None:
                copy.target, copy.apart = to, True
            self._issue(copy)
        self.chunk.mbarriers.expect_bytes(mbarrier, size, lanes, number)

    def receivers(
        self, site, start: np.ndarray, mask: np.ndarray | None, lanes: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, for each block of the cluster that receives copies: which of the lanes send to it, and how far it lies
        from each one's own target, which begins at `start`."""
        if mask is None:
            yield np.arange(lanes.shape[0]), np.zeros(lanes.shape[0], np.uint64)
            return
        chunk, mask = self.chunk, np.broadcast_to(mask, lanes.shape).astype(np.int64)
        size = chunk.cluster_blocks
        if (mask >> size).any() or not mask.all():
            place = int(np.argmax((mask >> size != 0) | (mask == 0)))
            what = f"a multicast copy for the blocks {int(mask[place]):#x} of a cluster of {size}"
            reason = "Bit i of the mask stands for block i of the cluster; at least one must be set."
            raise chunk.error(site, lanes[place], what, reason)
        own = (start // np.uint64(max(1, chunk.shared_stride))).astype(np.int64) % size
        for rank in range(size):
            receiving = np.flatnonzero(mask >> rank & 1)
            if receiving.size:
                distance = (rank - own[receiving]) * chunk.shared_stride
                yield receiving, distance.astype(np.int64).view(np.uint64)

    def answer(self, site, target: Addresses, mbarrier, everywhere: bool, lanes) -> None:
        """Send 16 bytes of zeros, the answer to clusterlaunchcontrol.try_cancel, to the thread's block or, if
        `everywhere`, to all blocks of its cluster."""
        every = self.chunk.all_lanes if lanes is None else lanes
        start = np.broadcast_to(target.at(site.offset), every.shape)
        barrier, word = mbarrier
        words = np.broadcast_to(word.base, every.shape)
        mask = np.full(every.shape, (1 << self.chunk.cluster_blocks) - 1) if everywhere else None
        to = replace(site, offset=0)
        to.cluster = everywhere  # which its text does not say
        for receiving, shift in self.receivers(site, start, mask, every):
            by, place = every[receiving], start[receiving] + shift
            zeros = [np.zeros(by.shape, np.uint64)] * 2
            there = barrier, Addresses(words[receiving] + shift)
            self.send(to, by, place, zeros, there, np.full(by.shape, 16), by)

    def check_room(self, site, start: np.ndarray, size: np.ndarray, lanes: np.ndarray) -> None:
        """Refuse a copy that reaches beyond the shared memory of its block, even into that of the next."""
        chunk = self.chunk
        offset = start.view(np.int64) % max(1, chunk.shared_stride)
        bad = offset + size > chunk.own_shared_bytes
        if chunk.checked and bad.any():
            place = int(np.argmax(bad))
            what = (
                f"illegal address: a copy of {int(size[place]):,} bytes at byte {int(offset[place]):,} of shared "
                f"memory, of which the block has {chunk.own_shared_bytes:,} bytes"
            )
            reason = "Is the box larger than the array, or was too little dynamic shared memory given at the launch?"
            raise chunk.error(site, lanes[place], what, reason, IllegalAddress, address=int(start[place]))

    def store(self, site, target: Addresses, values, mbarrier, operation: tuple[str, str] | None, lanes) -> None:
        """Execute st.async and, with an operation, red.async: registers to shared memory of the cluster."""
        for notify in self.chunk.observers.async_store:
            notify(site, target, lanes)
        every = self.chunk.all_lanes if lanes is None else lanes
        values = [np.broadcast_to(value, every.shape) for value in values]
        size = np.full(every.shape, site.width)
        address = np.broadcast_to(target.base, every.shape)
        self.send(site, every, address, values, mbarrier, size, every, operation=operation)

    def commit_bulk(self, lanes) -> None:
        """Execute cp.async.bulk.commit_group."""
        self.committed_bulk[slice(None) if lanes is None else lanes] += 1

    def wait_bulk(self, most: int, only_read: bool, lanes) -> None:
        """Execute cp.async.bulk.wait_group: all but the latest `most` groups of a lane are done (`only_read`: have been
        read)."""
        if not self.outgoing:
            return
        limit = self._limit(self.committed_bulk - most, lanes)
        left = []
        for copy in self.outgoing:
            done = copy.group < limit[copy.lanes]
            if done.any():
                part = copy if done.all() else copy.select(done)
                self._read_source(part)
                if only_read:
                    left.append(part)
                else:
                    self._deliver(part)
            if not done.all():
                left.append(copy.select(~done))
        self.outgoing = left

    def _read_source(self, copy: _Copy) -> None:
        if copy.source is None or copy.origin is None or (isinstance(copy, OutCopy) and copy.is_read):
            return
        before = copy.values
        if isinstance(copy, OutCopy):
            copy.is_read = True
        copy.values = self.fetch(copy.source, Addresses(copy.origin), copy.lanes)
        changed = np.any([old != new for old, new in zip(before, copy.values, strict=True)], axis=0)
        start, reason = copy.origin + np.uint64(copy.source.offset), _LATER if isinstance(copy, OutCopy) else _ARRIVED
        require_unchanged(self.chunk, copy.source, start, copy.lanes, changed, "a bulk copy still had to", reason)

    def finish(self) -> None:
        """Deliver what is still in flight to global memory: the chunk has ended."""
        coming = next((copy for copy in self.copies if (copy.group < 0).any()), None)
        if self.chunk.checked and coming is not None:
            what = "a thread block ends while a copy into its shared memory is under way"
            reason = "Somebody must wait for it at its mbarrier, even if the data are not used."
            raise self.chunk.error(coming.site, coming.lanes[0], what, reason)
        for copy in self.outgoing:
            if self.chunk.checked and not copy.is_read:
                what = "a thread block ends while a bulk copy may still read its shared memory"
                raise self.chunk.error(copy.source, copy.lanes[0], what, _WAIT_FOR_READS)
            self._read_source(copy)
            self._deliver(copy)

    def complete_bulk(self, number: int, lanes: np.ndarray) -> None:
        """Complete what these lanes copy with bulk copy `number`."""
        concerned = self._concerned(lanes)
        self.complete(lambda copy: concerned[copy.lanes] & (copy.group < 0) if copy.number == number else _NONE)

    def fetch(self, site, addresses: Addresses, lanes: np.ndarray) -> list[np.ndarray]:
        """Load, bypassing the load and store units."""
        for notify in self.chunk.observers.copy_read:
            notify(site, site.space, addresses, lanes)
        view, index = self.chunk.access.elements(site, site.space, addresses)
        return [view[k:].take(index) for k in range(site.count)]

    # -- from issue to completion ----------------------------------------------------------------------------------

    def _issue(self, copy: _Copy) -> None:
        self.copies.append(copy)
        if copy.operation is not None:  # what is there stays until the copy arrives
            return
        for notify in self.chunk.observers.copy_issued:
            notify(copy.site, copy.target, copy.lanes, copy.values)

    def complete(self, wanted: Callable[[_Copy], np.ndarray]) -> None:
        """Deliver the entries of all copies for which `wanted` holds."""
        left = []
        for copy in self.copies:
            done = wanted(copy)
            if done.all():
                self._deliver(copy)
                continue
            if done.any():
                self._deliver(copy.select(done))
                copy = copy.select(~done)
            left.append(copy)
        self.copies = left

    def _deliver(self, copy: _Copy) -> None:
        chunk = self.chunk
        if not isinstance(copy, OutCopy):
            self._read_source(copy)
        site, address, lanes, values = copy.written()
        if not address.size:  # a box that lies outside its tensor
            return
        if copy.operation is not None:
            self._combine(copy.operation, site, address, lanes, values)
            return
        there = copy.target if address is copy.address else Addresses(address)
        if chunk.observers.copy_done:
            seen = there, lanes, values
            if not copy.apart:
                last = _last_of_each(address)
                seen = Addresses(address[last]), lanes[last], [value[last] for value in values]
            for notify in chunk.observers.copy_done:
                notify(site, site.space, *seen)
        view, index = chunk.access.elements(site, site.space, there)
        for k, value in enumerate(values):
            view[k:][index] = value

    def _combine(self, operation: tuple[str, str], site, address: np.ndarray, lanes: np.ndarray, values) -> None:
        """Write what an operation makes of the values and those at the target."""
        chunk, (name, kind) = self.chunk, operation
        for notify in chunk.observers.reduced:
            notify(site, site.space, Addresses(address), lanes)
        dtype = np.dtype(element_dtype(kind))
        data = np.stack(values, axis=1).view(dtype)
        place = address[:, None] + np.arange(0, site.width, dtype.itemsize, dtype=np.uint64)
        element = replace(site, dtype=f"{dtype.kind}{dtype.itemsize}", count=1)
        apart = np.unique(address).shape[0] == address.shape[0]
        for chosen in [slice(None)] if apart else [lanes == lane for lane in np.unique(lanes)]:
            view, index = chunk.access.elements(element, site.space, Addresses(place[chosen].reshape(-1)))
            view[index] = combined(name, kind, view.take(index), data[chosen].reshape(-1))

    def under_way(self, address: int, nbytes: int):
        """Return the site of a copy that still has to write some of these bytes of the chunk's shared memory, if there
        is one."""
        for copy in self.copies:
            start = copy.address.astype(np.int64) + copy.site.offset
            if ((start < address + nbytes) & (address < start + copy.site.width)).any():
                return copy.site
        return None


def _last_of_each(address: np.ndarray) -> np.ndarray:
    """Return the last entry of each address, in ascending order."""
    _, first = np.unique(address[::-1], return_index=True)
    return np.sort(address.shape[0] - 1 - first)


def _pieces(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pieces of copies of these sizes: number of the copy, and offset in it, uint64."""
    pieces = size // _BULK_BYTES
    owner = np.repeat(np.arange(size.shape[0]), pieces)
    first = np.repeat(np.cumsum(pieces) - pieces, pieces)
    return owner, (_BULK_BYTES * (np.arange(owner.shape[0]) - first)).astype(np.uint64)
