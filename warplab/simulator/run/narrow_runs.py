"""Runs loops of a few lanes as machine code (`translate.narrow_loops`).

The function counts and tests accesses that it knows to be good, as the observers of the launch would; `NarrowRuns` adds
its sums to theirs afterwards. Every other access it leaves to the code for arrays, observers included, by a call back.
So it tells observers of what else they want to know, event by event.
"""

import ctypes
import weakref
from typing import Any

import numpy as np

from warplab.simulator.memory.device_memory import WINDOW_LOCAL, WINDOW_SHARED, Allocation
from warplab.simulator.memory.lane_access import Addresses, SeveralSpaces
from warplab.simulator.memory.lane_groups import Group, bits_of, lanes_of
from warplab.simulator.run.machine_state import SUMS, MachineState, of_space
from warplab.simulator.translate import machine_access
from warplab.simulator.translate.machine_access import F, P, place_of
from warplab.simulator.translate.machine_writer import ACCESS, BRANCHED, INSTRUCTION, SEEN, STEP
from warplab.simulator.translate.narrow_loops import LIMIT, PARTED, NarrowLoop

MOST_LANES = 1024  # that run together or wait for one another in a loop, of a chunk of any size
# A loop is compiled once a block of it has run so often, and the kernel's blocks have taken about as long as compiling
# takes: microseconds, for the first loop of a process and for others, at least so many for each block of the kernel.
_WARM, _FIRST, _NEXT, _EACH = 64, 150_000, 50_000, 2_000
# A loop whose first runs save fewer microseconds each than one costs (three times as many where accesses are observed)
# is left to the arrays.
_PROBES, _WORTH, _OBSERVED = 16, 40, 3
_EVENTS = ("block", "jump", "diverge", "load", "loaded", "store", "stored")
_PADDING = 8  # entries between registers, as multiples of 4096 bytes compete for one place in a cache
_BUFFER = 20 * MOST_LANES
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)


class NarrowRuns(MachineState):
    """The runs of few lanes of one chunk. `possible`: can any loop run so?"""

    def __init__(self, scheduler) -> None:
        super().__init__(scheduler)
        self.scheduler = scheduler
        self.loops = self.chunk.translation.narrow_loops
        self.possible = self.chunk.options.machine_code and not self.why
        self.runs: dict[NarrowLoop, int] = {}
        self.saved: dict[NarrowLoop, float] = {}
        observed = self.checked or self.counting is not None
        self.costs, self.worth = self.loops.costs(observed), _PROBES * _WORTH * (_OBSERVED if observed else 1)
        self.error: BaseException | None = None

    # -- one run -----------------------------------------------------------------------------------------------------

    def run(self, number: int, group: Group, executed: int, path: int, path_ends: int):
        """Run the loop that `group` is in at block `number`, as far as limits allow. Returns the next block and group,
        and the numbers of instructions of its threads and of its path; None if the block is to run as usual."""
        if group.count > MOST_LANES:
            return None
        loops = self.loops
        visits = loops.visits
        visits[number] += 1
        loops.spent += self.costs[number]
        if visits[number] < _WARM or loops.spent < max(_NEXT, _EACH * len(visits)):
            return None
        if loops.spent < _FIRST and not machine_access.ready():
            return None
        loop = loops.at(number)
        if number in loops.declined:
            line = self.chunk.translation.block_where[number].line
            self.chunk.launch.log[f"NumPy ran the loop around line {line}: {loops.declined[number]}"] = None
        if loop is None or not self._fits(loop):
            return None
        if not self.state.size:
            try:
                self._begin()
            except (OSError, MemoryError) as error:  # no memory that may hold code for the call back
                self.possible = False
                self.chunk.launch.log[f"NumPy ran all loops: {error}"] = None
                return None
        return self._run(loop, number, group, executed, path, path_ends)

    def _fits(self, loop: NarrowLoop) -> bool:
        if self.runs.get(loop, 0) == _PROBES and self.saved[loop] < self.worth:
            return False
        scheduler = self.scheduler
        if scheduler.grace or scheduler.late or scheduler.spinning or self.chunk.waits_in_vain:
            return False
        return not scheduler.standstill.moving or loop.inside <= scheduler.standstill.moving

    def _probe(self, loop: NarrowLoop, number: int, visits: np.ndarray) -> None:
        """Add what a run has saved, by how often it visited each block."""
        self.runs[loop] = self.runs.get(loop, 0) + 1
        self.saved[loop] = self.saved.get(loop, 0.0) + float(visits @ [self.costs[n] for n in loop.nodes])
        if self.runs[loop] == _PROBES and self.saved[loop] < self.worth:
            line = self.chunk.translation.block_where[number].line
            self.chunk.launch.log[f"NumPy ran the loop around line {line}: it is too short to gain"] = None

    def _begin(self) -> None:
        """Make the arrays that all runs of the chunk share."""
        lanes = self.chunk.lanes
        # Reads and races, too, the function knows by itself.
        self.told = {
            event: [of for of in self.observers_of(event) if of[1] not in (self.races, self.reuse)] for event in _EVENTS
        }
        self.list = np.zeros(lanes, np.int32)
        self.address = np.zeros(lanes, np.uint64)
        own = {name: np.zeros(lanes, np.int32) for name in ("TAKEN", "OTHER", "OLD")}
        own |= {"READS": np.zeros(_BUFFER, np.int64), "ENDED": np.zeros(3 * _BUFFER, np.int64)}
        self.begin(LIST=self.list, ADDRESS=self.address, **own)
        self.words = -(-lanes // 64)
        # By site: the record of race detection, and what else its place depends on.
        self.known: dict[int, tuple[Any, ...]] = {}
        self.spaces: dict[int, str] = {}
        self.made: dict[NarrowLoop, dict[str, np.ndarray]] = {}
        called = weakref.WeakMethod(self._called)  # no cycle, which would keep the chunk's memory
        self.callback = _CALLBACK(lambda *arguments: (called() or (lambda *_: 1))(*arguments))
        self.set(
            {
                "STRIDE": 8 * (lanes + _PADDING),
                "WORDS": self.words,
                "READS_MOST": _BUFFER,
                "ENDED_MOST": _BUFFER,
                "CALLBACK": ctypes.cast(self.callback, ctypes.c_void_p).value or 0,
                "DONE_SEEN": self._wanted("loaded", "stored"),
                "BRANCHES_SEEN": self._wanted("jump", "diverge"),
            }
        )

    def _wanted(self, *events: str) -> bool:
        """Tell whether any observer wants to know of these events now."""
        return any(owner.wants(event, "global") != 0 for event in events for _, owner in self.told[event])

    def _tables(self, loop: NarrowLoop) -> dict[str, np.ndarray]:
        if loop not in self.made:
            lanes = self.chunk.lanes
            self.made[loop] = {
                "REGISTERS": np.zeros((max(1, len(loop.code.numbers)), lanes + _PADDING), np.uint64),
                "SINGLE": np.zeros(max(1, len(loop.code.numbers)), np.uint8),
                "PENDING": np.zeros((len(loop.nodes), self.words), np.uint64),
                "WAITING": np.zeros(len(loop.nodes), np.uint8),
                "INSIDE": np.array([node in loop.inside for node in loop.nodes], np.uint8),
                "BLOCKS": np.zeros((len(loop.nodes), 5), np.int64),
                "VARIABLES": np.zeros(max(1, len(loop.code.variables)), np.int64),
                "TRIPS": np.zeros(max(1, len(loop.heads)), np.int64),
            }
        return self.made[loop]

    def _run(self, loop: NarrowLoop, number: int, group: Group, executed: int, path: int, path_ends: int):
        scheduler, chunk = self.scheduler, self.chunk
        pending, nodes = scheduler.pending, loop.nodes
        parts = [group.all_lanes, *(lanes for node in nodes for lanes in pending.get(node, ()))]
        count = sum(lanes.size for lanes in parts)
        if count > MOST_LANES:
            return None
        members = slice(chunk.lanes) if count == chunk.lanes else np.concatenate(parts)
        state = self.state
        self.loop, self.error = loop, None
        tables = self.tables = self._tables(loop)
        self.set(tables)
        registers = tables["REGISTERS"]
        slots = chunk.translation.slots
        for name, k in loop.code.numbers.items():
            if name in slots:
                values = chunk.registers[slots[name]]
                tables["SINGLE"][k] = single = values.shape[0] == 1
                values = values if values.dtype == bool else values.view(f"u{values.dtype.itemsize}")
                registers[k, members] = values if single else values[members]
        for k, name in enumerate(loop.code.variables):
            tables["VARIABLES"][k] = int(chunk.variable_address(name)[0])
        # Groups of lanes that wait at blocks of the loop, or just behind it.
        foreign = [n for n in pending if n not in nodes]
        waiting = [k for k, node in enumerate(nodes) if node in pending]
        for k in waiting:
            tables["PENDING"][k] = bits_of(pending[nodes[k]], self.words)
        tables["WAITING"][:] = 0
        tables["WAITING"][waiting] = 1
        lanes = group.all_lanes
        self.list[: group.count] = lanes
        ceiling = sum(node < min(foreign) for node in nodes) if foreign else len(nodes)
        fields: dict[str, int] = {
            "COUNT": group.count,
            "WARPS": group.warps,
            "CURRENT": nodes.index(number),
            "LOWEST": min(waiting, default=len(nodes)),
            "NODES": len(nodes),
            "CEILING": ceiling,
            "FOREIGN": bool(foreign),
            "EXECUTED": executed,
            "PATH": path,
            "BUDGET": scheduler.budget,
            "PATH_ENDS": path_ends,
            "WAITED": scheduler.waited,
            "PATIENCE": scheduler.patience,
            "ADVANCED": 0,
            "STEPS": 0,
            "STEPS_SEEN": self._wanted("block"),
            "ACCESSES_SEEN": self._wanted("load", "store"),
        }
        if self.reuse is not None:
            fields["READS_ROOM"], fields["WATCHED"] = self.reuse.room, self.reuse.threads
        self.set(fields)
        self.order()
        self.trips = [] if self.counting is None else [self.counting.trips.own(h, chunk.lanes) for h in loop.heads]
        for k, own in enumerate(self.trips):
            tables["TRIPS"][k] = place_of(own)
        self._check_places()
        chunk.group = group
        status = loop.call(place_of(state))
        if self.runs.get(loop, 0) < _PROBES:
            self._probe(loop, number, tables["BLOCKS"][:, 1] / group.warps)
        self._tell()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        steps = int(state[F["STEPS"]])
        if not steps:
            tables["PENDING"][waiting] = 0
            return None
        # Give everything back.
        follows_single = loop.code.follows_single
        for name in loop.code.written & slots.keys():
            slot, number = slots[name], loop.code.numbers[name]
            row = registers[number, members]
            single = follows_single and bool(tables["SINGLE"][number])
            if single and (row == row[0]).all():
                row = row[:1]
            dtype = chunk.registers[slot].dtype
            row = row != 0 if dtype.kind == "b" else row.astype(f"u{dtype.itemsize}").view(dtype)
            if isinstance(members, slice):
                chunk.registers[slot] = row
            elif not single:  # else nothing has written it
                chunk.scatter(slot, members, row)
        for node in nodes:
            pending.pop(node, None)
        for k in np.flatnonzero(tables["WAITING"]).tolist():
            pending[nodes[k]] = [lanes_of(tables["PENDING"][k])]
            tables["PENDING"][k] = 0
        count = int(state[F["COUNT"]])
        current = nodes[int(state[F["CURRENT"]])]
        group = self._group(count)
        scheduler.waited = int(state[F["WAITED"]])
        if status == LIMIT and pending:
            scheduler.waited -= 1  # as the scheduler is about to look at the same block again
        scheduler.advanced = scheduler.advanced or bool(state[F["ADVANCED"]])
        if scheduler.standstill.moving:
            scheduler.standstill.moved = True
        executed, path = int(state[F["EXECUTED"]]) - executed, int(state[F["PATH"]]) - path
        chunk.clock = int(state[F["PATH"]])
        chunk.group = group
        if status == PARTED:
            block = chunk.translation.blocks[current]
            assert block.condition is not None
            taken = registers[loop.code.numbers[block.condition.name]][group.all_lanes] != block.negated
            current, group = scheduler._branch(block, group, taken)
        return current, group, executed, path

    def _group(self, count: int) -> Group:
        everyone = self.chunk.everyone
        return everyone if count == self.chunk.lanes else Group(self.chunk, self.list[:count].astype(np.int64))

    # -- what observers are told -------------------------------------------------------------------------------------

    def _tell_reads(self) -> None:
        state = self.state
        done = int(state[F["READS_DONE"]])
        if done and self.reuse is not None:
            sums = [int(state[F[name]]) for name in ("READ_REQUESTS", "READ_LINES", "READ_PASSES")]
            self.reuse.add(self.kept["READS"][:done].copy(), *sums)
        for name in ("READS_DONE", "READ_REQUESTS", "READ_LINES", "READ_PASSES"):
            state[F[name]] = 0

    def _tell(self) -> None:
        """Add the sums of a run to the observers' own."""
        state, places, blocks, counting = self.state, self.places, self.tables["BLOCKS"], self.counting
        self._tell_reads()
        used = np.flatnonzero(places[:, P["FAST"]])
        sites = [self.chunk.translation.sites[k] for k in used.tolist()]
        if self.races is not None:
            self.races.epoch_stored |= any(s.op == "store" and self.spaces[s.index] == "shared" for s in sites)
        if counting is not None:
            counting.add_blocks(self.loop.nodes, blocks)
            for site in sites:
                counting.add_resolved(site.index, self.spaces[site.index], places[site.index, SUMS])
            done = int(state[F["ENDED_DONE"]])
            counting.trips.add(self.kept["ENDED"][: 3 * done].reshape(-1, 3))
        places[used, P["REQUESTS"] : P["FAST"] + 1] = 0
        blocks[:] = 0
        state[F["ENDED_DONE"]] = 0

    # -- called by the code of a loop ----------------------------------------------------------------------------------

    def _called(self, why: int, number: int, a: int, b: int, c: int) -> int:
        if self.error is not None:
            return 1
        try:
            if why == ACCESS:
                self._access(number)
            elif why == INSTRUCTION:
                self._instruction(number)
            elif why == STEP:
                self._step(number, a)
            elif why == SEEN:
                self._seen(number, bool(a))
            elif why == BRANCHED:
                self._branched(number, a)
            else:
                return self._result(number, a, b, c)
        except BaseException as error:  # which must not pass through the code of the loop
            self.error = error
            return 1
        return 0

    def _present(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the lanes of the group, also as the arrays' code takes them."""
        group = self.chunk.group = self._group(int(self.state[F["COUNT"]]))
        return group.all_lanes, group.lanes

    def _notify(self, event: str, space: str, *what: Any) -> None:
        for notify, owner in self.told[event]:
            if owner.wants(event, space) != 0:
                notify(*what)

    def _step(self, node: int, time: int) -> None:
        self._present()
        self._notify("block", "", self.loop.nodes[node], self.chunk.group, time)
        self.state[F["STEPS_SEEN"]] = self._wanted("block")

    def _seen(self, number: int, done: bool) -> None:
        """Note that an access that is known to be good is about to be made, or `done`."""
        chunk, site = self.chunk, self.chunk.translation.sites[number]
        lanes, some = self._present()
        space, addresses = chunk.access.resolve(site, self._addresses(site, lanes, some))
        event = {"load": "loaded", "store": "stored"}[site.op] if done else site.op
        values = [self._values(site, lanes)] if event in ("loaded", "store") else []
        self._notify(event, space, site, space, addresses, some, *values)
        self.state[F["ACCESSES_SEEN"]] = self._wanted("load", "store")

    def _branched(self, node: int, taken: int) -> None:
        """Note that the group jumps, or parts if `taken` of its lanes do."""
        self._present()
        chunk, block = self.chunk, self.chunk.translation.blocks[self.loop.nodes[node]]
        event, sides = "jump", list[Group]()
        if taken:
            counts = {"TAKEN": taken, "OTHER": chunk.group.count - taken}
            sides = [Group(chunk, self.kept[name][:count].astype(np.int64)) for name, count in counts.items()]
            event = "diverge"
        self._notify(event, "", block, chunk.group, *sides)

    def _addresses(self, site, lanes: np.ndarray, some: np.ndarray | None) -> Addresses:
        return self.chunk.addresses(self.address[: lanes.size] - np.uint64(site.offset & 0xFFFFFFFFFFFFFFFF), some)

    def _values(self, site, lanes: np.ndarray) -> list[np.ndarray]:
        """Return what the lanes have loaded or are about to store."""
        values = []
        for name, value in self.loop.code.sites[site.index].items:
            if name is None:
                bits = np.array([value], np.uint64)
            else:
                bits = self.tables["REGISTERS"][self.loop.code.numbers[name]][lanes]
            values.append(bits.astype(f"u{site.item}").view(site.dtype))
        return values

    def _instruction(self, number: int) -> None:
        function, reads, writes = self.loop.steps[number]
        lanes, _ = self._present()
        registers, numbers = self.tables["REGISTERS"], self.loop.code.numbers
        values = []
        for name, dtype in reads:
            row = registers[numbers[name]][lanes]
            values.append(row != 0 if dtype == "b1" else row.astype(f"u{dtype[1:]}").view(dtype))
        for name, value in zip(writes, function(*values), strict=True):
            registers[numbers[name], lanes] = value

    def _result(self, number: int, *operands: int) -> int:
        function, bits, out = self.loop.results[number]
        arrays = [np.array([o & ((1 << bits) - 1)], f"u{bits // 8}").view(f"f{bits // 8}") for o in operands]
        result = int(np.asarray(function(*arrays)).astype(f"f{out // 8}", copy=False).view(f"u{out // 8}")[0])
        return result - (result >> 63 << 64)

    def _access(self, number: int) -> None:
        """Make an access as the arrays' code does, and see whether later ones are known to be good."""
        self._tell_reads()
        chunk, state = self.chunk, self.state
        site, form = chunk.translation.sites[number], self.loop.code.sites[number]
        lanes, some = self._present()
        registers, numbers = self.tables["REGISTERS"], self.loop.code.numbers
        addresses = self._addresses(site, lanes, some)
        if site.op == "load":
            for (name, dtype), value in zip(form.items, chunk.access.load_vector(site, addresses, some), strict=True):
                if name is not None:
                    size = np.dtype(dtype).itemsize
                    if size > value.dtype.itemsize:
                        value = value.astype(value.dtype.kind.replace("f", "u") + str(size))
                    registers[numbers[name], lanes] = value.view(f"u{value.dtype.itemsize}")
        else:
            chunk.access.store_vector(site, addresses, tuple(self._values(site, lanes)), some)
        if self.reuse is not None:
            state[F["READS_ROOM"]] = self.reuse.room
        state[F["ACCESSES_SEEN"]] = self._wanted("load", "store")
        self._settle_races()
        self._place(number, site, addresses)

    def _settle_races(self) -> None:
        """Examine loads that `Races` has recorded, as code that compares accesses itself must know of them. Where they
        race, which `Races` reports in its time, all accesses go there from now on."""
        if self.races is not None and not self.races.settled():
            self.places[self.places[:, P["WRITER"]] != 0, P["LIMIT"]] = -1

    def _check_places(self) -> None:
        """Forget places that the arrays' code has changed since."""
        memory, races = self.chunk.device.memory, self.races
        records = (None,) if races is None else (None, races.shared, *races.allocations.values())
        for number, (record, holder, complete, *_) in self.known.items():
            good = holder.complete == complete and record in records
            if not good or (isinstance(holder, Allocation) and memory.find(holder.address) is not holder):
                self.places[number, P["LIMIT"]] = -1
        self._settle_races()

    def _place(self, number: int, site, addresses) -> None:
        """Find out where the accesses of a site are known to be good."""
        access, row, races = self.chunk.access, self.places[number], self.races
        row[P["LIMIT"]] = -1
        if self._wanted("loaded") and any(name is None for name, _ in self.loop.code.sites[number].items):
            return  # of what goes nowhere the arrays' code knows what it was
        try:
            space, there = access.resolve(site, addresses)
        except SeveralSpaces:
            return
        recorded = False if races is None else races.followed(site, space)
        if self.spaces.setdefault(number, space) != space or recorded is None:
            return
        allocation = record = None
        fields: dict[str, Any] = {"TOUCHED": 0, "WRITER": 0, **of_space(space)}
        if space in ("global", "const"):
            allocation = access.allocation(site, there)
            if allocation is None:
                return
            if self.counting is not None and space == "global":
                fields["TOUCHED"] = self.counting.bitmap(site, allocation)
        if recorded and races is not None:
            record = races.record(space, allocation)
            if record.pending:
                return
            record.was_read = True
            fields |= races.words_of(record, site, space)
        self.known[number] = record, *self.bind(site, space, allocation)
        self.at(site, fields)
        if site.space == "generic":
            row[P["LOW"]] += {"shared": WINDOW_SHARED, "local": WINDOW_LOCAL}.get(space, 0)
