"""Races between devices whose kernels run at the same time, and accesses to memory that a device cannot reach.

For each word of global memory and each device, the latest write and the latest read are recorded: by which thread, when
and where in the program. An access by another device is ordered if its thread knows of the earlier one
(`device_clocks`). Flags, strong accesses of one size with the scope .sys on both sides, do not race with one another.
Races between threads of one device are those that `races` finds. The error says who did what to which element, and
which rule of `device_clocks` is broken.

Volatile accesses have the scope .sys, atomic operations without a scope .gpu. Loads and stores with a cache operator,
such as Numba's cuda.ldcv and cuda.stwt, are no flags: the operator is a hint; the compiler moves such loads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from warplab.simulator.check import device_clocks
from warplab.simulator.check.device_clocks import Rules, replayed
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.errors import DeviceRace, PeerAccess
from warplab.simulator.memory.array_locations import element
from warplab.simulator.memory.device_memory import Allocation, DeviceMemory
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.observer import Observer
from warplab.simulator.translate.translation import Translation
from warplab.simulator.translate.waiting_loops import working_blocks

_SYSTEM_FENCE = "__threadfence_system() (in Numba cuda.threadfence_system())"

# What is forgiven, in this order, until the two accesses are in order: then this is the cause.
_CAUSES = (
    ("narrow fence", Rules(any_fence=True)),
    ("narrow flag", Rules(any_fence=True, any_flag=True)),
    ("no fence before the flag", Rules(unfenced_stores=True)),
    ("no fence after the wait", Rules(unfenced_loads=True)),
    ("no fence before the flag", Rules(unfenced_stores=True, unfenced_loads=True)),
    ("no barrier", Rules(no_barriers=True)),  # number _BARRIERS
    ("no barrier", Rules(True, True, True, True, True)),
)
_BARRIERS = 5


def _reason(cause: str, before: str, now: str) -> str:
    return {
        "narrow fence": f"The fence between {before} and the flag, or after the wait for it, is too narrow: "
        f"__threadfence() is for the threads of one device. Another device needs {_SYSTEM_FENCE}.",
        "narrow flag": "The flag has too narrow a scope: an atomic operation without _system, or an access with .gpu, "
        "is for the threads of one device. Use a volatile flag, atomicExch_system or cuda::thread_scope_system (in "
        "Numba, whose atomic functions are for one device, link functions in CUDA C++, cuda.declare_device).",
        "split word": "The two have different sizes, so neither is one access to the other: half of a word may be seen "
        "without the other half. Write and read data and flag by one access each, of the same size.",
        "no fence before the flag": f"A flag is set after {before}, but no fence stands between the two, so the other "
        f"device may see the flag first: put a {_SYSTEM_FENCE} between them.",
        "no fence after the wait": "The thread has waited for the flag, but no fence stands between the wait and "
        f"{now}, which may have been done before: put a {_SYSTEM_FENCE} after the wait.",
        "plain flag": "Is this a flag? Of an ordinary variable the compiler may load the value once, before the loop, "
        "and nothing orders what the flag guards: make it volatile on both devices (in Numba link functions in "
        "CUDA C++, cuda.declare_device).",
        "volatile data": "`volatile` brings no order into what is read and written beside a flag: put a "
        f"{_SYSTEM_FENCE} between {before} and the flag, and one between the wait for it and {now}.",
        "no wait": f"Is a wait missing? Before {now} the thread must wait for a flag that the other device sets after "
        f"{before}, with a {_SYSTEM_FENCE} between the two. Or was a flag set before that was done?",
        "no barrier": "The flag speaks for one thread only: put a __syncthreads() between the accesses of all threads "
        "and the one that sets the flag, and between the wait and the accesses of all threads (in Numba "
        "cuda.syncthreads()).",
    }[cause]


class Access(NamedTuple):
    """An access to the word in question: its site, `device_races.Kind`, and the thread's number and lane."""

    site: Any
    kind: Any
    thread: int
    lane: int


def race_error(
    shared, verbs: tuple[str, str], now: Access, before: Access, time: int, allocation: Allocation, offset: int
) -> DeviceRace:
    """Return the error for access `now` to the word at `offset` of an allocation, and an earlier one, made at `time`.

    `shared`: the `device_races.DeviceAccesses`. `verbs`: of both, as in "reads" and "wrote".
    """
    here, there = _members(shared, now.thread), _members(shared, before.thread)
    does, did = verbs
    name = here.names.get(allocation.address) or there.names.get(allocation.address) or allocation.name
    other_name = there.names.get(allocation.address)
    index = element(allocation, allocation.address + offset, now.site.item)
    array = f"array `{name}`" if name else "an array"
    owner = "" if allocation.device is None else f" of device {allocation.device}"
    also = f" (its `{other_name}`)" if other_name and other_name != name else ""
    block, thread = here.chunk.indices(now.thread - here.first)
    other_block, other_thread = there.chunk.indices(before.thread - there.first)
    cause = _cause(shared, now, before, time, here, there, allocation.holds_flags)
    return DeviceRace(
        f"race between devices: thread {thread} of block {block} of device {here.device} {does} element {index} of "
        f"{array}{owner}, which thread {other_thread} of block {other_block} of device {there.device} {did} at line "
        f"{before.site.where.line}{also}, and nothing orders the two for both devices",
        reason=_reason(cause, _done(did, there.device), _doing(does)),
        cause=cause,
        device=here.device,
        other_device=there.device,
        other_kernel=there.chunk.entry.name,
        other_file=before.site.where.file or None,
        other_source=there.chunk.entry.program.source_line(before.site.where),
        other_line=before.site.where.line,
        other_thread=(other_block, other_thread),
        array=name,
        index=index,
        **here.chunk.where(now.site, now.thread - here.first),
    )


def _done(did: str, device: int) -> str:
    return f"device {device}'s write" if did == "wrote" else f"device {device}'s read"


def _doing(does: str) -> str:
    return "this write" if does == "writes" else "this read"


def _members(shared, thread: int):
    return next(m for m in reversed(shared.members) if m.first <= thread)


def _cause(shared, now: Access, before: Access, time: int, here, there, holds_flags: bool) -> str:
    strong = now.kind.strong, before.kind.strong
    if all(strong) and holds_flags:
        return "split word" if now.kind.system and before.kind.system else "narrow flag"
    lane, other, when = np.array([now.lane]), np.array([before.lane]), np.array([time])
    # What is volatile on one side is a flag, unless the fences of another one would have brought it into order.
    for cause, rules in _CAUSES[:_BARRIERS] if any(strong) and holds_flags else _CAUSES:
        if replayed(shared.events, shared.warps, rules).knows(lane, other, when)[0]:
            return "volatile data" if any(strong) and cause != "no barrier" else cause
    if any(strong) and holds_flags:
        return "plain flag"
    if here.observer.neighbour_waits(now.thread) or there.observer.neighbour_waits(before.thread):
        return "no barrier"
    plain = _waits(here.chunk, now.site) or _waits(there.chunk, before.site)
    return "plain flag" if plain else "no wait"


def _waits(chunk, site) -> bool:
    """Tell whether this is a load in the condition of a loop, by the text of its line."""
    line = chunk.entry.program.source_line(site.where) or ""
    return site.op == "load" and re.search(r"\bwhile\b", line) is not None


_STRONG = frozenset(("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"))
_SYSTEM = frozenset(("sys", "volatile", "mmio"))


class Kind(NamedTuple):
    """What an access does: `strong`: it may be a flag; `system`: with the scope .sys."""

    reads: bool
    writes: bool
    strong: bool
    system: bool
    acquires: bool
    releases: bool
    atomic: bool

    @classmethod
    def of(cls, site) -> Kind:
        words = next((word for word in site.text.replace("{", " ").split() if word[0] != "@"), "").split(".")
        atomic = site.op == "atomic"
        return cls(
            reads=site.op == "load" or (atomic and words[0] == "atom"),
            writes=site.op != "load",
            strong=atomic or not _STRONG.isdisjoint(words),
            system=not _SYSTEM.isdisjoint(words),
            acquires=not {"acquire", "acq_rel"}.isdisjoint(words),
            releases=not {"release", "acq_rel"}.isdisjoint(words),
            atomic=atomic,
        )


class _Touched:
    """Who touched each word last, of one device: threads numbered from 1, times, sites, the bytes of a flag or 0."""

    def __init__(self, words: int) -> None:
        self.writer, self.written_at, self.write_site, self.reader, self.read_at, self.read_site = np.zeros(
            (6, words), np.int32
        )
        self.write_flag, self.read_flag = np.zeros((2, words), np.int8)


@dataclass(eq=False)
class Members:
    """A chunk of thread blocks on a device, as messages name its threads. `first`: number of its first thread."""

    first: int
    device: int
    chunk: Any
    names: dict[int, str]
    observer: DeviceRaces


@dataclass(eq=False)
class DeviceAccesses:
    """What the kernels of all devices share during one run.

    `first_warp`: for each device the number of its first warp, and of `warps` in all. `word`: bytes per word, those of
    the narrowest access. `reachable`: by device, whose memory it can access. `checks`: look for races at all.
    """

    memory: DeviceMemory
    first_warp: list[int]
    warps: int
    word: int
    reachable: list[Collection[int]]
    checks: bool = True
    events: list[device_clocks.Event] = field(default_factory=list)
    touched: dict[int, dict[int, _Touched]] = field(default_factory=dict)
    sites: list = field(default_factory=list)
    members: list[Members] = field(default_factory=list)
    threads: int = 0

    def __post_init__(self) -> None:
        self.clocks = device_clocks.DeviceClocks(self.warps if self.checks else 0)
        self.lane_of = np.zeros(1, np.int64)  # of each thread, its lane in `device_clocks`; they are numbered from 1
        self.set: dict[int, int] = {}  # by place: how often the flag was set
        self.seen: dict[tuple[int, int, int], int] = {}  # by place, first lane and number of lanes: at which of these

    def happens(self, event: device_clocks.Event) -> None:
        if not self.checks:
            return
        self.events.append(event)
        self.clocks.happens(event)

    @property
    def now(self) -> int:
        return self.clocks.now


class DeviceRaces(Observer):
    """Observes the launches of one device. `names`: the kernel's name of each array, by address."""

    def __init__(self, shared: DeviceAccesses, device: int, translation: Translation, names: dict[int, str]) -> None:
        self.shared, self.device, self.names = shared, device, names
        self.first_site = len(shared.sites)
        shared.sites += translation.sites
        working = working_blocks(translation.blocks)
        self.waiting = {number for number, loop in translation.waiting_loops.items() if not loop & working}
        self.kinds = [Kind.of(site) for site in translation.sites]
        self.looked: set[int] = set()  # warps that have seen a flag which others of theirs may still learn of

    def watch(self, chunk) -> DeviceRaces:
        self.chunk, shared = chunk, self.shared
        self.runs = -1, chunk.everyone  # block of code and group
        self.first_thread = shared.threads + 1
        warps = shared.first_warp[self.device] + chunk.warp_of
        self.lanes = WARP_SIZE * warps + chunk.lane_of.astype(np.int64)
        shared.lane_of = np.concatenate((shared.lane_of, self.lanes))
        shared.members.append(Members(self.first_thread, self.device, chunk, self.names, self))
        shared.threads += chunk.lanes
        self.thread = np.arange(self.first_thread, shared.threads + 1, dtype=np.int32)
        per_block = -(-chunk.threads // WARP_SIZE)
        first = shared.first_warp[self.device]
        self.blocks = np.arange(first, first + chunk.warps).reshape(chunk.blocks, per_block)
        full = ((np.uint64(1) << chunk.warp_sizes.astype(np.uint64)) - np.uint64(1)).astype(np.uint32)
        shared.happens(device_clocks.Begin(self.device, list(self.blocks), full))
        return self

    def block(self, number: int, group: Group, time: int) -> None:
        self.runs = number, group

    def neighbour_waits(self, thread: int) -> bool:
        """Return whether this thread, a number in the run, has left behind others of its block that wait or will?"""
        chunk, own = self.chunk, thread - self.first_thread
        number, group = self.runs
        standing = {number: [group.all_lanes]} | chunk.scheduler.pending
        places = {number: np.concatenate(parts) for number, parts in standing.items()}
        place = next((number for number, lanes in places.items() if own in lanes), len(self.chunk.translation.blocks))
        behind = [
            lanes[lanes != own]
            for number, lanes in places.items()
            if any(number <= waiting < place for waiting in self.waiting)
        ]
        return any((chunk.block_of[lanes] == chunk.block_of[own]).any() for lanes in behind)

    def end_chunk(self) -> None:
        self.runs = -1, self.chunk.everyone
        self.shared.happens(device_clocks.End(self.device, self.blocks.ravel()))

    # -- what orders accesses --------------------------------------------------------------------------------------

    def _of(self, lanes) -> np.ndarray:
        return self.lanes if lanes is None else self.lanes[lanes]

    def fence(self, lanes, scope: str) -> None:
        if scope:
            self.shared.happens(device_clocks.Fence(self._of(lanes), scope == "sys"))

    def barrier(self, lanes) -> None:
        blocks = self.blocks if lanes is None else self.blocks[np.unique(self.chunk.block_of[lanes])]
        self.looked.clear()
        self.shared.happens(device_clocks.Barrier(list(blocks)))

    def grid_barrier(self) -> None:
        self.looked.clear()
        self.shared.happens(device_clocks.Barrier([self.blocks.ravel()]))

    def sync_warp(self, lanes) -> None:
        self.shared.happens(device_clocks.WarpSync(self._of(lanes)))

    def exchange(self, lanes) -> None:
        if self.looked and not self.looked.isdisjoint(np.unique(self._of(lanes) // WARP_SIZE).tolist()):
            self.shared.happens(device_clocks.WarpSync(self._of(lanes), orders=False))

    def arrive(self, places: np.ndarray, lanes: np.ndarray, relaxed: bool = False) -> None:
        self._arrival(places, lanes, waits=False)

    def wait_over(self, places: np.ndarray, lanes: np.ndarray) -> None:
        self._arrival(places, lanes, waits=True)

    def _arrival(self, places: np.ndarray, lanes: np.ndarray, waits: bool) -> None:
        own = np.broadcast_to(places, lanes.shape) * len(self.shared.first_warp) + self.device
        self.shared.happens(device_clocks.Arrival(tuple(own.tolist()), tuple(self._of(lanes).tolist()), waits))

    def _flag(self, kind: Kind, site, space: str, addresses: np.ndarray, lanes: np.ndarray, new) -> None:
        """Follow an access that is meant to synchronise. `new`: what is stored; a flag that holds it already was not
        set by this store, as nobody who reads it can tell that from the one before."""
        shared = self.shared
        if new is not None and site.count == 1:
            view, index = Addresses(addresses).index(shared.memory.views[site.dtype], site.item, 0)
            setting = np.broadcast_to(view.take(index) != new, lanes.shape)
            if lanes.shape[0] > 1 and setting.any():  # of several lanes the first one sets it
                _, first = np.unique(np.broadcast_to(addresses, lanes.shape), return_index=True)
                setting = setting & np.isin(np.arange(lanes.shape[0]), first)
            if not setting.all():
                addresses, lanes = np.broadcast_to(addresses, lanes.shape)[setting], lanes[setting]
                if not lanes.size:
                    return
        places = addresses.astype(np.int64)
        if space == "shared":  # each device's own: numbers that no address has
            places = -1 - (places * len(shared.first_warp) + self.device)
        numbers = tuple(np.broadcast_to(places, lanes.shape).tolist())
        if kind.writes:
            for place in set(numbers):
                shared.set[place] = shared.set.get(place, 0) + 1
        else:  # nothing new to learn where it was not set since the last look
            key = hash(numbers), int(lanes[0]), lanes.shape[0]
            version = sum(shared.set.get(place, 0) for place in set(numbers))
            if shared.seen.get(key) == version:
                return
            shared.seen[key] = version
        self.looked.update(np.unique(lanes // WARP_SIZE).tolist())
        shared.happens(
            device_clocks.Flag(
                self.device,
                numbers,
                tuple(lanes.tolist()),
                kind.reads,
                kind.writes,
                kind.acquires,
                kind.releases,
                kind.system or space == "shared",
                kind.atomic,
            )
        )

    # -- accesses --------------------------------------------------------------------------------------------------

    def load(self, site, space: str, addresses: Addresses, lanes) -> None:
        self._access(site, space, addresses, lanes)

    def store(self, site, space: str, addresses: Addresses, lanes, values) -> None:
        self._access(site, space, addresses, lanes, values)

    def atomic(self, site, space: str, addresses: Addresses, lanes, reads: bool) -> None:
        self._access(site, space, addresses, lanes)

    copy_read, copy_done = load, store

    def _access(self, site, space: str, addresses: Addresses, lanes, values=None) -> None:
        kind = self.kinds[site.index]
        if space == "shared":
            if kind.strong and self.shared.checks:
                self._flag(kind, site, space, addresses.at(site.offset), self._of(lanes), None)
            return
        if space != "global":
            return
        for allocation, chosen, address in self._parts(site, addresses):
            self._reachable(allocation, site, address, lanes, chosen)
            if not self.shared.checks:
                continue
            own = self._of(lanes)
            own = own if chosen is None else own[chosen]
            if kind.strong:
                new = None if values is None else values[0] if chosen is None else values[0][chosen % len(values[0])]
                self._flag(kind, site, space, address, own, new)
            thread = self.thread if lanes is None else self.thread[lanes]
            thread = thread if chosen is None else thread[chosen]
            self._follow(site, kind, allocation, address, own, thread)

    def _parts(self, site, addresses: Addresses) -> Iterator[tuple[Allocation, np.ndarray | None, np.ndarray]]:
        """Yield, for each allocation that the access touches, its lanes (None for all) and their addresses."""
        address = addresses.at(site.offset)
        allocation = self.chunk.access.allocation(site, addresses)
        if allocation is not None:
            yield allocation, None, address
            return
        address = np.broadcast_to(address, self.chunk.group.count)
        left = np.ones(address.shape, bool)
        while left.any():
            start = int(address[np.argmax(left)])
            allocation = self.shared.memory.find(start)
            if allocation is None:  # an illegal address, which is for others to report
                return
            chosen = left & (address >= np.uint64(allocation.address)) & (address < np.uint64(allocation.end))
            yield allocation, np.flatnonzero(chosen), address[chosen]
            left &= ~chosen

    def _reachable(self, allocation: Allocation, site, address: np.ndarray, lanes, chosen) -> None:
        owner = allocation.device
        if owner is None or owner == self.device or owner in self.shared.reachable[self.device]:
            return
        place = 0 if chosen is None else int(chosen[0])
        name = self.names.get(allocation.address) or allocation.name
        raise PeerAccess(
            f"device {self.device} accesses an array of device {owner}, to which it has no peer access",
            reason=f"Enable it before the launch: devices[{self.device}].enable_peer_access({owner}), "
            f"as cudaDeviceEnablePeerAccess does, or send the data by way of a device that both can reach.",
            address=int(address[0]),
            array=name,
            index=element(allocation, int(address[0]), site.item),
            **self.chunk.where(site, place if lanes is None else int(lanes[place])),
        )

    def _follow(self, site, kind: Kind, allocation: Allocation, address: np.ndarray, own, thread) -> None:
        """Compare an access with those of other devices, then record it."""
        shared, size = self.shared, self.shared.word
        word = (address.view(np.int64) - allocation.address) // size
        count = -(-site.width // size)
        if word.shape[0] != own.shape[0]:
            word = np.broadcast_to(word, own.shape)
        if count > 1:
            word = (word[:, None] + np.arange(count)).ravel()
            own, thread = np.repeat(own, count), np.repeat(thread, count)
        by_device = shared.touched.setdefault(allocation.address, {})
        flag = site.item if kind.strong and kind.system and allocation.holds_flags else 0
        for device, touched in by_device.items():
            if device == self.device:
                continue
            earlier = touched.writer, touched.written_at, touched.write_site, touched.write_flag
            self._compare("wrote", earlier, site, kind, allocation, word, own, thread, flag)
            if kind.writes:
                earlier = touched.reader, touched.read_at, touched.read_site, touched.read_flag
                self._compare("read", earlier, site, kind, allocation, word, own, thread, flag)
        mine = by_device.get(self.device)
        if mine is None:
            mine = by_device[self.device] = _Touched(-(-allocation.nbytes // size))
        number = self.first_site + site.index
        if kind.writes:
            mine.writer[word], mine.written_at[word] = thread, shared.now
            mine.write_site[word], mine.write_flag[word] = number, flag
        else:
            mine.reader[word], mine.read_at[word] = thread, shared.now
            mine.read_site[word], mine.read_flag[word] = number, flag

    def _compare(self, did: str, earlier, site, kind: Kind, allocation, word, own, thread, flag: int) -> None:
        others, when, sites, flags = earlier
        time = when[word]
        suspect = time > 0
        if flag:
            suspect &= flags[word] != flag
        if not suspect.any():
            return
        places = np.flatnonzero(suspect)
        other, time = others[word[places]], time[places]
        lanes = self.shared.lane_of[other]
        known = self.shared.clocks.knows(own[places], lanes, time)
        if known.all():
            return
        first = int(np.argmin(known))
        place = places[first]
        at = int(word[place])
        earlier_site = self.shared.sites[int(sites[at])]
        now = Access(site, kind, int(thread[place]), int(own[place]))
        before = Access(earlier_site, Kind.of(earlier_site), int(other[first]), int(lanes[first]))
        does = "writes" if kind.writes else "reads"
        offset = at * self.shared.word
        raise race_error(self.shared, (does, did), now, before, int(time[first]), allocation, offset)
