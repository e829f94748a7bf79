"""What the threads of several devices know of one another: which accesses come before their own, for both devices.

The rules are those of PTX's memory model for flags. A release makes what a thread did and knows known to whoever
acquires it: a fence and then a strong store of the flag, or a store with .release; a strong load of the flag and then a
fence, or a load with .acquire. Between two devices each of these must have the scope .sys; between blocks of one device
.gpu will do. Barriers and __syncwarp pass on what a thread knows, what it has fenced, and which flags it has seen.
(Each fence counts as a fence.sc, such as __threadfence_system(): these have one order. A fence.acq_rel alone speaks for
its own thread.)

An event has a number, its time. Knowledge about a warp is as in `vector_clocks`: up to which time its accesses come
first, for all its lanes (`whole`) and, later, for some (`part`, `mask`). Lanes are numbered through all devices: 32
times the number of the warp, plus the lane's number in it. What is known about several lanes of a warp is merged, so a
race may be missed, but none is invented.

`replayed` runs the same events by looser rules: where these find two accesses in order, the rule that was loosened is
the one that the kernels break.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import numpy as np

from warplab.simulator.constants import WARP_SIZE

_FULL = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True)
class Rules:
    """What is forgiven: fences or flags of too narrow a scope, a missing fence before the flag is set or after it was
    seen, a missing barrier between the other threads of a block and the one that sets or sees the flag."""

    any_fence: bool = False
    any_flag: bool = False
    unfenced_stores: bool = False
    unfenced_loads: bool = False
    no_barriers: bool = False


class ClockRow(NamedTuple):
    """What is known about each warp of all devices: int32, int32 and uint32 per warp."""

    whole: np.ndarray
    part: np.ndarray
    mask: np.ndarray

    def join(self, other: ClockRow) -> ClockRow:
        return _merged(*(np.stack(pair) for pair in zip(self, other, strict=True)))

    def with_lanes(self, warp: int, lanes: int, time: int, full: int) -> ClockRow:
        """Return the row that also knows what some lanes of a warp, the bits of `lanes`, did before `time`."""
        row = ClockRow(*(array.copy() for array in self))
        earlier = row.mask[warp] if row.part[warp] > row.whole[warp] else np.uint32(0)
        row.part[warp], row.mask[warp] = max(row.part[warp], time), earlier | np.uint32(lanes)
        if lanes & full == full:
            row.whole[warp] = max(row.whole[warp], time)
        return row


def _merged(whole: np.ndarray, part: np.ndarray, mask: np.ndarray) -> ClockRow:
    """Return what several rows know; lanes of which one knows no more than all know of the warp are left out."""
    most = whole.max(axis=0)
    return ClockRow(most, part.max(axis=0), np.bitwise_or.reduce(np.where(part > most, mask, np.uint32(0)), axis=0))


@dataclass(frozen=True)
class Flag:
    """Lanes that access flags at `places`, one per lane. `system`: with scope .sys."""

    device: int
    places: tuple[int, ...]
    lanes: tuple[int, ...]
    reads: bool
    writes: bool
    acquires: bool
    releases: bool
    system: bool
    atomic: bool


@dataclass(frozen=True)
class Fence:
    lanes: np.ndarray
    system: bool


@dataclass(frozen=True)
class Barrier:
    """`blocks`: for each thread block that has passed a barrier, its warps."""

    blocks: list[np.ndarray]


@dataclass(frozen=True)
class WarpSync:
    """Lanes that have passed a __syncwarp or, if not `orders`, exchanged values."""

    lanes: np.ndarray
    orders: bool = True


@dataclass(frozen=True)
class Arrival:
    """Lanes that arrive (or wait, then `waits`) at places where threads of one block synchronise."""

    places: tuple[int, ...]
    lanes: tuple[int, ...]
    waits: bool


@dataclass(frozen=True)
class Begin:
    """A chunk of thread blocks begins on a device. `blocks`: warps of each; `full`: bits of each warp's lanes."""

    device: int
    blocks: list[np.ndarray]
    full: np.ndarray


@dataclass(frozen=True)
class End:
    device: int
    warps: np.ndarray


Event = Flag | Fence | Barrier | WarpSync | Arrival | Begin | End


@dataclass
class _Seen:
    """Rows of flags that were seen and not yet acquired: those of the own device's threads, and those of all."""

    own: list[ClockRow] = field(default_factory=list)
    system: list[ClockRow] = field(default_factory=list)

    def add(self, other: _Seen) -> None:
        self.own += [row for row in other.own if not any(row is known for known in self.own)]
        self.system += [row for row in other.system if not any(row is known for known in self.system)]


class DeviceClocks:
    """`warps`: of all devices. `rules`: see `Rules`."""

    def __init__(self, warps: int, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self.warps, self.now = warps, 0
        self.known = ClockRow(*(np.zeros((warps, warps), dtype) for dtype in (np.int32, np.int32, np.uint32)))
        self.nothing = ClockRow(*(np.zeros(warps, dtype) for dtype in (np.int32, np.int32, np.uint32)))
        self.full = np.full(warps, _FULL)
        self.block: dict[int, np.ndarray] = {}  # warp → the warps of its block
        self.more: dict[int, ClockRow] = {}  # lane → what it alone knows
        self.seen: dict[int, _Seen] = {}  # lane → flags seen
        self.seen_by_warp: dict[int, _Seen] = {}
        # By scope .sys, by lane: what it has fenced, beside what it did itself until then (0: that is in the row).
        self.fenced: dict[bool, dict[int, tuple[ClockRow, int]]] = {False: {}, True: {}}
        self.flags: dict[int, ClockRow] = {}  # released with scope .sys
        self.own_flags: dict[tuple[int, int], ClockRow] = {}  # by place and device of the thread that set it
        self.places: dict[int, tuple[ClockRow, ClockRow | None]] = {}
        self.devices: dict[int, ClockRow] = {}  # what the earlier kernels of a device knew

    # -- events ----------------------------------------------------------------------------------------------------

    def happens(self, event: Event) -> None:
        self.now += 1
        match event:
            case Flag():
                self._flag(event)
            case Fence():
                self._fence(event)
            case Barrier():
                for warps in event.blocks:
                    self._barrier(warps)
            case WarpSync():
                for warp, lanes in _by_warp(event.lanes):
                    self._sync_warp(warp, lanes, event.orders)
            case Arrival():
                self._arrival(event)
            case Begin():
                self._begin(event)
            case End():
                row = self._joined(event.warps)
                row.whole[event.warps] = self.now
                self.devices[event.device] = self.devices.get(event.device, self.nothing).join(row)

    def _begin(self, event: Begin) -> None:
        row = self.devices.get(event.device, self.nothing)
        for warps in event.blocks:
            for warp in warps.tolist():
                self.block[warp] = warps
                if row is not self.nothing:  # else it knows nothing yet
                    self._set(warp, row)
        every = np.concatenate(event.blocks)
        self.full[every] = event.full
        self._forget(every)
        self._share_fenced(_lanes(every), row)
        for warp in every.tolist():
            self.seen_by_warp.pop(warp, None)

    def _fence(self, event: Fence) -> None:
        system = event.system or self.rules.any_fence
        for warp, lanes in _by_warp(event.lanes):
            self._acquire_seen(warp, lanes, system)
            row = self._of_block(warp, ClockRow(*(array.copy() for array in self._of(warp))))
            for lane in lanes:
                for scope in (False, True)[: 1 + system]:
                    self.fenced[scope][lane] = self._with_own(row, lane), self.now

    def _acquire_seen(self, warp: int, lanes: list[int], system: bool) -> None:
        by_warp = self.seen_by_warp.get(warp)
        for row in _acquired(by_warp, system):
            self._learn(warp, lanes, row)
        if any(lane in self.seen for lane in lanes):
            for lane in lanes:
                for row in _acquired(self.seen.get(lane), system):
                    self._learn(warp, [lane], row)

    def _flag(self, event: Flag) -> None:
        system = event.system or self.rules.any_flag
        for place, warps in _by_place(event).items():
            found = _Seen()
            if event.reads:
                if (row := self.own_flags.get((place, event.device))) is not None:
                    found.own.append(row)
                if system and (row := self.flags.get(place)) is not None:
                    found.system.append(row)
            for warp, lanes in warps.items():
                if found.own or found.system:
                    self._see(warp, lanes, found, event.acquires or self.rules.unfenced_loads)
            if event.writes:
                self._set_flag(place, warps, event, system)

    def _see(self, warp: int, lanes: list[int], found: _Seen, acquires: bool) -> None:
        if acquires:
            for row in (*found.own, *found.system):
                self._learn(warp, lanes, row)
        elif _bits(lanes) == self.full[warp]:
            self.seen_by_warp.setdefault(warp, _Seen()).add(found)
        else:
            for lane in lanes:
                self.seen.setdefault(lane, _Seen()).add(found)

    def _set_flag(self, place: int, warps: dict[int, list[int]], event: Flag, system: bool) -> None:
        released: dict[bool, ClockRow] = {}
        for warp, lanes in warps.items():
            for lane in lanes:
                for scope in (False, True)[: 1 + system]:
                    row = self._release(warp, lane, scope, event.releases or self.rules.unfenced_stores)
                    if row is not None:
                        released[scope] = row.join(released[scope]) if scope in released else row
        if not event.atomic:  # a store ends what earlier ones released; an atomic operation passes it on
            self.own_flags.pop((place, event.device), None)
            self.flags.pop(place, None)
        if (row := released.get(False)) is not None:
            self.own_flags[place, event.device] = row.join(self.own_flags.get((place, event.device), self.nothing))
        if (row := released.get(True)) is not None:
            self.flags[place] = row.join(self.flags.get(place, self.nothing))

    def _release(self, warp: int, lane: int, scope: bool, all_of_it: bool) -> ClockRow | None:
        """Return what a flag that this lane sets makes known; None if nothing."""
        if all_of_it:
            row = self._of_block(warp, self._with_own(self._of(warp), lane))
            return row.with_lanes(warp, _bits([lane]), self.now, int(self.full[warp]))
        return self._fenced_by([lane], scope)

    def _fenced_by(self, lanes: Iterable[int], scope: bool) -> ClockRow | None:
        """Return what any of these lanes has fenced; None if none has."""
        found = {lane: self.fenced[scope][lane] for lane in lanes if lane in self.fenced[scope]}
        if not found:
            return None
        row = reduce(ClockRow.join, {id(row): row for row, _ in found.values()}.values())
        timed = [lane for lane, (_, time) in found.items() if time]
        for warp, own in _by_warp(np.array(timed)) if timed else ():
            for time in sorted({found[lane][1] for lane in own}):  # the earliest may be that of all lanes
                until = _bits([lane for lane in own if found[lane][1] >= time])
                row = row.with_lanes(warp, until, time, int(self.full[warp]))
        return row

    def _share_fenced(self, lanes: list[int], row: ClockRow | None = None) -> None:
        """Let each of these lanes have fenced what any has, or `row`."""
        for scope, fenced in self.fenced.items():
            together = self._fenced_by(lanes, scope) if row is None else row
            if together is not None:
                fenced.update(dict.fromkeys(lanes, (together, 0)))

    def _barrier(self, warps: np.ndarray) -> None:
        row = self._joined(warps)
        row.whole[warps] = self.now
        seen = _Seen()
        every = warps.tolist()
        for warp in every:
            self._set(warp, row)
            if warp in self.seen_by_warp:
                seen.add(self.seen_by_warp.pop(warp))
        for lane in self._lanes_of(warps, self.seen):
            seen.add(self.seen.pop(lane))
        self._forget(warps)
        self._share_fenced(_lanes(warps))
        if seen.own or seen.system:
            for warp in every:
                self.seen_by_warp[warp] = _Seen(list(seen.own), list(seen.system))

    def _sync_warp(self, warp: int, lanes: list[int], orders: bool) -> None:
        bits, row = _bits(lanes), self._of(warp)
        seen = _Seen()
        for lane in lanes:
            if lane in self.more:
                row = row.join(self.more.pop(lane))
            if lane in self.seen:
                seen.add(self.seen.pop(lane))
        if orders:
            row = row.with_lanes(warp, bits, self.now, int(self.full[warp]))
            self._share_fenced(lanes)
        self._learn(warp, lanes, row)
        if seen.own or seen.system:
            self._see(warp, lanes, seen, False)

    def _arrival(self, event: Arrival) -> None:
        for place, warps in _by_place(event).items():
            for warp, lanes in warps.items():
                if event.waits:
                    row, fenced = self.places.get(place, (self.nothing, None))
                    self._learn(warp, lanes, row)
                    if fenced is not None:
                        for lane in lanes:
                            old = self._fenced_by([lane], True) or self.nothing
                            self.fenced[True][lane] = old.join(fenced), 0
                    continue
                row = self._of(warp).with_lanes(warp, _bits(lanes), self.now, int(self.full[warp]))
                row = reduce(self._with_own, lanes, row)
                known, fenced = self.places.get(place, (self.nothing, None))
                mine = self._fenced_by(lanes, True)
                if mine is not None:
                    fenced = mine if fenced is None else fenced.join(mine)
                self.places[place] = known.join(row), fenced

    # -- rows ------------------------------------------------------------------------------------------------------

    def _of(self, warp: int) -> ClockRow:
        return ClockRow(*(array[warp] for array in self.known))

    def _set(self, warp: int, row: ClockRow) -> None:
        for array, values in zip(self.known, row, strict=True):
            array[warp] = values

    def _learn(self, warp: int, lanes: list[int], row: ClockRow) -> None:
        if self.rules.no_barriers:
            for other in self.block[warp].tolist():
                self._set(other, self._of(other).join(row))
        elif _bits(lanes) == self.full[warp]:
            self._set(warp, self._of(warp).join(row))
        else:
            for lane in lanes:
                self.more[lane] = self._with_own(row, lane)

    def _joined(self, warps: np.ndarray) -> ClockRow:
        """Return what any thread of these warps knows."""
        row = _merged(*(array[warps] for array in self.known))
        return reduce(self._with_own, self._lanes_of(warps, self.more), row)

    def _with_own(self, row: ClockRow, lane: int) -> ClockRow:
        """Return a row with what a lane alone knows."""
        return row.join(self.more[lane]) if lane in self.more else row

    def _of_block(self, warp: int, row: ClockRow) -> ClockRow:
        """Return a row with what its block knows by now, where no barrier is needed for that."""
        if self.rules.no_barriers:
            row = row.join(self._joined(self.block[warp]))
            row.whole[self.block[warp]] = self.now
        return row

    @staticmethod
    def _lanes_of(warps: np.ndarray, keys: Iterable[int]) -> list[int]:
        wanted = set(warps.tolist())
        return [lane for lane in keys if lane // WARP_SIZE in wanted]

    def _forget(self, warps: np.ndarray) -> None:
        for lane in self._lanes_of(warps, self.more):
            del self.more[lane]

    # -- questions -------------------------------------------------------------------------------------------------

    def knows(self, lanes: np.ndarray, others: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Return, for each lane: does what lane `others` did at `time` come before what it does now?"""
        warp, column, bit = lanes // WARP_SIZE, others // WARP_SIZE, (others % WARP_SIZE).astype(np.uint32)
        whole, part, mask = self.known
        result = whole[warp, column] > time
        result |= (part[warp, column] > time) & (mask[warp, column] >> bit & 1 != 0)
        if self.more and not result.all():
            for place in np.flatnonzero(~result).tolist():
                row = self.more.get(int(lanes[place]))
                if row is not None:
                    at, when = column[place], time[place]
                    result[place] = row.whole[at] > when or (row.part[at] > when and row.mask[at] >> bit[place] & 1)
        return result


def replayed(events: Iterable[Event], warps: int, rules: Rules) -> DeviceClocks:
    """Return the clocks after `events` by other rules."""
    clocks = DeviceClocks(warps, rules)
    for event in events:
        clocks.happens(event)
    return clocks


def _acquired(seen: _Seen | None, system: bool) -> list[ClockRow]:
    """Return the rows that a fence acquires, which then no longer wait for one."""
    if seen is None:
        return []
    rows, seen.own = seen.own, []
    if system:
        rows, seen.system = [*rows, *seen.system], []
    return rows


def _by_place(event: Flag | Arrival) -> dict[int, dict[int, list[int]]]:
    """Return the lanes of an event by place and warp."""
    found: dict[int, dict[int, list[int]]] = {}
    for place, lane in zip(event.places, event.lanes, strict=True):
        found.setdefault(place, {}).setdefault(lane // WARP_SIZE, []).append(lane)
    return found


def _lanes(warps: np.ndarray) -> list[int]:
    return (warps[:, None] * WARP_SIZE + np.arange(WARP_SIZE)).ravel().tolist()


def _by_warp(lanes: np.ndarray) -> list[tuple[int, list[int]]]:
    """Return lanes in ascending order, by warp."""
    warp = lanes // WARP_SIZE
    starts = np.flatnonzero(np.concatenate(([True], warp[1:] != warp[:-1])))
    return [(int(warp[start]), part.tolist()) for start, part in zip(starts, np.split(lanes, starts[1:]), strict=True)]


def _bits(lanes: Iterable[int]) -> int:
    bits = 0
    for lane in lanes:
        bits |= 1 << lane % WARP_SIZE
    return bits
