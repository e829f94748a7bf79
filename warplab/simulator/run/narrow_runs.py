"""Runs loops of a few lanes as machine code (`translate.narrow_loops`).

The function counts and tests accesses that it knows to be good, as the observers of the launch would; `NarrowRuns` adds
its sums to theirs afterwards. Every other access it leaves to the code for arrays, observers included, by a call back.
Observers that are not known here, and traces as long as they have room, are told of each event by a call back, too.
"""

import ctypes
import weakref
from typing import Any

import numpy as np

from warplab.simulator.check import narrow_races
from warplab.simulator.check.access_checks import Checks
from warplab.simulator.check.races import Races
from warplab.simulator.check.unwritten_reads import UnwrittenReads
from warplab.simulator.count import narrow_counting
from warplab.simulator.count.access_trace import AccessTrace
from warplab.simulator.count.launch_counting import Counting
from warplab.simulator.count.reuse import ReuseWatch
from warplab.simulator.count.warp_steps import StepTrace
from warplab.simulator.memory.device_memory import ORIGIN, WINDOW_LOCAL, WINDOW_SHARED
from warplab.simulator.memory.lane_access import Addresses, SeveralSpaces
from warplab.simulator.memory.lane_groups import Group, bits_of, lanes_of
from warplab.simulator.translate import narrow_access
from warplab.simulator.translate.narrow_access import FIELDS, PLACE, PLACE_BYTES
from warplab.simulator.translate.narrow_loops import LIMIT, PARTED, NarrowLoop
from warplab.simulator.translate.narrow_writer import ACCESS, BRANCHED, INSTRUCTION, SEEN, STEP

MOST_LANES = 1024  # that run together or wait for one another in a loop, of a chunk of any size
# A loop is compiled once a block of it has run so often, and the kernel's blocks have taken about as long as compiling
# takes: microseconds, for the first loop of a process and for others, at least so many for each block of the kernel.
_WARM, _FIRST, _NEXT, _EACH = 64, 150_000, 50_000, 2_000
_PROBES, _WORTH = 16, 150  # a loop whose first runs save fewer microseconds each than one costs is left to the arrays
_EVENTS = ("block", "jump", "diverge", "load", "loaded", "store", "stored")
_KNOWN = (Checks, Races, UnwrittenReads, AccessTrace, Counting, ReuseWatch, StepTrace)
_F = {name: k for k, name in enumerate(FIELDS)}
_P = {name: k for k, name in enumerate(PLACE)}
_PADDING = 8  # entries between registers, as multiples of 4096 bytes compete for one place in a cache
_BUFFER = 20 * MOST_LANES
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)


def _starts(chunk, space: str) -> np.ndarray:
    return np.broadcast_to(chunk.own_memory(space, None)[0], chunk.lanes).astype(np.int64)


class NarrowRuns:
    """The runs of few lanes of one chunk."""

    def __init__(self, scheduler) -> None:
        self.scheduler, self.chunk = scheduler, scheduler.chunk
        chunk = self.chunk
        self.loops = chunk.translation.narrow_loops
        seen: dict[type, list[Any]] = {kind: [] for kind in _KNOWN}
        self.possible = chunk.options.machine_code and scheduler.alone and chunk.cluster_blocks == 1
        if not self.possible:
            return
        self.others: dict[str, list[Any]] = {event: [] for event in _EVENTS}  # methods of observers not known here
        for event in _EVENTS:
            for notify in getattr(chunk.observers, event):
                observer = getattr(notify, "__self__", None)
                known = seen.get(type(observer))
                if known is None:
                    self.others[event].append(notify)
                elif observer not in known:
                    known.append(observer)
        if len(seen[Counting]) > 1 or len(seen[ReuseWatch]) > 1:
            self.possible = False
        self.counting: Counting | None = next(iter(seen[Counting]), None)
        self.steps: list[StepTrace] = seen[StepTrace]
        self.accesses: list[AccessTrace] = seen[AccessTrace]
        self.races: Races | None = next(iter(seen[Races]), None)
        self.reuse: ReuseWatch | None = next(iter(seen[ReuseWatch]), None)
        self.checked, self.unwritten = bool(seen[Checks]), bool(seen[UnwrittenReads])
        self.runs: dict[NarrowLoop, int] = {}
        self.saved: dict[NarrowLoop, float] = {}
        self.costs = self.loops.costs(self.checked or self.counting is not None)
        self.state = np.zeros(0, np.int64)  # no entries before the first run
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
        if loops.spent < _FIRST and not narrow_access.ready():
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
            except (OSError, MemoryError):  # no memory that may hold code for the call back
                self.possible = False
                return None
        return self._run(loop, number, group, executed, path, path_ends)

    def _fits(self, loop: NarrowLoop) -> bool:
        if self.runs.get(loop, 0) == _PROBES and self.saved[loop] < _PROBES * _WORTH:
            return False
        scheduler = self.scheduler
        if scheduler.grace or scheduler.late or scheduler.spinning or self.chunk.waits_in_vain:
            return False
        return not scheduler.standstill.moving or loop.inside <= scheduler.standstill.moving

    def _begin(self) -> None:
        """Make the arrays that all runs of the chunk share."""
        chunk, lanes = self.chunk, self.chunk.lanes
        self.list = np.zeros(lanes, np.int32)
        self.address = np.zeros(lanes, np.uint64)
        self.kept: dict[str, np.ndarray] = {
            "LIST": self.list,
            "ADDRESS": self.address,
            "WARP_OF": chunk.warp_of.astype(np.int32),
            "LANE_OF": chunk.lane_of.astype(np.int32),
            "BLOCK_OF": chunk.block_of.astype(np.int32),
            "SHARED": _starts(chunk, "shared"),
            "LOCAL": _starts(chunk, "local"),
            "TAKEN": np.zeros(lanes, np.int32),
            "OTHER": np.zeros(lanes, np.int32),
            "KEYS": np.zeros(256, np.int64),
            "OLD": np.zeros(lanes, np.int32),
            "READS": np.zeros(_BUFFER, np.int64),
            "ENDED": np.zeros(3 * _BUFFER, np.int64),
            "PARAMETERS": np.frombuffer(chunk.params or b"\0", np.uint8),
        }
        self.words = -(-lanes // 64)
        sites = len(chunk.translation.sites)
        self.places = np.zeros((max(1, sites), PLACE_BYTES // 8), np.int64)
        self.places[:, _P["LIMIT"]] = -1
        self.kept["PLACES"] = self.places
        self.holding: dict[int, list[Any]] = {}  # by site: arrays to whose memory its place refers
        self.known: dict[int, tuple[Any, Any, bool, Any]] = {}  # by site: what its place depends on
        self.spaces: dict[int, str] = {}
        self.made: dict[NarrowLoop, dict[str, np.ndarray]] = {}
        called = weakref.WeakMethod(self._called)  # no cycle, which would keep the chunk's memory
        self.callback = _CALLBACK(lambda *arguments: (called() or (lambda *_: 1))(*arguments))
        numbers: dict[str, int] = {
            "LANES": lanes,
            "STRIDE": 8 * (lanes + _PADDING),
            "WORDS": self.words,
            "COUNTED": self.counting is not None,
            "ONE_BLOCK": chunk.blocks == 1,
            "DYNAMIC": chunk.static_shared_bytes,
            "READS_MOST": _BUFFER,
            "ENDED_MOST": _BUFFER,
            "CALLBACK": ctypes.cast(self.callback, ctypes.c_void_p).value or 0,
        }
        if self.races is not None:
            numbers |= self.races.fields_of(self.races.numbers)
        self.state = np.zeros(len(FIELDS), np.int64)
        for name, array in self.kept.items():
            self.state[_F[name]] = array.ctypes.data
        for name, value in numbers.items():
            self.state[_F[name]] = int(value)

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
        for name, array in tables.items():
            state[_F[name]] = array.ctypes.data
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
            "STEPS_SEEN": self._steps_seen(),
            "ACCESSES_SEEN": self._accesses_seen(),
            "DONE_SEEN": bool(self.others["loaded"] or self.others["stored"]),
            "BRANCHES_SEEN": bool(self.others["jump"] or self.others["diverge"]),
        }
        if self.reuse is not None:
            fields["READS_ROOM"], fields["WATCHED"] = self.reuse.room, self.reuse.threads
        races = self.races
        if races is not None:
            self.epochs, self.times = (np.ascontiguousarray(a, np.int32) for a in (races.epochs, races.times))
            fields["ORDERED"] = races.ordered
            fields["EPOCHS"], fields["TIMES"] = self.epochs.ctypes.data, self.times.ctypes.data
        for name, value in fields.items():
            state[_F[name]] = int(value)
        self.trips = [] if self.counting is None else [self.counting.trips.own(h, chunk.lanes) for h in loop.heads]
        for k, own in enumerate(self.trips):
            tables["TRIPS"][k] = own.ctypes.data
        self._check_places()
        chunk.group = group
        status = loop.call(state.ctypes.data)
        self._tell()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        steps = int(state[_F["STEPS"]])
        if self.runs.get(loop, 0) < _PROBES:
            self.runs[loop] = self.runs.get(loop, 0) + 1
            each = sum(self.costs[n] for n in loop.inside) / len(loop.inside)
            self.saved[loop] = self.saved.get(loop, 0.0) + steps * each
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
        count = int(state[_F["COUNT"]])
        current = nodes[int(state[_F["CURRENT"]])]
        group = self._group(count)
        scheduler.waited = int(state[_F["WAITED"]])
        if status == LIMIT and pending:
            scheduler.waited -= 1  # as the scheduler is about to look at the same block again
        scheduler.advanced = scheduler.advanced or bool(state[_F["ADVANCED"]])
        if scheduler.standstill.moving:
            scheduler.standstill.moved = True
        executed, path = int(state[_F["EXECUTED"]]) - executed, int(state[_F["PATH"]]) - path
        chunk.clock = int(state[_F["PATH"]])
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
        done = int(state[_F["READS_DONE"]])
        if done and self.reuse is not None:
            sums = [int(state[_F[name]]) for name in ("READ_REQUESTS", "READ_LINES", "READ_PASSES")]
            narrow_counting.add_reads(self.reuse, self.kept["READS"][:done].copy(), *sums)
        for name in ("READS_DONE", "READ_REQUESTS", "READ_LINES", "READ_PASSES"):
            state[_F[name]] = 0

    def _tell(self) -> None:
        """Add the sums of a run to the observers' own."""
        state, tables, places = self.state, self.tables, self.places
        self._tell_reads()
        blocks = tables["BLOCKS"]
        used = np.flatnonzero(places[:, _P["FAST"]])
        if self.races is not None:
            narrow_races.told(self.races, [(self.chunk.translation.sites[k], self.spaces[k]) for k in used.tolist()])
        if self.counting is not None:
            narrow_counting.add_blocks(self.counting, self.loop.nodes, blocks)
            rows = places[:, _P["REQUESTS"] : _P["NEEDED"] + 1]
            narrow_counting.add_accesses(self.counting, {(k, self.spaces[k]): rows[k] for k in used.tolist()})
            done = int(state[_F["ENDED_DONE"]])
            narrow_counting.add_trips(self.counting, self.kept["ENDED"][: 3 * done].reshape(-1, 3))
        places[used, _P["REQUESTS"] :] = 0
        blocks[:] = 0
        state[_F["ENDED_DONE"]] = 0

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
        group = self._group(int(self.state[_F["COUNT"]]))
        self.chunk.group = group
        return group.all_lanes, group.lanes

    def _steps_seen(self) -> bool:
        return bool(self.others["block"]) or any(trace.room or trace.complete for trace in self.steps)

    def _accesses_seen(self) -> bool:
        return bool(self.others["load"] or self.others["store"]) or any(trace.room for trace in self.accesses)

    def _step(self, node: int, time: int) -> None:
        self._present()
        for notify in (*(trace.block for trace in self.steps), *self.others["block"]):
            notify(self.loop.nodes[node], self.chunk.group, time)
        self.state[_F["STEPS_SEEN"]] = self._steps_seen()

    def _seen(self, number: int, done: bool) -> None:
        """Note that an access that is known to be good is about to be made, or `done`."""
        chunk, site = self.chunk, self.chunk.translation.sites[number]
        lanes, some = self._present()
        space, addresses = chunk.access.resolve(site, self._addresses(site, lanes, some))
        event = {"load": "loaded", "store": "stored"}[site.op] if done else site.op
        for trace in () if done else self.accesses:
            trace.load(site, space, addresses, some)
        values = [self._values(site, lanes)] if event in ("loaded", "store") else []
        for notify in self.others[event]:
            notify(site, space, addresses, some, *values)
        self.state[_F["ACCESSES_SEEN"]] = self._accesses_seen()

    def _branched(self, node: int, taken: int) -> None:
        """Note that the group jumps, or parts if `taken` of its lanes do."""
        self._present()
        chunk, block = self.chunk, self.chunk.translation.blocks[self.loop.nodes[node]]
        if not taken:
            for notify in self.others["jump"]:
                notify(block, chunk.group)
            return
        counts = {"TAKEN": taken, "OTHER": chunk.group.count - taken}
        sides = [Group(chunk, self.kept[name][:count].astype(np.int64)) for name, count in counts.items()]
        for notify in self.others["diverge"]:
            notify(block, chunk.group, *sides)

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
            state[_F["READS_ROOM"]] = self.reuse.room
        state[_F["ACCESSES_SEEN"]] = self._accesses_seen()
        self._settle_races()
        self._place(number, site, addresses)

    def _settle_races(self) -> None:
        """Examine loads that `Races` has recorded, as code that compares accesses itself must know of them. Where they
        race, which `Races` reports in its time, all accesses go there from now on."""
        if self.races is not None and not narrow_races.settled(self.races):
            self.places[self.places[:, _P["WRITER"]] != 0, _P["LIMIT"]] = -1

    def _check_places(self) -> None:
        """Forget places that the arrays' code has changed since."""
        memory = self.chunk.device.memory
        for number, (allocation, arrays, complete, record) in self.known.items():
            holder: Any = arrays if allocation is None else allocation
            good = (holder is arrays or memory.find(holder.address) is holder) and holder.complete == complete
            if good and record is not None and self.races is not None:
                good = record is self.races.shared or record in self.races.allocations.values()
            if not good:
                self.places[number, _P["LIMIT"]] = -1
        self._settle_races()

    def _place(self, number: int, site, addresses) -> None:
        """Find out where the accesses of a site are known to be good."""
        chunk, access, row = self.chunk, self.chunk.access, self.places[number]
        row[_P["LIMIT"]] = -1
        if self.others["loaded"] and any(name is None for name, _ in self.loop.code.sites[number].items):
            return  # of what goes nowhere the arrays' code knows what it was
        try:
            space, there = access.resolve(site, addresses)
        except SeveralSpaces:
            return
        if self.spaces.setdefault(number, space) != space:
            return
        races = self.races
        recorded = False if races is None else narrow_races.followed(races, site, space)
        if recorded is None:
            return
        touched = record = allocation = arrays = races_record = None
        if space in ("global", "const"):
            allocation = access.allocation(site, there)
            if allocation is None:
                return
            low, size, data = allocation.address, allocation.nbytes, access.views[space]["u1"]
            first = low - ORIGIN
            if self.checked and not allocation.complete:
                record = chunk.device.memory.written[1][first:]
            if self.counting is not None and space == "global":
                touched = self.counting.touched.get((site.op, site.where, allocation.address))
                if touched is None:
                    return
            data, own = data[first:], 0
        else:
            _, size = chunk.own_memory(space, None)
            arrays = access.shared if space == "shared" else access.local
            data, low, own = arrays.views["u1"], 0, 1 if space == "shared" else 2
            if not arrays.complete and (self.unwritten or (space == "shared" and self.checked)):
                record = arrays.written[1]
        if site.space == "generic":
            low += {"shared": WINDOW_SHARED, "local": WINDOW_LOCAL}.get(space, 0)
        if not data.size or size < site.width:
            return
        fields: dict[str, Any] = {
            "LOW": low,
            "DATA": data,
            "WRITTEN": 0 if record is None else record,
            "TOUCHED": 0 if touched is None else touched,
            "OWN": own,
            "WIDTH": site.width,
            "ITEM": site.item,
            "SPACE": {"global": 0, "shared": 1}.get(space, 2),
            "COUNTED_BYTES": site.counted_bytes,
            "IS_LOAD": site.op == "load",
            "SITE": number,
            "WRITER": 0,
        }
        if recorded and races is not None:
            races_record = narrow_races.record_of(races, space, allocation)
            if races_record is None or races_record.pending:
                return
            fields.update(narrow_races.fields_of(races, races_record, site, space))
        holding = []
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                holding.append(value)
                value = value.ctypes.data
            row[_P[name]] = int(value)
        self.holding[number] = holding
        holder: Any = arrays if allocation is None else allocation
        complete = holder.complete
        self.known[number] = allocation, arrays, complete, races_record
        row[_P["LIMIT"]] = size - site.width
