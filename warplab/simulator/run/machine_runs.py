"""Runs blocks for all lanes of a chunk as machine code (`translate.machine_blocks`).

The function computes, tests and counts; what it finds is told to the observers here, access by access and in their
order, as the arrays' code tells them. Those that want addresses get them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from warplab.simulator.check import narrow_races
from warplab.simulator.check.access_checks import Checks
from warplab.simulator.check.races import Races
from warplab.simulator.check.unwritten_reads import UnwrittenReads
from warplab.simulator.constants import SECTOR_BYTES, WARP_SIZE
from warplab.simulator.count.access_trace import AccessTrace
from warplab.simulator.count.launch_counting import Counting
from warplab.simulator.count.reuse import ReuseWatch
from warplab.simulator.count.warp_steps import traced_lanes
from warplab.simulator.memory.device_memory import ORIGIN
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.translate.machine_blocks import PHASE, RECORD_ENTRIES, BlockAccess, MachineBlock, store
from warplab.simulator.translate.narrow_access import FIELDS, PLACE, PLACE_BYTES, place_of

FEWEST = 4096  # lanes of a chunk for which a call pays off
_FEW = f"fewer than {FEWEST:,} threads run at one time"
_LONG = 1e6  # nanoseconds of the arrays' code for which it pays off, of fewer lanes
_F = {name: k for k, name in enumerate(FIELDS)}
_P = {name: k for k, name in enumerate(PLACE)}
_KNOWN = (Checks, Races, UnwrittenReads, Counting, AccessTrace)
_OWN = {"shared": 1, "local": 2}
_SUMS = slice(_P["REQUESTS"], _P["NEEDED"] + 1)
_LANES = np.arange(WARP_SIZE, dtype=np.int32)
_SHARED = 64  # warps by record, from which on these are few
_POOL, _MORE = 32, 16  # records of addresses that a chunk begins with; times as many if these are too few


class WarpAddresses:
    """The base addresses of an access by all lanes: for each warp the first one and where the record is that has the
    distances from it. `few`: do so many warps share a record that to keep these takes less than the addresses?"""

    def __init__(self, table: np.ndarray, pool: np.ndarray, few: bool) -> None:
        self._table, self._pool, self.few = table, pool, few
        self._first: tuple[int, np.ndarray] = 0, np.zeros(0, np.uint64)

    def __call__(self, lanes: int | None = None) -> np.ndarray:
        """Return those of the first `lanes` lanes, None for all."""
        if lanes is not None and lanes <= self._first[0]:
            return self._first[1][:lanes]
        table = self._table if lanes is None else self._table[: -(-lanes // WARP_SIZE)]
        first, record = table[:, :1], table[:, 1]
        if lanes is None and (record == record[0]).all():
            record = record[:1]
        distances = self._pool.take((record - place_of(self._pool)) // (8 * RECORD_ENTRIES), 0)[:, :WARP_SIZE]
        found = (first + distances).reshape(-1)[:lanes].view(np.uint64)
        if lanes is not None:
            self._first = lanes, found
        return found


class MachineRuns:
    """The runs of one chunk. `possible`: can any block run as machine code?"""

    def __init__(self, scheduler) -> None:
        chunk = self.chunk = scheduler.chunk
        observers = chunk.observers
        self.blocks = chunk.translation.machine_blocks
        self.loads = [(notify, getattr(notify, "__self__", None)) for notify in observers.load]
        self.counting: Any = next((owner for _, owner in self.loads if type(owner) is Counting), None)
        self.checked = any(type(owner) is Checks for _, owner in self.loads)
        self.few = chunk.lanes < FEWEST
        why = self._why_not(scheduler)
        self.possible = chunk.options.machine_code and not why
        if why and chunk.options.machine_code:
            chunk.launch.log[f"NumPy ran all blocks of code: {why}"] = None
        self.spent: dict[Any, float] = {}  # by blocks that may be compiled (`MachineBlocks.at`)
        self.stores = [(notify, getattr(notify, "__self__", None)) for notify in observers.store]
        self.races = next((owner for _, owner in self.stores if type(owner) is Races), None)
        others = [owner for _, owner in self.stores if type(owner) not in _KNOWN]
        others += [getattr(notify, "__self__", None) for notify in observers.stored]
        self.watcher = next((type(owner).__name__ for owner in others), "")  # of stores, who wants more than is told
        self.unwritten = bool(observers.loaded)
        self.dense = False  # do most warps have a record of addresses of their own?
        self.state = np.zeros(0, np.int64)  # no entries before the first run

    def _why_not(self, scheduler) -> str:
        """Return why no block of code can run as machine code for all lanes of the chunk; "" if it can."""
        chunk = self.chunk
        if not scheduler.alone:
            return "other launches run at the same time"
        if chunk.cluster_blocks > 1:
            return "the blocks of a cluster share their memory"
        if self.few and self.blocks.longest(chunk.lanes) < _LONG:
            return _FEW
        if chunk.lanes != WARP_SIZE * chunk.warps:
            return "the last warp of each block is not full"
        loaded = (getattr(notify, "__self__", None) for notify in chunk.observers.loaded)
        return next((f"{type(o).__name__} sees what is loaded" for o in loaded if type(o) is not UnwrittenReads), "")

    def run(self, number: int, function: Callable) -> Any:
        """Run a block for all lanes, by `function` where machine code can't. Returns what that does."""
        chunk, blocks = self.chunk, self.blocks
        if self.few and 0 < blocks.takes(number, chunk.lanes) < _LONG:
            code = blocks.left(number, chunk, _FEW)
        else:
            code = blocks.at(number, chunk, self.spent)
        if code is not None:
            if self._ran(code, number):
                blocks.hit(number)
                return self._finish(code, chunk.translation.blocks[number])
            blocks.miss(number)
        return function(chunk, chunk.registers, None)

    def _begin(self) -> None:
        chunk, lanes = self.chunk, self.chunk.lanes
        sites = chunk.translation.sites
        self.places = self._places()
        self.records = np.zeros((len(self.places), RECORD_ENTRIES), np.int64)
        self.places[:, _P["OWN_RECORD"]] = place_of(self.records) + 8 * RECORD_ENTRIES * np.arange(len(self.places))
        self.touches: dict[int, np.ndarray] = {}
        self.held: dict[int, tuple[Any, ...]] = {}  # by site: what its place depends on, and arrays it refers to
        self.kept: dict[str, np.ndarray] = {
            "LIST": _LANES,
            "ADDRESS": np.zeros(WARP_SIZE, np.int64),
            "LANE_OF": _LANES,
            "KEYS": np.zeros(256, np.int64),
            "PARAMETERS": np.frombuffer(chunk.params or b"\0", np.uint8),
            "PLACES": self.places,
        }
        for space in self.blocks.own_spaces:
            starts, _ = chunk.own_memory(space, None)
            self.kept[space.upper()] = np.broadcast_to(starts, lanes).astype(np.int64)
        self.state = np.zeros(len(FIELDS), np.int64)
        for name, array in self.kept.items():
            self.state[_F[name]] = place_of(array)
        self.state[_F["WARPS"]], self.state[_F["DYNAMIC"]] = chunk.warps, chunk.static_shared_bytes
        self.state[_F["COUNTED"]] = self.counting is not None
        self._renew(_POOL)
        self.follows: dict[int, Any] = {}  # by site: the record of its words that its place tells of
        if self.races is not None:
            words = max([1, *(site.width // min(self.races.word.values()) for site in sites)])
            self.kept["OLD"] = np.empty(words * lanes, np.int32)
            self.kept["BLOCK_OF"], self.kept["WARP_OF"] = self._small("block_of"), self._small("warp_of")
            numbers = self.races.fields_of(self.races.numbers)
            self.state[[_F[name] for name in numbers]] = list(numbers.values())
            for name in ("OLD", "BLOCK_OF", "WARP_OF"):
                self.state[_F[name]] = place_of(self.kept[name])

    def _places(self) -> np.ndarray:
        """Return new places of the kernel's memory instructions."""
        kept, sites = self.blocks.kept, self.chunk.translation.sites
        if "places" not in kept:
            places = kept["places"] = np.zeros((max(1, len(sites)), PLACE_BYTES // 8), np.int64)
            for site in sites:
                row = places[site.index]
                row[_P["LIMIT"]] = -1
                row[_P["WIDTH"]], row[_P["OFFSET"]], row[_P["IS_LOAD"]] = site.width, site.offset, site.op == "load"
                row[_P["COUNTED_BYTES"]], row[_P["ITEM"]], row[_P["SITE"]] = site.counted_bytes, site.item, site.index
                row[_P["SPACE"]] = {"global": 0, "shared": 1}.get(site.space, 2)
                row[_P["OWN"]] = _OWN.get(site.space, 0)
        return kept["places"].copy()

    def _small(self, name: str) -> np.ndarray:
        """Return numbers of the chunk as int32; the chunks of a launch share them."""
        of, small = self.blocks.kept.get(name, (None, None))
        if of is not getattr(self.chunk, name):
            of = getattr(self.chunk, name)
            small = of.astype(np.int32)
            self.blocks.kept[name] = of, small
        return small

    def _renew(self, most: int) -> None:
        """Make room for records of addresses. Nothing refers to earlier ones here any longer."""
        self.pool = np.empty((most, RECORD_ENTRIES), np.int64)
        self.state[_F["POOL"]] = place_of(self.pool)
        self.state[_F["POOL_END"]] = place_of(self.pool) + self.pool.nbytes
        self.places[:, _P["RECORD"]] = self.places[:, _P["OWN_RECORD"]]
        self.records[:, PHASE] = -1

    # -- one run -----------------------------------------------------------------------------------------------------

    def _ran(self, code: MachineBlock, number: int) -> bool:
        """Tell whether a block could be run. Leaves what it has written in `results`, and whom its loads concern in
        `told`, by space, with their addresses in `bases`, by site."""
        chunk, state = self.chunk, self.state
        if not state.size:
            self._begin()
            state = self.state
        shared = chunk.access.shared
        if self.checked and not shared.complete and ("shared", True) in code.spaces and shared.written[1].all():
            shared.complete = True
        places, lanes = self.places, chunk.lanes
        places[:, _P["BASES"]] = 0
        quiet = self.blocks.quiet(number)
        self.told: dict[str, list[tuple[Callable, Any]]] = {}
        self.bases: dict[int, WarpAddresses] = {}
        tables: dict[int, np.ndarray] = {}
        for (space, loads), sites in code.spaces.items():
            if loads:
                self.told[space] = [of for of in self.loads if self._wants(of[1], space, quiet)]
            if not loads or self.told[space]:
                for site in sites:
                    tables[site.index] = np.empty((chunk.warps, 2), np.int64)
                    places[site.index, _P["BASES"]] = place_of(tables[site.index])
        inputs = [self._input(chunk.registers[slot], single) for slot, single in code.inputs]
        self.results = [np.empty(lanes, dtype if dtype != "b1" else "?") for dtype, _, _ in code.outputs]
        given = {
            "INPUTS": np.array([place_of(array) for array in inputs] or [0], np.int64),
            "OUTPUTS": np.array([place_of(array) for array in self.results] or [0], np.int64),
            "REGISTERS": np.empty((code.rows + 1, WARP_SIZE), np.int64),
            "VARIABLES": np.array([int(chunk.variable_address(n)[0]) for n in code.variables] or [0], np.int64),
        }
        for name, table in given.items():
            state[_F[name]] = place_of(table)
        for step in code.steps:
            self._bind(step.site)
        state[_F["PLAIN"]] = not self.told.get("shared") and (shared.complete or not (self.unwritten or self.checked))
        for _ in range(len(code.steps) + 3):
            room = len(tables) * chunk.warps
            if self.dense and (state[_F["POOL_END"]] - state[_F["POOL"]]) // (8 * RECORD_ENTRIES) < room:
                self._renew(room)
            before = int(state[_F["POOL"]])
            places[:, _SUMS] = 0
            places[:, _P["TOUCHED_DONE"]] = state[_F["FAILED"]] = state[_F["STRAYED"]] = state[_F["FULL"]] = 0
            if not code.call(place_of(state)):
                few = int(state[_F["POOL"]]) - before <= 8 * RECORD_ENTRIES * len(tables) * chunk.warps // _SHARED
                self.bases = {index: WarpAddresses(table, self.pool, few) for index, table in tables.items()}
                return self._apart(code.steps)
            if state[_F["FULL"]]:
                self.dense = len(self.pool) > _POOL
                self._renew(_POOL + room if self.dense else _MORE * _POOL)
            elif not state[_F["STRAYED"]]:
                return False
            else:
                site = chunk.translation.sites[state[_F["STRAYED"]] - 1]  # perhaps to another array than last time
                if site.space in _OWN or not chunk.access.strayed(site, int(state[_F["STRAYED_TO"]])):
                    return False
                self._bind(site)
        return False

    def _input(self, register: np.ndarray, single: bool) -> np.ndarray:
        return np.ascontiguousarray(
            register if single or register.shape[0] > 1 else np.repeat(register, self.chunk.lanes)
        )

    def _wants(self, observer: Any, space: str, quiet: bool) -> bool:
        """Tell whether an observer is to be told of loads from a space that are known to be good."""
        kind = type(observer)
        if kind is Races:
            if space not in observer.word or not observer.written & {space, "generic"}:
                return False
            unseen = quiet and space == "shared" and not observer.epoch_stored and observer.clocks is None
            return not unseen
        if kind is ReuseWatch:
            return space == "global" and observer.room > 0
        return kind is not Checks and kind is not Counting and (kind is not AccessTrace or observer.room > 0)

    def _bind(self, site) -> None:
        """Say where the accesses of a site are good: where they were the last time."""
        chunk, row = self.chunk, self.places[site.index]
        access, allocation, record = chunk.access, None, None
        if site.space in ("global", "const"):
            allocation = access.latest(site)
            if allocation is None or allocation.address % SECTOR_BYTES:
                row[_P["LIMIT"]] = -1
                self.held.pop(site.index, None)
                return
            holder: Any = allocation
        else:
            holder = access.shared if site.space == "shared" else access.local
        complete = holder.complete
        held = self.held.get(site.index)
        if held is not None and held[0] is holder and held[1] == complete:
            return
        if allocation is not None:
            low, size = allocation.address, allocation.nbytes
            data = chunk.device.memory.view(low, size)
            if self.checked and not complete:
                record = chunk.device.memory.written[1][low - ORIGIN :]
        else:
            low, (_, size), data = 0, chunk.own_memory(site.space, None), holder.views["u1"]
            if not complete and (self.unwritten or (self.checked and site.space == "shared")):
                record = holder.written[1]
        row[_P["LOW"]], row[_P["LIMIT"]], row[_P["DATA"]] = low, size - site.width, place_of(data)
        row[_P["WRITTEN"]] = 0 if record is None else place_of(record)
        if site.space == "global" and site.index not in self.touches:
            self.touches[site.index] = np.empty(chunk.lanes, np.int32)
            row[_P["TOUCHES"]] = place_of(self.touches[site.index])
        self.held[site.index] = holder, complete, data, record

    def _addresses(self, step: BlockAccess, lanes: int | None = None) -> Addresses:
        """Return the base addresses of the first `lanes` lanes, None for all."""
        base = self.bases[step.site.index](1 if step.single else lanes)
        return self.chunk.addresses(base, None) if lanes is None else Addresses(base)

    def _watched(self, owner: Any) -> int | None:
        """Return of how many lanes an observer wants the addresses, from the first on; None for all."""
        if type(owner) is ReuseWatch:
            return owner.threads
        return (
            min(self.chunk.lanes, traced_lanes(self.chunk.threads, owner.warps)) if type(owner) is AccessTrace else None
        )

    def _apart(self, steps: list[BlockAccess]) -> bool:
        """Tell whether no load of global memory waits for a store to the same array."""
        latest, stored = self.chunk.access.latest, set[int]()
        for step in steps:
            if step.site.space == "global" and step.site.op == "store":
                stored.add(latest(step.site).address)
            elif step.waits and latest(step.site).address in stored:
                return False
        return True

    def _finish(self, code: MachineBlock, block) -> np.ndarray | None:
        """Tell observers of what has been done, make the stores, and set the registers. Returns the condition."""
        chunk, results = self.chunk, self.results
        counted: list[int] = []  # instructions that the function has counted, and not the arrays' code
        try:
            for step in code.steps:
                site = step.site
                if site.op == "load" and site.space != "global" and not self.told[site.space]:
                    counted.append(site.index)
                else:
                    self._tell(step, counted)
        finally:
            if self.counting is not None:
                rows = [code.like.get(index, index) for index in counted]
                self.counting.add(counted, self.places[rows, _SUMS])
        for array, (_, slot, single) in zip(results, code.outputs, strict=True):
            if slot is not None:
                chunk.registers[slot] = array[:1].copy() if single else array
        if block.condition is None:
            return None
        if code.condition is None:
            taken = chunk.registers[chunk.translation.slots[block.condition.name]]
        else:
            taken = results[code.condition]
            taken = taken[:1] if code.outputs[code.condition][2] else taken
        return ~taken if block.negated else taken

    def _tell(self, step: BlockAccess, counted: list[int]) -> None:
        """Tell observers of an access, and make it if it is a store."""
        site, results, chunk = step.site, self.results, self.chunk
        stores = site.op == "store"
        if stores and self.watcher:
            chunk.launch.log[f"NumPy made stores: {self.watcher} sees them"] = None
        if stores and (self.watcher or not self._stored(step)):
            values = tuple(results[k][:1] if single else results[k] for k, single in step.values)
            chunk.access.store_vector(site, self._addresses(step), values, None)
            return
        for notify, owner in self.stores if stores else self.told[site.space]:
            if not stores and type(owner) is Races:
                owner.load_by_all(site, site.space, chunk.access.latest(site), self.bases[site.index])
            elif not stores or (type(owner) is AccessTrace and owner.room):
                addresses = self._addresses(step, self._watched(owner))
                notify(site, site.space, addresses, None, *([None] if stores else []))
        counted.append(site.index)
        if site.space == "global" and self.counting is not None:
            touched = self.touches[site.index][: self.places[site.index, _P["TOUCHED_DONE"]]]
            self.counting.bitmap(site, chunk.access.latest(site))[touched] = True

    def _stored(self, step: BlockAccess) -> bool:
        """Make a store; tell whether that could be done: its words do not race, and lanes share none."""
        chunk, state, site = self.chunk, self.state, step.site
        row, races = self.places[site.index], self.races
        row[_P["WRITER"]] = 0
        if races is not None and site.space in races.word:
            record: Any = narrow_races.to_write(races, site.space, chunk.access.latest(site))
            if record is None:
                chunk.launch.log["NumPy made stores: fences, mbarriers or volatile accesses order them"] = None
                return False
            if self.follows.get(site.index) is not record:
                self.follows[site.index] = record
                self._follow(row, races.words_of(record, site, site.space))
            row[_P["WRITER"]], row[_P["WAS_READ"]] = place_of(record.writer), record.was_read
            for name, numbers in (("EPOCHS", races.epochs), ("TIMES", races.times)):
                if self.kept.get(name) is not numbers:  # int32
                    self.kept[name], state[_F[name]] = numbers, place_of(numbers)
            state[_F["ORDERED"]] = races.ordered
        values = np.array([place_of(self.results[k]) for k, _ in step.values], np.int64)
        return not store()(place_of(state), place_of(row), place_of(values), len(step.values))

    @staticmethod
    def _follow(row: np.ndarray, fields: dict[str, Any]) -> None:
        for name, value in fields.items():
            row[_P[name]] = place_of(value) if isinstance(value, np.ndarray) else value
