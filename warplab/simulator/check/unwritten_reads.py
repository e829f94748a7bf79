"""Reads of a thread's local array, or with `used_reads_only` of shared memory, where nothing was written.

A compiler may load what a kernel then throws away, so such a read is noted, and the launch runs again with other values
in its place (`undefined_values`): it is an error if the result depends on it.
"""

from typing import Protocol

import numpy as np

from warplab.simulator.check.access_checks import Checks
from warplab.simulator.errors import UninitializedRead
from warplab.simulator.memory.device_memory import DeviceMemory
from warplab.simulator.memory.lane_access import Addresses, mark_written
from warplab.simulator.observer import Observer

_DISTURBANCE = {1: 0xA5, 2: 0xA5C3, 4: 0x5AA5C33C, 8: 0x5AA5C33CA5C35AA5}
_REASON = (
    "The elements of a local array hold anything until they are set, not zeros: set each before it is read or added to."
)

Place = tuple[str, int]  # file and line


class Noted(Protocol):
    """Undefined values of a launch: errors by place, if the result depends on them, and the places to disturb."""

    met: dict[Place, UninitializedRead]
    disturbed: frozenset[Place]
    sign: int


def reads_local_arrays(translation) -> bool:
    """Return whether a kernel can load from local memory."""
    return translation.local_bytes > 0 and any(
        site.op == "load" and site.space in ("local", "generic") for site in translation.sites
    )


class UnwrittenReads(Observer):
    """`noted`: where such reads are noted. `shared`: also those of shared memory, whose record `Checks` keeps."""

    def __init__(self, noted: Noted, memory: DeviceMemory, shared: bool) -> None:
        self.noted, self.shared = noted, shared
        self.checks = Checks(memory)

    def watch(self, chunk) -> "UnwrittenReads":
        self.chunk = self.checks.chunk = chunk
        return self

    def wants(self, event: str, space: str = "") -> int | None:
        return 0

    def store(self, site, space: str, addresses: Addresses, lanes, values) -> None:
        if space == "local":
            mark_written(self.chunk.access.local.written, addresses, site)

    atomic = store

    def loaded(self, site, space: str, addresses: Addresses, lanes, values: list[np.ndarray]) -> None:
        """Note the lanes that have read what nobody wrote, and change what they read where that is asked for."""
        if space != "local" and not (self.shared and space == "shared"):
            return
        arrays = self.chunk.access.local if space == "local" else self.chunk.access.shared
        if arrays.complete:
            return
        view, index = addresses.index(arrays.written[site.item], site.item, site.offset)
        written = [view[k:].take(index) for k in range(site.count)]
        unwritten = np.logical_or.reduce([mask != np.iinfo(mask.dtype).max for mask in written])
        if not unwritten.any():
            return
        place = (site.where.file, site.where.line)
        if place in self.noted.disturbed:
            for value, mask in zip(values, written, strict=True):
                bits = value.view(mask.dtype)
                bits ^= ~mask & mask.dtype.type(_DISTURBANCE[site.item] ^ self.noted.sign << 8 * site.item - 1)
        elif place not in self.noted.met:
            self.noted.met[place] = self._error(site, space, addresses, lanes, unwritten)

    def _error(self, site, space: str, addresses: Addresses, lanes, unwritten: np.ndarray) -> UninitializedRead:
        if space == "shared":
            try:
                self.checks.initialized(site, space, addresses, lanes, self.chunk.access.shared.written)
            except UninitializedRead as error:
                return error
        start, _ = self.chunk.own_memory(space, lanes)
        lane, at = Checks.first(unwritten, (addresses.at(site.offset) - start).view(np.int64), lanes)
        what = (
            f"uninitialised read: byte {at} of the thread's local memory was never written, and the result depends "
            "on it"
        )
        return self.chunk.error(site, lane, what, _REASON, UninitializedRead, address=at)
