"""What does the work of a limited counter by other instructions: the counters of a launch leave it out, as ncu does."""

from dataclasses import fields, replace

import numpy as np

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.count.counters import Counts, LaunchProfile, Place
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.observer import Lanes, Observer
from warplab.simulator.translate.block_writer import Site

_WAITS = "Waits for flags of the same block, or of several warps at an mbarrier count as barriers here."
_COUNTED = "Arrivals at an mbarrier count as atomics in a kernel that asks how many have arrived (pending_count)."
_STORES = "Copies to shared memory (cp.async) and st.async count as stores here"
_ORDERS = frozenset(("acquire", "relaxed"))
REASONS = {
    "barriers": _WAITS,
    "atomics": _COUNTED,
    "shared_atomic_requests": _COUNTED,
    "shared_load_requests": "Operations on mbarriers count as loads of shared memory here.",
    "shared_store_requests": f"{_STORES}, and so do operations on mbarriers.",
    "shared_store_wavefronts": f"{_STORES}.",
    "shared_store_conflicts": f"{_STORES}.",
}


class Uncounted(Observer):
    """Counts, for the limits of a check, what one launch does past the counters that limit it.

    A wait of a warp at an mbarrier at which several warps have arrived is a barrier, and so are waits for several warps
    at one mbarrier each. Operations on mbarriers load and
    store shared memory; they are atomics where a kernel asks how many threads have arrived, since it can count so.
    A line that loads a flag from shared memory, as its PTX says by acquire or relaxed, passes a barrier each time; of
    global memory, so does a warp that sees what another of its block has set (`flags`, one more observer).
    What cp.async and st.async bring is stored.
    """

    def __init__(self) -> None:
        self._lines: dict[Place, Counts] = {}
        self._flags: set[Place] = set()
        self.flags = _GlobalFlags(self)

    def watch(self, chunk) -> Observer:
        self._arrived: dict[int, set[int]] = {}  # warps that have arrived in the present phase, by mbarrier
        self._met: dict[int, set[int]] = {}  # those of the phase before
        self._brought: set[int] = set()  # where a copy reports its bytes, which a warp may announce to all
        self._heard: dict[int, set[int]] = {}  # by warp: others for which it has waited, one at an mbarrier
        self._waits: Site | None = None
        for site in chunk.translation.sites:
            if _is_flag(site):
                self._flags.add((site.where.file, site.where.line))
        return super().watch(chunk)

    def end_launch(self, profile, finished: bool) -> None:
        self.chunk = None  # and with it the launch's memory

    def mbarrier(self, site: Site, addresses: Addresses, lanes: Lanes, initialises: bool) -> None:
        operation = site.text.split()[0].removeprefix("cp.async.")
        if not operation.startswith("mbarrier."):
            self._brought.update(np.atleast_1d(addresses.at(site.offset).view(np.int64)).tolist())
            return  # a copy that will report its bytes there
        waits, arrives = "_wait" in operation, operation.startswith("mbarrier.arrive")
        warps = self.chunk.group.warps
        if not initialises:
            self._add(site, "shared_load_requests", warps)
        if not waits:
            self._add(site, "shared_store_requests", warps)
        if waits:
            self._waits = site
        if arrives:
            if self.chunk.translation.counts_arrivals:
                self._add(site, "atomics", warps)
                self._add(site, "shared_atomic_requests", warps)
            every = self._every(lanes)
            places = np.broadcast_to(addresses.at(site.offset).view(np.int64), every.shape)
            pairs = np.unique(np.stack((places, self._warp(every))), axis=1)
            for place, warp in pairs.T.tolist():
                self._arrived.setdefault(place, set()).add(warp)

    def phase_over(self, places: np.ndarray) -> None:
        for place in np.atleast_1d(places).tolist():
            if place in self._arrived:
                met = self._arrived.pop(place)
                self._met[place] = set() if place in self._brought and len(met) == 1 else met
            self._brought.discard(place)

    def wait_over(self, places: np.ndarray, lanes: np.ndarray) -> None:
        if not self._met or self._waits is None:
            return
        enough = max(2, ((self.chunk.threads - 1) // WARP_SIZE).bit_length())  # for all to have heard of all, in rounds
        through = set()
        for place, warp in np.unique(np.stack((places, self._warp(lanes))), axis=1).T.tolist():
            met, heard = self._met.get(place, set()), self._heard.setdefault(warp, set())
            heard |= met - {warp}
            if len(met) > 1 or len(heard) >= enough:
                through.add(warp)
                heard.clear()
        self._add(self._waits, "barriers", len(through))

    def async_store(self, site: Site, addresses: Addresses, lanes: Lanes) -> None:
        group = self.chunk.group
        wavefronts, needed = addresses.wavefronts(site.offset, site.width, group, site.bank_op)
        self._add(site, f"shared_{site.op}_requests", group.warps)
        self._add(site, f"shared_{site.op}_wavefronts", wavefronts)
        self._add(site, f"shared_{site.op}_conflicts", wavefronts - needed)
        if site.op == "atomic":
            self._add(site, "atomics", group.warps)

    def _every(self, lanes: Lanes) -> np.ndarray:
        return self.chunk.all_lanes if lanes is None else lanes

    def _warp(self, lanes: np.ndarray) -> np.ndarray:
        return _warp_of(self.chunk, lanes)

    def _add(self, site: Site, counter: str, amount: int) -> None:
        counts = self._lines.setdefault((site.where.file, site.where.line), Counts())
        setattr(counts, counter, getattr(counts, counter) + amount)

    def added_to(self, profile: LaunchProfile) -> LaunchProfile:
        """Return the profile of the launch with what its counters leave out."""
        lines = {
            place: _with_copies(profile.lines.get(place, Counts()) + self._lines.get(place, Counts()))
            for place in sorted(profile.lines.keys() | self._lines.keys())
        }
        for place in self._flags & lines.keys():
            lines[place].barriers += lines[place].shared_load_requests
        return replace(profile, lines=lines, counts=sum(lines.values(), Counts()))


class _GlobalFlags(Observer):
    """Sees warps wait for flags in global memory; inert where no instruction of a kernel may do that."""

    def __init__(self, counted: Uncounted) -> None:
        self._counted = counted

    def watch(self, chunk) -> Observer:
        super().watch(chunk)
        self._set: dict[int, set[int]] = {}  # warps that have stored there, by pieces of 16 bytes
        return self if any(_is_flag(s) and s.space != "shared" for s in chunk.translation.sites) else Observer()

    def end_launch(self, profile, finished: bool) -> None:
        self.chunk = None

    def store(self, site: Site, space: str, addresses: Addresses, lanes: Lanes, values) -> None:
        if space == "global" and site.flag:
            for place, warp in self._pairs(site, addresses, lanes):
                self._set.setdefault(place, set()).add(warp)

    def load(self, site: Site, space: str, addresses: Addresses, lanes: Lanes) -> None:
        if space == "global" and _is_flag(site):
            block = self.chunk.threads
            seen = (
                (warp, other) for at, warp in self._pairs(site, addresses, lanes) for other in self._set.get(at, ())
            )
            waited = {warp for warp, other in seen if warp != other and warp // block == other // block}
            self._counted._add(site, "barriers", len(waited))

    def _pairs(self, site: Site, addresses: Addresses, lanes: Lanes) -> list[list[int]]:
        every = self.chunk.all_lanes if lanes is None else lanes
        places = np.broadcast_to(addresses.at(site.offset).view(np.int64) // 16, every.shape)
        return np.unique(np.stack((places, _warp_of(self.chunk, every))), axis=1).T.tolist()


def _is_flag(site: Site) -> bool:
    return site.op == "load" and not _ORDERS.isdisjoint(site.text.split()[0].split("."))


def _warp_of(chunk, lanes: np.ndarray) -> np.ndarray:
    """Return a number for the warp of each lane; divided by a block's threads, that of its block."""
    block, thread = np.divmod(lanes, chunk.threads)
    return block * chunk.threads + thread // WARP_SIZE


def _with_copies(counts: Counts) -> Counts:
    stored = {
        f.name: getattr(counts, f.name) + getattr(counts, f.name.replace("store", "copy"))
        for f in fields(Counts)
        if f.name.startswith("shared_store_")
    }
    return replace(counts, **stored)
