"""Asynchronous copies: cp.async with its groups, and cp.async.bulk.

A copy reads its source when it is issued and writes its destination as late as the hardware may, which is when a thread
waits for it. Until then the destination counts as unwritten, so a kernel that lacks the wait is caught reading it.
Threads wait for their own copies with cp.async.wait_group and wait_all, and for those of others at an mbarrier
(`mbarriers`).

A bulk copy from shared to global memory also reads its source as late as the hardware may: when its thread waits for
the read (cp.async.bulk.wait_group.read). It writes when its thread waits for the copy (.wait_group) or the kernel ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from warplab.simulator.errors import MisalignedAddress, SimulatorError
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.lane_groups import subgroup
from warplab.simulator.translate.block_writer import Site

_BULK_BYTES = 16  # addresses and sizes of cp.async.bulk are multiples of this


@dataclass(eq=False)
class _Copy:
    """What one instruction copies: one entry per lane, or per 16 bytes of a bulk copy.

    `group`: number of the lane's cp.async group, -1 for bulk copies. `number`: the copy's, in order of issue.
    """

    site: Site
    lanes: np.ndarray
    group: np.ndarray
    address: np.ndarray
    values: list[np.ndarray]
    number: int

    @functools.cached_property
    def apart(self) -> bool:
        """Does each entry have its own address? Several threads that copy the same piece do not race by that alone."""
        steps = self.address[1:] > self.address[:-1]
        return bool(steps.all()) or np.unique(self.address).shape[0] == self.address.shape[0]

    def some(self, chosen: np.ndarray) -> Self:
        values = [value[chosen] for value in self.values]
        return replace(
            self, lanes=self.lanes[chosen], group=self.group[chosen], address=self.address[chosen], values=values
        )


@dataclass(eq=False)
class _OutCopy(_Copy):
    """A bulk copy out of shared memory. `values`: those of its source, initially as they were at the issue.

    `source`, `origin`: site and addresses that it reads; `is_read`: it has read them.
    """

    source: Site
    origin: np.ndarray
    is_read: bool = False

    def some(self, chosen: np.ndarray) -> Self:
        part = super().some(chosen)
        part.origin = self.origin[chosen]
        return part


class AsynchronousCopies:
    """Copies in flight in one chunk. `lanes` are the group's, None for all lanes of the chunk."""

    def __init__(self, chunk) -> None:
        self.chunk = chunk
        self.copies: list[_Copy] = []
        self.outgoing: list[_OutCopy] = []
        self.issued = 0

    @functools.cached_property
    def committed(self) -> np.ndarray:
        """How many groups of cp.async each lane has closed."""
        return np.zeros(self.chunk.lanes, np.int64)

    @functools.cached_property
    def committed_bulk(self) -> np.ndarray:
        """How many groups of bulk copies out of shared memory each lane has closed."""
        return np.zeros(self.chunk.lanes, np.int64)

    # -- cp.async --------------------------------------------------------------------------------------------------

    def copy(self, source, destination, origin: Addresses, target: Addresses, size, lanes) -> None:
        """cp.async. `source`, `destination`: sites; `size`: bytes to read, None for all. The rest becomes zero."""
        chunk = self.chunk
        every = chunk.all_lanes if lanes is None else lanes
        values = self._read(source, origin, size, lanes)
        read = None if size is None else np.broadcast_to(size > 0, every.shape)
        for notify in chunk.observers.copy:
            notify(destination, source, origin, target, read)
        address = np.broadcast_to(target.base, every.shape)
        self._issue(_Copy(destination, every, self.committed[every], address, values, self.issued))

    def commit(self, lanes) -> None:
        """cp.async.commit_group"""
        self.committed[slice(None) if lanes is None else lanes] += 1

    def wait(self, most: int | None, lanes) -> None:
        """cp.async.wait_group: at most the latest `most` groups of each lane stay in flight. None: wait_all."""
        if not self.copies:
            return
        limit = self._limit(np.iinfo(np.int64).max if most is None else self.committed - most, lanes)
        self.complete(lambda copy: (copy.group >= 0) & (copy.group < limit[copy.lanes]))

    def _limit(self, groups: np.ndarray | int, lanes) -> np.ndarray:
        """For each lane of the chunk, the number of the first group that it does not wait for."""
        limit = np.full(self.chunk.lanes, np.iinfo(np.int64).min)
        waiting = slice(None) if lanes is None else lanes
        limit[waiting] = np.broadcast_to(groups, limit.shape)[waiting]
        return limit

    def complete_of(self, lanes: np.ndarray, before: int) -> None:
        """Complete the cp.async that these lanes issued before copy number `before`."""
        concerned = np.zeros(self.chunk.lanes, bool)
        concerned[lanes] = True
        self.complete(lambda copy: concerned[copy.lanes] & (copy.group >= 0) & (copy.number < before))

    def _read(self, site, addresses: Addresses, size, lanes) -> list[np.ndarray]:
        """Return the values of each lane's source: `site.count` arrays with one entry per lane."""
        chunk, count = self.chunk, self.chunk.group.count
        if size is None or (np.asarray(size) == site.width).all():
            return [np.broadcast_to(value, count) for value in chunk.load_vector(site, addresses, lanes)]
        size = np.broadcast_to(size, count)
        if (size > site.width).any():
            raise MisalignedAddress(
                f"cp.async of {site.width} bytes with a source of {int(size.max())} bytes",
                **chunk.where(site, int((chunk.all_lanes if lanes is None else lanes)[int(np.argmax(size))])),
            )
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
            data[longer, k] = self._fetch(byte, Addresses(base[longer]), every[longer])[0]
        return list(data.view(site.dtype).T)

    # -- cp.async.bulk ---------------------------------------------------------------------------------------------

    def bulk(self, source, destination, origin: Addresses, target: Addresses, size, mbarrier, lanes) -> None:
        """cp.async.bulk of `size` bytes per lane. `mbarrier`: site and addresses of the one that counts the bytes."""
        chunk = self.chunk
        every = chunk.all_lanes if lanes is None else lanes
        size = np.broadcast_to(size, every.shape).astype(np.int64)
        if (size % _BULK_BYTES).any():
            raise MisalignedAddress(
                f"cp.async.bulk of {int(size[np.argmax(size % _BULK_BYTES)])} bytes",
                reason="The size of a bulk copy must be a multiple of 16 bytes.",
                **chunk.where(source, int(every[np.argmax(size % _BULK_BYTES)])),
            )
        pieces = size // _BULK_BYTES
        owner = np.repeat(np.arange(every.shape[0]), pieces)
        first = np.repeat(np.cumsum(pieces) - pieces, pieces)
        offset = (_BULK_BYTES * (np.arange(owner.shape[0]) - first)).astype(np.uint64)
        copier = every[owner]
        for notify in chunk.observers.bulk_copy:
            notify(source, int(np.count_nonzero(size)))
        if owner.size:
            origin, target = (Addresses(np.broadcast_to(x.base, every.shape)[owner] + offset) for x in (origin, target))
            values = self._fetch(source, origin, copier)
            if mbarrier is None:
                group = self.committed_bulk[copier]
                arguments = destination, copier, group, target.base, values, self.issued, source, origin.base
                self.outgoing.append(_OutCopy(*arguments))
                return
            self._issue(_Copy(destination, copier, np.full(owner.shape, -1), target.base, values, self.issued))
        if mbarrier is not None:
            chunk.mbarriers.expect_bytes(mbarrier, size, lanes, self.issued)

    def commit_bulk(self, lanes) -> None:
        """cp.async.bulk.commit_group"""
        self.committed_bulk[slice(None) if lanes is None else lanes] += 1

    def wait_bulk(self, most: int, only_read: bool, lanes) -> None:
        """cp.async.bulk.wait_group: all but the latest `most` groups of each lane are done (`only_read`: have been
        read)."""
        if not self.outgoing:
            return
        limit = self._limit(self.committed_bulk - most, lanes)
        left = []
        for copy in self.outgoing:
            done = copy.group < limit[copy.lanes]
            if done.any():
                part = copy if done.all() else copy.some(done)
                self._read_source(part)
                if only_read:
                    left.append(part)
                else:
                    self._deliver(part)
            if not done.all():
                left.append(copy.some(~done))
        self.outgoing = left

    def _read_source(self, copy: _OutCopy) -> None:
        if copy.is_read:
            return
        before, copy.is_read = copy.values, True
        copy.values = self._fetch(copy.source, Addresses(copy.origin), copy.lanes)
        changed = np.any([old != new for old, new in zip(before, copy.values, strict=True)], axis=0)
        if self.chunk.checked and changed.any():
            raise SimulatorError(
                "shared memory was written while a bulk copy still had to read it",
                reason="Before anyone writes there again, its thread must wait (cp.async.bulk.wait_group.read 0), and "
                "a __syncthreads() must follow.",
                **self.chunk.where(copy.source, int(copy.lanes[np.argmax(changed)])),
            )

    def finish(self) -> None:
        """The chunk has ended: deliver what is still in flight to global memory."""
        for copy in self.outgoing:
            if self.chunk.checked and not copy.is_read:
                raise SimulatorError(
                    "a thread block ends while a bulk copy may still read its shared memory",
                    reason="The thread that started the copy must commit it (cp.async.bulk.commit_group) and wait "
                    "(cp.async.bulk.wait_group.read 0).",
                    **self.chunk.where(copy.source, int(copy.lanes[0])),
                )
            self._read_source(copy)
            self._deliver(copy)

    def complete_bulk(self, number: int, lanes: np.ndarray) -> None:
        """Complete what these lanes copy with bulk copy `number`."""
        self.complete(lambda copy: np.isin(copy.lanes, lanes) & (copy.number == number) & (copy.group < 0))

    def _fetch(self, site, addresses: Addresses, lanes: np.ndarray) -> list[np.ndarray]:
        """Load, bypassing the load and store units."""
        for notify in self.chunk.observers.copy_read:
            notify(site, site.space, addresses, lanes)
        view, index = self.chunk.access.elements(site, site.space, addresses)
        return [view[k:].take(index) for k in range(site.count)]

    # -- from issue to completion ----------------------------------------------------------------------------------

    def _issue(self, copy: _Copy) -> None:
        self.issued += 1
        self.copies.append(copy)
        for notify in self.chunk.observers.copy_issued:
            notify(copy.site, Addresses(copy.address), copy.lanes, copy.values)

    def complete(self, wanted: Callable[[_Copy], np.ndarray]) -> None:
        """Deliver the entries of all copies for which `wanted` holds."""
        left = []
        for copy in self.copies:
            done = wanted(copy)
            if done.all():
                self._deliver(copy)
                continue
            if done.any():
                self._deliver(copy.some(done))
                copy = copy.some(~done)
            left.append(copy)
        self.copies = left

    def _deliver(self, copy: _Copy) -> None:
        chunk, site = self.chunk, copy.site
        if chunk.observers.copy_done:
            seen = copy if copy.apart else copy.some(_last_of_each(copy.address))
            for notify in chunk.observers.copy_done:
                notify(site, site.space, Addresses(seen.address), seen.lanes, seen.values)
        view, index = chunk.access.elements(site, site.space, Addresses(copy.address))
        for k, value in enumerate(copy.values):
            view[k:][index] = value

    def under_way(self, address: int, nbytes: int):
        """Site of a copy that still has to write some of these bytes of the chunk's shared memory, if there is one."""
        for copy in self.copies:
            start = copy.address.astype(np.int64) + copy.site.offset
            if ((start < address + nbytes) & (address < start + copy.site.width)).any():
                return copy.site
        return None


def _last_of_each(address: np.ndarray) -> np.ndarray:
    """The last entry of each address, in ascending order."""
    _, first = np.unique(address[::-1], return_index=True)
    return np.sort(address.shape[0] - 1 - first)
