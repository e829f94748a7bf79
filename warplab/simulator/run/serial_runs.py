"""Runs a loop in which a single lane goes round as one Python function (`translate.serial_loops`).

The function counts and tests accesses that it knows to be good; `SerialRuns` hands the sums to the observers of the
launch afterwards, and leaves every other access to the code for arrays, observers included. A launch with observers
that are not known here runs block by block.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from warplab.simulator.check import serial_races
from warplab.simulator.check.access_checks import Checks
from warplab.simulator.check.races import Races
from warplab.simulator.check.unwritten_reads import UnwrittenReads
from warplab.simulator.count.access_trace import AccessTrace
from warplab.simulator.count.launch_counting import Counting
from warplab.simulator.count.reuse import ReuseWatch
from warplab.simulator.count.serial_counting import add_serial
from warplab.simulator.count.warp_steps import StepTrace
from warplab.simulator.memory.device_memory import ORIGIN, WINDOW_LOCAL, WINDOW_SHARED
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.numerics.serial import array_d, array_f, scalar_d, scalar_f
from warplab.simulator.translate.serial_loops import SerialLoop
from warplab.simulator.translate.serial_writer import SITE_BITS

# Times that a lane comes to a label alone before the loop becomes a function, which takes as long to write as 50 trips.
_WARM = 64
_PROBES, _WORTH = 16, 8  # a loop whose first runs have fewer blocks each than this is left to the arrays
_EVENTS = ("block", "jump", "load", "loaded", "store", "stored")
_SITE = (1 << SITE_BITS) - 1
_NOWHERE = (0, -1, None, None, None, None, None)
_MOST_TOUCHED = 1 << 18  # accesses recorded for race detection at a time
_KNOWN = (Checks, Races, UnwrittenReads, AccessTrace, Counting, ReuseWatch, StepTrace)


class SerialRuns:
    """The serial runs of one chunk. Code of a loop calls `address`, `place`, `load` and `store`."""

    def __init__(self, scheduler) -> None:
        self.scheduler, self.chunk = scheduler, scheduler.chunk
        self.loops = self.chunk.translation.serial_loops
        self.runs: dict[SerialLoop, int] = {}
        self.blocks_run: dict[SerialLoop, int] = {}
        seen: dict[type, list[Any]] = {kind: [] for kind in _KNOWN}
        self.possible = self.chunk.options.serial_loops and scheduler.alone and self.chunk.cluster_blocks == 1
        for event in _EVENTS:
            for notify in getattr(self.chunk.observers, event, ()):
                observer = getattr(notify, "__self__", None)
                if type(observer) not in seen:
                    self.possible = False
                elif observer not in seen[type(observer)]:
                    seen[type(observer)].append(observer)
        self.counting: list[Counting] = seen[Counting]
        self.steps: list[StepTrace] = seen[StepTrace]
        self.accesses: list[AccessTrace] = seen[AccessTrace]
        self.races: Races | None = next(iter(seen[Races]), None)
        self.words = () if self.races is None else tuple(self.races.word.items())
        self.reuse: list[ReuseWatch] = seen[ReuseWatch]
        self.checked, self.unwritten = bool(seen[Checks]), bool(seen[UnwrittenReads])
        self.scratch: tuple[Any, ...] = ()
        # While a loop runs:
        self.loop: SerialLoop | None = None
        self.forms: dict[int, str] = {}
        self.lanes: np.ndarray | None = None
        self.lane = 0
        self.values: tuple = ()
        self.counts: tuple[int, ...] = ()
        self.slow: dict[int, int] = {}  # by site: accesses left to the arrays
        self.at: int | None = None  # the site of the access that is left to them at present
        self.spaces: dict[int, str] = {}  # by site: where the others go
        self.entered: dict[int, list[int]] = {}
        self.blocks: list[int] = []
        self.noted: list[int] = []  # site and base address of each access; tuples would keep the garbage collector busy
        self.reads: list[int] = []
        self.touched: list[int] = []
        self.records: dict[int, tuple[Any, str, int]] = {}  # by site: record of race detection, space, first address
        self.mine = (0, 0)  # in a record: nobody, and the lane's thread
        self.touch = self.touched.append
        self.log, self.note, self.reading = self.blocks.append, self.noted.append, self.reads.append

    def run(self, number: int, group: Group, executed: int, path: int, path_ends: int) -> tuple[int, int] | None:
        """Run the loop that the only lane of `group` enters at block `number`, as far as limits allow. Returns the next
        block and the number of instructions; None if the block is to run as usual."""
        visits = self.loops.visits.get(number, 0) + 1
        if visits < _WARM:
            self.loops.visits[number] = visits
            return None
        loop = self.loops.at(number)
        if loop is None or not self._fits(loop):
            return None
        scheduler = self.scheduler
        trips = min(scheduler.budget - executed, path_ends - path) // loop.longest
        if scheduler.pending:
            trips = min(trips, (scheduler.patience - scheduler.waited) // loop.most_blocks)
        lane = 0 if group.lanes is None else int(group.lanes[0])
        steps = [trace for trace in self.steps if group.lanes is None or lane < trace.lanes]
        traces = [trace for trace in self.accesses if lane < trace.traced]
        rooms = [(trace.room, loop.most_blocks) for trace in steps if trace.room]
        rooms += [(trace.room, loop.most_sites) for trace in traces if trace.room and loop.most_sites]
        for room, most in rooms:
            trips = min(trips, room // most)
        if trips < 1:
            return None
        reuse = [watch for watch in self.reuse if watch.room and watch.watches(lane)]
        if reuse:
            trips = min(trips, max(1, max(watch.room for watch in reuse) // max(1, loop.most_sites)))
        if self.races is not None and loop.most_sites:
            trips = min(trips, max(1, _MOST_TOUCHED // loop.most_sites))
        self.watching = steps, traces, reuse
        return self._run(loop, number, group, lane, trips, path, bool(rooms))

    def _fits(self, loop: SerialLoop) -> bool:
        scheduler = self.scheduler
        if self.runs.get(loop, 0) == _PROBES and self.blocks_run[loop] < _PROBES * _WORTH:
            return False
        if scheduler.grace or scheduler.late or self.chunk.waits_in_vain:
            return False
        if scheduler.pending and max(loop.blocks) >= min(scheduler.pending):
            return False
        moving = scheduler.standstill.moving
        return not moving or loop.blocks <= moving

    def _run(
        self, loop: SerialLoop, number: int, group: Group, lane: int, trips: int, path: int, traced: bool
    ) -> tuple[int, int]:
        chunk, scheduler = self.chunk, self.scheduler
        if not self.scratch:
            floats, doubles = memoryview(bytearray(8)), memoryview(bytearray(8))
            self.scratch = floats.cast("f"), floats.cast("I"), doubles.cast("d"), doubles.cast("Q")
        self.loop, self.forms, self.lane, self.lanes = loop, loop.forms, lane, group.lanes
        chunk.group = group
        self.slow, self.at, self.spaces = {}, None, {}
        self.entered = {}
        if self.races is not None:
            self.mine = 0, self.races.numbers.first_thread + lane
        for kept in (self.blocks, self.noted, self.reads, self.touched):
            kept.clear()
        slots, registers, own = chunk.translation.slots, chunk.registers, np.array([lane])
        self.values = tuple(
            self._taken(chunk.at(registers[slots[name]], own), loop.forms_of[name]) for name in loop.loaded
        )
        function = loop.function(bool(self.counting), traced, bool(self.watching[2]), self.words)
        try:
            number = function(chunk, self, number, trips, *self.scratch)
        except BaseException:
            self._tell(group, path, *self._ran())
            raise
        ran, unfinished = self._ran()
        self._tell(group, path, ran, unfinished)
        blocks_of = chunk.translation.blocks
        steps = sum(n * len(blocks_of[block].counted) for block, n in ran.items())
        live = blocks_of[number].live_in
        for name, value in zip(loop.stored, self.values, strict=True):
            if name in live and value is not None:
                self._give(slots[name], loop.forms_of[name], value)
        chunk.clock = path + steps
        blocks = sum(ran.values())
        if scheduler.pending:
            scheduler.waited += blocks - 1
        if scheduler.standstill.moving:
            scheduler.standstill.moved = True
        if self.runs.get(loop, 0) < _PROBES:
            self.runs[loop] = self.runs.get(loop, 0) + 1
            self.blocks_run[loop] = self.blocks_run.get(loop, 0) + blocks
        return number, steps

    # -- registers -------------------------------------------------------------------------------------------------

    @staticmethod
    def _taken(array: np.ndarray, form: str) -> int | float | bool:
        """The only entry of an array."""
        if form == "u":
            return int(array.view(f"u{array.dtype.itemsize}")[0])
        if form == "f":
            return scalar_f(array.view(np.float32))
        return scalar_d(array.view(np.float64)) if form == "d" else bool(array[0])

    @staticmethod
    def _array(value, form: str, dtype) -> np.ndarray:
        if form == "u":
            return np.array([value], f"u{np.dtype(dtype).itemsize}").view(dtype)
        if form == "p":
            return np.array([value], bool)
        return (array_f(value) if form == "f" else array_d(value)).view(dtype)

    def _give(self, slot: int, form: str, value) -> None:
        dtype = self.chunk.registers[slot].dtype
        array = self._array(value, form, dtype)
        if self.lanes is None:
            self.chunk.registers[slot] = array
        else:
            self.chunk.scatter(slot, self.lanes, array)

    # -- what observers are told -----------------------------------------------------------------------------------

    def _ran(self) -> tuple[Counter[int], list[int]]:
        """How often each block has run, and the sites of the block that an error ended which were not reached."""
        loop = self.loop
        assert loop is not None
        ran: Counter[int] = Counter()
        for path, n in zip(loop.paths, self.counts, strict=True):
            if n:
                for number in path.blocks:
                    ran[number] += n
        if self.at is None:
            return ran, []
        number = self.chunk.translation.site_blocks[self.at]
        for other in (*loop.before[number], number):
            ran[other] += 1
        sites = loop.sites[number]
        return ran, sites[sites.index(self.at) + 1 :]

    def _tell(self, group: Group, path: int, ran: Counter[int], unfinished: list[int]) -> None:
        """Give the observers of the launch the sums of a run that began `path` instructions into the chunk's way."""
        loop, translation = self.loop, self.chunk.translation
        assert loop is not None
        steps = self.watching[0]
        for trace in self.steps:
            if trace.room:
                if trace in steps:
                    trace.add(group, self.blocks, path)
            elif ran:
                trace.complete = False
        self._tell_accesses()
        if not self.counting:
            return
        accesses = {}
        for number, n in ran.items():
            for site in loop.sites[number]:
                fast = n - self.slow.get(site, 0) - unfinished.count(site)
                if fast:
                    accesses[site, self.spaces[site]] = fast
        taken: Counter[int] = Counter()
        for way, n in zip(loop.paths, self.counts, strict=True):
            if n:
                for number in way.taken:
                    taken[number] += n
        if self.at is not None:
            for number in loop.taken_before[translation.site_blocks[self.at]]:
                taken[number] += 1
        rounds = {head: (ran[head], self.entered.get(head, ())) for head in loop.heads}
        for counting in self.counting:
            add_serial(counting, group, ran, taken, accesses, rounds)

    def _tell_accesses(self) -> None:
        """Give the observers that want each access those so far, as they come in order."""
        _, traces, reuse = self.watching
        if self.noted:
            sites = self.chunk.translation.sites
            numbers = [access & _SITE for access in self.noted]
            bases = [access >> SITE_BITS for access in self.noted]
            for trace in traces:
                trace.add([sites[k] for k in numbers], [self.spaces[k] for k in numbers], bases, self.lane)
            self.noted.clear()
        if self.reads:
            for watch in reuse:
                watch.add(self.reads)
            self.reads.clear()
        if self.touched:
            self._tell_races()
            self.touched.clear()

    def _tell_races(self) -> None:
        assert self.races is not None
        sites = self.chunk.translation.sites
        listed = np.array(self.touched, np.int64)
        number, base = listed & _SITE, listed >> SITE_BITS
        used = np.unique(number).tolist()
        per_site = np.zeros((4, max(used) + 1), np.int64)
        of_record: dict[int, list[int]] = {}
        for k in used:
            record, space, start = self.records[k]
            size = self.races.word[space]
            per_site[:, k] = sites[k].offset - start, size, max(1, sites[k].width // size), sites[k].op == "store"
            of_record.setdefault(id(record), []).append(k)
        offset, size, count, stores = per_site[:, number]
        word = (base + offset) // size
        for numbers in of_record.values():
            record, space, _ = self.records[numbers[0]]
            chosen = np.isin(number, numbers) if len(of_record) > 1 else slice(None)
            words, times = word[chosen], count[chosen]
            every = [np.repeat(values[chosen], times) for values in (number, stores)]
            first = np.cumsum(times) - times
            words = np.repeat(words - first, times) + np.arange(int(times.sum()))
            serial_races.add_serial(self.races, record, space, self.lane, words, every[0], every[1] != 0)

    # -- called by the code of a loop ------------------------------------------------------------------------------

    def address(self, addresses: np.ndarray) -> int:
        """The lane's own of these addresses."""
        return int(addresses[0 if addresses.shape[0] == 1 else self.lane])

    def entering(self, head: int):
        """What notes how often the lane had come to the head of a loop when it was about to enter the loop."""
        return self.entered.setdefault(head, []).append

    def place(self, site: int) -> tuple:
        """Where the accesses of a site are known to be good: the array's first byte, how far behind it an access may
        begin, its elements, which of them were written (None if that does not matter), and which of its sectors were
        touched (None if they are not counted)."""
        return _NOWHERE

    def load(self, number: int, base: int) -> tuple:
        """Load as the arrays' code does. Returns the values, and the site's `place`."""
        site, addresses = self._begin(number, base)
        values = self.chunk.access.load_vector(site, addresses, self.lanes)
        self.at = None
        form = self.forms[number]
        found = [self._taken(value, form) for value in values]
        return (*found, *self._place(number, site, addresses))

    def store(self, number: int, base: int, values: tuple) -> tuple:
        """Store as the arrays' code does. Returns the site's `place`."""
        site, addresses = self._begin(number, base)
        form = self.forms[number]
        arrays = tuple(self._array(value, form, site.dtype) for value in values)
        self.chunk.access.store_vector(site, addresses, arrays, self.lanes)
        self.at = None
        return self._place(number, site, addresses)

    def _begin(self, number: int, base: int) -> tuple[Any, Addresses]:
        self._tell_accesses()
        self.at = number
        self.slow[number] = self.slow.get(number, 0) + 1
        site = self.chunk.translation.sites[number]
        return site, self.chunk.addresses(np.array([base], np.uint64), self.lanes)

    def _place(self, number: int, site, addresses: Addresses) -> tuple:
        access = self.chunk.access
        space, there = access.resolve(site, addresses)
        if self.spaces.setdefault(number, space) != space:
            return _NOWHERE
        recorded = False if self.races is None else serial_races.followed(self.races, site, space)
        if recorded is None or (recorded and site.space == "generic"):
            return _NOWHERE
        form = self.forms[number]
        dtype = {"u": f"u{site.item}", "f": "f4", "d": "f8"}[form]
        view, touched, record, allocation = access.views[space][dtype], None, None, None
        if space in ("global", "const"):
            allocation = access.allocation(site, there)
            if allocation is None:
                return _NOWHERE
            start, size = allocation.address, allocation.nbytes
            if self.checked and not allocation.complete:
                record = self.chunk.device.memory.written[site.item]
            if self.counting and space == "global":
                touched = self.counting[0].touched[site.op, site.where, allocation.address].data
            origin = ORIGIN
        else:
            starts, size = self.chunk.own_memory(space, self.lanes)
            start, origin = int(starts[0]), 0
            arrays = access.shared if space == "shared" else access.local
            if not arrays.complete and (self.unwritten or (space == "shared" and self.checked)):
                record = arrays.written[site.item]
        first, last = (start - origin) // site.item, (start - origin + size) // site.item
        elements = view[first:last].data
        written = None if record is None else record[first:last].data
        window = 0 if site.space != "generic" else {"shared": WINDOW_SHARED, "local": WINDOW_LOCAL}.get(space, 0)
        place = start + window, size - site.width, elements, written, touched
        if not recorded or self.races is None:
            return *place, None, None
        record, word = serial_races.record_of(self.races, space, allocation), self.races.word[space]
        if space == "shared":
            first, last = start // word, (start + size) // word
            self.records[number] = record, space, 0
        else:
            first, last = 0, record.words
            self.records[number] = record, space, start
        return *place, record.writer[first:last].data, record.reader[first:last].data
