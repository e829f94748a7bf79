"""What machine code knows of a chunk: its lanes, its memory, where accesses are good, and what observers want to know.

Both ways to run it begin here: blocks for all lanes (`machine_runs`) and loops of a few (`narrow_runs`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from warplab.simulator.check.access_checks import Checks
from warplab.simulator.check.races import Races
from warplab.simulator.check.unwritten_reads import UnwrittenReads
from warplab.simulator.count.launch_counting import Counting
from warplab.simulator.count.reuse import ReuseWatch
from warplab.simulator.memory.device_memory import ORIGIN
from warplab.simulator.observer import Observer
from warplab.simulator.translate.machine_access import FIELDS, PLACE_BYTES, F, P, fill

SUMS = slice(P["REQUESTS"], P["NEEDED"] + 1)  # of a place: what `Counting.accesses` holds


class MachineState:
    """Of one chunk. `why`: why none of its code can run as machine code; "" if it can."""

    def __init__(self, scheduler) -> None:
        chunk = self.chunk = scheduler.chunk
        observers = chunk.observers.all
        of: dict[type, Any] = {type(observer): observer for observer in observers}
        self.counting: Counting | None = of.get(Counting)
        self.races: Races | None = of.get(Races)
        self.reuse: ReuseWatch | None = of.get(ReuseWatch)
        self.checked, self.unwritten = Checks in of, UnwrittenReads in of
        known = [type(o) for o in observers if type(o).wants is not Observer.wants]
        self.why = ""
        if not scheduler.alone:
            self.why = "other launches run at the same time"
        elif chunk.cluster_blocks > 1:
            self.why = "the blocks of a cluster share their memory"
        elif len(known) > len(set(known)):
            self.why = "two observers are of one kind"
        self.state = np.zeros(0, np.int64)  # no entries before the first run

    def observers_of(self, event: str) -> list[tuple[Callable, Observer]]:
        """Return the methods for an event, and whose they are."""
        return [(getattr(o, event), o) for o in self.chunk.observers.all if event in o.events]

    def begin(self, **own: np.ndarray) -> None:
        """Make the arrays that all runs share. `own`: those of one way to run."""
        chunk, lanes = self.chunk, self.chunk.lanes
        blocks = chunk.translation.machine_blocks
        if "places" not in blocks.kept:
            blocks.kept["places"] = _places(chunk.translation.sites)
        self.places = blocks.kept["places"].copy()
        block_of, warp_of = chunk.geometry.small
        self.kept: dict[str, np.ndarray] = {
            "LANE_OF": chunk.lane_of,
            "BLOCK_OF": block_of,
            "WARP_OF": warp_of,
            "KEYS": np.zeros(256, np.int64),
            "PARAMETERS": np.frombuffer(chunk.params or b"\0", np.uint8),
            "PLACES": self.places,
            **own,
        }
        for space in blocks.own_spaces:
            starts, _ = chunk.own_memory(space, None)
            self.kept[space.upper()] = np.broadcast_to(starts, lanes).astype(np.int64)
        self.state = np.zeros(len(FIELDS), np.int64)
        numbers = {"LANES": lanes, "WARPS": chunk.warps, "DYNAMIC": chunk.static_shared_bytes}
        numbers |= {"COUNTED": self.counting is not None, "ONE_BLOCK": chunk.blocks == 1}
        if self.races is not None:
            numbers |= self.races.fields_of(self.races.numbers)
        self.set({**self.kept, **numbers})

    def set(self, fields: dict[str, Any]) -> None:
        """Set numbers of the state, or the places of arrays, which the caller keeps."""
        fill(self.state, F, fields)

    def order(self) -> None:
        """Tell race detection which barriers blocks and warps have passed."""
        if self.races is not None:
            self.set({"EPOCHS": self.races.epochs, "TIMES": self.races.times, "ORDERED": self.races.ordered})

    def bind(self, site, space: str, allocation) -> tuple[Any, ...]:
        """Say at the place of a site where its accesses are good: in an allocation, or in shared or local memory.
        Returns what it depends on: whose memory that is, whether all of it is written, and arrays at the place."""
        chunk, record = self.chunk, None
        if allocation is not None:
            holder, low, size = allocation, allocation.address, allocation.nbytes
            data = chunk.device.memory.view(low, size)
            if self.checked and not holder.complete:
                record = chunk.device.memory.written[1][low - ORIGIN :]
        else:
            holder = chunk.access.shared if space == "shared" else chunk.access.local
            low, (_, size), data = 0, chunk.own_memory(space, None), holder.views["u1"]
            if not holder.complete and (self.unwritten or (self.checked and space == "shared")):
                record = holder.written[1]
        written = 0 if record is None else record
        self.at(site, {"LOW": low, "LIMIT": size - site.width, "DATA": data, "WRITTEN": written})
        return holder, holder.complete, data, record

    def at(self, site, fields: dict[str, Any]) -> None:
        """Set what the place of a site holds."""
        fill(self.places[site.index], P, fields)


def of_space(space: str) -> dict[str, int]:
    """Return what the place of a site holds of the space of its accesses."""
    return {"SPACE": {"global": 0, "shared": 1}.get(space, 2), "OWN": {"shared": 1, "local": 2}.get(space, 0)}


def _places(sites) -> np.ndarray:
    """Return the places of a kernel's memory instructions before any access."""
    places = np.zeros((max(1, len(sites)), PLACE_BYTES // 8), np.int64)
    for site in sites:
        fixed = {"LIMIT": -1, "WIDTH": site.width, "OFFSET": site.offset, "IS_LOAD": site.op == "load"}
        fixed |= {"COUNTED_BYTES": site.counted_bytes, "ITEM": site.item, "SITE": site.index}
        fill(places[site.index], P, fixed | of_space(site.space))
    return places
