"""Runs blocks for all lanes of a chunk as machine code (`translate.machine_blocks`).

The function computes, tests and counts; what it finds is told to the observers here, access by access and in their
order, as the arrays' code tells them. Those that want addresses get them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from warplab.simulator.constants import SECTOR_BYTES, WARP_SIZE
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.observer import Observer
from warplab.simulator.run.machine_state import SUMS, MachineState
from warplab.simulator.translate.machine_access import F, P, place_of
from warplab.simulator.translate.machine_blocks import PHASE, RECORD_ENTRIES, BlockAccess, MachineBlock, store

FEWEST = 4096  # lanes of a chunk for which a call pays off
_FEW = f"fewer than {FEWEST:,} threads run at one time"
_LONG = 1e6  # nanoseconds of the arrays' code for which it pays off, of fewer lanes
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


class MachineRuns(MachineState):
    """The runs of one chunk. `possible`: can any block run as machine code?"""

    def __init__(self, scheduler) -> None:
        super().__init__(scheduler)
        chunk = self.chunk
        self.blocks = chunk.translation.machine_blocks
        self.few = chunk.lanes < FEWEST
        why = self.why or self._why_not()
        self.possible = chunk.options.machine_code and not why
        if why and chunk.options.machine_code:
            chunk.launch.log[f"NumPy ran all blocks of code, compiled loops aside: {why}"] = None
        if not self.possible:
            return
        self.spent: dict[Any, float] = {}  # by blocks that may be compiled (`MachineBlocks.at`)
        self.loads, self.stores = self.observers_of("load"), self.observers_of("store")
        every = chunk.observers.all
        self.before_counting = every if self.counting is None else every[: every.index(self.counting)]
        # Of stores, who wants more than is told.
        self.watcher = next((name for event in ("store", "stored") for name in self._watching(event)), "")
        self.dense = False  # do most warps have a record of addresses of their own?

    def _watching(self, event: str) -> list[str]:
        """Return the names of observers that want to be told of an event by all lanes."""
        return [type(o).__name__ for _, o in self.observers_of(event) if o.wants(event) is None]

    def _why_not(self) -> str:
        """Return why no block of code can run as machine code for all lanes of the chunk; "" if it can."""
        chunk = self.chunk
        if self.few and self.blocks.longest(chunk.lanes) < _LONG:
            return _FEW
        if chunk.lanes != WARP_SIZE * chunk.warps:
            return "the last warp of each block is not full"
        return next((f"{name} sees what is loaded" for name in self._watching("loaded")), "")

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
        chunk = self.chunk
        item = 1 << 30 if self.races is None else min(self.races.word.values())
        words = max([1, *(site.width // item for site in chunk.translation.sites)])
        self.begin(LIST=_LANES, ADDRESS=np.zeros(WARP_SIZE, np.int64), OLD=np.empty(words * chunk.lanes, np.int32))
        self.records = np.zeros((len(self.places), RECORD_ENTRIES), np.int64)
        self.places[:, P["OWN_RECORD"]] = place_of(self.records) + 8 * RECORD_ENTRIES * np.arange(len(self.places))
        self.touches: dict[int, np.ndarray] = {}
        self.held: dict[int, tuple[Any, ...]] = {}  # by site: what its place depends on, and arrays it refers to
        self._renew(_POOL)
        self.follows: dict[int, Any] = {}  # by site: the record of its words that its place tells of

    def _renew(self, most: int) -> None:
        """Make room for records of addresses. Nothing refers to earlier ones here any longer."""
        self.pool = np.empty((most, RECORD_ENTRIES), np.int64)
        self.state[F["POOL"]] = place_of(self.pool)
        self.state[F["POOL_END"]] = place_of(self.pool) + self.pool.nbytes
        self.places[:, P["RECORD"]] = self.places[:, P["OWN_RECORD"]]
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
        if self.checked and not shared.complete and ("shared", True) in code.spaces and shared.all_written():
            shared.complete = True
        places, lanes = self.places, chunk.lanes
        places[:, P["BASES"]] = 0
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
                    places[site.index, P["BASES"]] = place_of(tables[site.index])
        inputs = [self._input(chunk.registers[slot], single) for slot, single in code.inputs]
        self.results = [np.empty(1 if one else lanes, dtype.replace("b1", "?")) for dtype, *_, one in code.outputs]
        given = {
            "INPUTS": np.array([place_of(array) for array in inputs] or [0], np.int64),
            "OUTPUTS": np.array([place_of(array) for array in self.results] or [0], np.int64),
            "REGISTERS": np.empty((code.rows + 1, WARP_SIZE), np.int64),
            "VARIABLES": np.array([int(chunk.variable_address(n)[0]) for n in code.variables] or [0], np.int64),
        }
        self.set(given)
        for step in code.steps:
            self._bind(step.site)
        state[F["PLAIN"]] = not self.told.get("shared") and (shared.complete or not (self.unwritten or self.checked))
        for _ in range(len(code.steps) + 3):
            room = len(tables) * chunk.warps
            if self.dense and (state[F["POOL_END"]] - state[F["POOL"]]) // (8 * RECORD_ENTRIES) < room:
                self._renew(room)
            before = int(state[F["POOL"]])
            places[:, SUMS] = 0
            places[:, P["TOUCHED_DONE"]] = state[F["FAILED"]] = state[F["STRAYED"]] = state[F["FULL"]] = 0
            if not code.call(place_of(state)):
                few = int(state[F["POOL"]]) - before <= 8 * RECORD_ENTRIES * len(tables) * chunk.warps // _SHARED
                self.bases = {index: WarpAddresses(table, self.pool, few) for index, table in tables.items()}
                return self._apart(code.steps)
            if state[F["FULL"]]:
                self.dense = len(self.pool) > _POOL
                self._renew(_POOL + room if self.dense else _MORE * _POOL)
            elif not state[F["STRAYED"]]:
                return False
            else:
                site = chunk.translation.sites[state[F["STRAYED"]] - 1]  # perhaps to another array than last time
                if site.space in ("shared", "local") or not chunk.access.strayed(site, int(state[F["STRAYED_TO"]])):
                    return False
                self._bind(site)
        return False

    def _input(self, register: np.ndarray, single: bool) -> np.ndarray:
        whole = register if single or register.shape[0] > 1 else np.repeat(register, self.chunk.lanes)
        return np.ascontiguousarray(whole)

    def _wants(self, observer: Observer, space: str, quiet: bool) -> bool:
        """Tell whether an observer is to be told of loads from a space that are known to be good."""
        races = self.races
        if quiet and space == "shared" and observer is races and not races.epoch_stored and races.clocks is None:
            return False
        return observer.wants("load", space) != 0

    def _bind(self, site) -> None:
        """Say where the accesses of a site are good: where they were the last time."""
        access, allocation = self.chunk.access, None
        if site.space in ("global", "const"):
            holder = allocation = access.latest(site)
            if allocation is None or allocation.address % SECTOR_BYTES:
                self.places[site.index, P["LIMIT"]] = -1
                self.held.pop(site.index, None)
                return
        else:
            holder = access.shared if site.space == "shared" else access.local
        held = self.held.get(site.index)
        if held is not None and held[0] is holder and held[1] == holder.complete:
            return
        self.held[site.index] = self.bind(site, site.space, allocation)
        if site.space == "global" and site.index not in self.touches:
            self.touches[site.index] = np.empty(self.chunk.lanes, np.int32)
            self.at(site, {"TOUCHES": self.touches[site.index]})

    def _addresses(self, step: BlockAccess, lanes: int | None = None) -> Addresses:
        """Return the base addresses of the first `lanes` lanes, None for all."""
        base = self.bases[step.site.index](1 if step.single else lanes)
        return self.chunk.addresses(base, None) if lanes is None else Addresses(base)

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
                self.counting.add(counted, self.places[rows, SUMS])
        for array, (_, slot, single, _) in zip(results, code.outputs, strict=True):
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
        behind = False
        for notify, owner in self.stores if stores else self.told[site.space]:
            if not behind and owner not in self.before_counting:
                behind = True
                self._count(site, counted)
            if owner is self.races:
                if not stores:
                    self.races.load_by_all(site, site.space, chunk.access.latest(site), self.bases[site.index])
            elif (lanes := owner.wants(site.op, site.space)) != 0:
                notify(site, site.space, self._addresses(step, lanes), None, *([None] if stores else []))
        if not behind:
            self._count(site, counted)

    def _count(self, site, counted: list[int]) -> None:
        """Note that an access counts, when its turn comes among the observers, any of which may end the launch."""
        counted.append(site.index)
        if site.space == "global" and self.counting is not None:
            touched = self.touches[site.index][: self.places[site.index, P["TOUCHED_DONE"]]]
            self.counting.bitmap(site, self.chunk.access.latest(site))[touched] = True

    def _stored(self, step: BlockAccess) -> bool:
        """Make a store; tell whether that could be done: its words do not race, and lanes share none."""
        chunk, state, site = self.chunk, self.state, step.site
        row, races = self.places[site.index], self.races
        row[P["WRITER"]] = 0
        if races is not None and site.space in races.word:
            record: Any = races.to_write(site.space, chunk.access.latest(site))
            if record is None:
                chunk.launch.log["NumPy made stores: fences, mbarriers or volatile accesses order them"] = None
                return False
            if self.follows.get(site.index) is not record:
                self.follows[site.index] = record
                self.at(site, races.words_of(record, site, site.space))
            row[P["WRITER"]], row[P["WAS_READ"]] = place_of(record.writer), record.was_read
            self.order()
        values = np.array([place_of(self.results[k]) for k, _ in step.values], np.int64)
        return not store()(place_of(state), place_of(row), place_of(values), len(step.values))
