"""Data races: two threads access the same word, one of them writes, and nothing orders the two.

For each word (as wide as the narrowest access in the kernel), the last writer and the readers since then are recorded:
thread, block, the block's epoch (barriers passed) and the warp's time (`__syncwarp` passed). A later access by another
thread is ordered if both are in one block with a barrier in between, or in one warp with a `__syncwarp` in between, or
if the later thread knows of the access in another way (`vector_clocks`: mbarriers, flags in shared memory, barriers for
some warps or for a cluster). The order in which the simulator happens to run the threads plays no part.

Loads are merely recorded when they happen. They are examined when a store to the same memory follows, or at the barrier
that ends their epoch; an epoch without a store costs nothing.

Not detected: acquire and release accesses are never races, nor are volatile ones in global memory, except what flags
guard (`waiting_loops`). In shared memory, `volatile` excuses nothing but a load beside atomic operations; with
`volatile_orders` it excuses the lanes of one warp, as reductions before 2017 need it (`Lockstep` finds those that
rely on it), but not two warps, unless the kernel waits for flags. In global memory, a write that its thread followed by
a fence or a release counts as published to all.
"""

from typing import Any

import numpy as np

from warplab.simulator.check.cluster_lifetimes import ClusterLifetimes
from warplab.simulator.check.operand_reads import OperandReads
from warplab.simulator.check.race_records import (
    LOCKSTEP_REASON,
    GridNumbers,
    LaneSnapshot,
    Lockstep,
    Narrowing,
    Record,
    RecordedAccess,
    relies_on_it,
)
from warplab.simulator.check.race_words import WordRaces, multiplies
from warplab.simulator.check.vector_clocks import Clocks, clocks_needed
from warplab.simulator.memory.device_memory import ORIGIN
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.tensor_maps import PIECE
from warplab.simulator.translate.waiting_loops import turns_on_memory

_PENDING_PLACES = 1 << 25  # the most that are kept, of loads
_SNAPSHOTS = 16  # of different lanes between two barriers
_INITIALISED = (
    "After one thread has initialised an mbarrier (init, mbarrier.init), a __syncthreads() must follow before any "
    "other thread of the block uses it, or a cluster.sync() where blocks of a cluster share it. (Before a "
    "barrier.cluster.arrive.relaxed, also a fence.mbarrier_init.)"
)


class Races(WordRaces):
    """Race detection for one launch: follows its accesses and what orders them. `WordRaces` compares them."""

    def __init__(self, translation, threads: int, blocks: int, volatile_orders: bool = False) -> None:
        super().__init__(translation, threads, volatile_orders)
        self.blocks = blocks
        sites = translation.sites
        self.sites = len(sites)
        self.written = {s.space for s in sites if s.op != "load"}
        self.needs_clocks = clocks_needed(translation)
        self.multiplies = any(multiplies(s) for s in sites)
        self.relies_on_lockstep = volatile_orders and relies_on_it(translation)
        # In a kernel that waits for memory, volatile words are flags, and what these guard may be volatile as well.
        self.volatile_flags = volatile_orders and turns_on_memory(translation.blocks)
        self.lockstep: Lockstep | None = None
        self.fence_epochs = np.zeros((2, blocks + 1), np.int32)
        self.allocations: dict[int, Record] = {}
        self.pending_places = self.begun = 0

    def watch(self, chunk) -> "Races":
        """Begin a new chunk of blocks, with new shared memory and no barriers passed."""
        self.chunk = chunk
        chunk.races = self
        self.numbers = GridNumbers(chunk, self.warps_per_block)
        # Made since the latest barrier, for all lanes and for some.
        self.latest: dict[int, tuple[object, LaneSnapshot]] = {}
        self.epochs = np.zeros(chunk.blocks, np.int32)
        self.times = np.zeros(chunk.warps, np.int32)
        self.cluster = chunk.cluster_blocks
        self.clocks = Clocks(chunk) if self.needs_clocks or self.cluster > 1 else None
        self.lifetimes = ClusterLifetimes(chunk, self.clocks) if self.clocks is not None and self.cluster > 1 else None
        self.operands = OperandReads(chunk, self.clocks) if self.clocks is not None and self.multiplies else None
        self.epoch_stored = False  # was there a store to shared memory since the last barrier of all blocks?
        words, timed = chunk.access.shared.nbytes // self.word["shared"], self.clocks is not None
        self.shared = Record(words, self.sites, None, timed)
        self.initialised = Record(words, self.sites, None, timed)  # mbarriers, by whom
        self.lockstep = Lockstep(self.shared.words) if self.relies_on_lockstep else None
        return self

    def end_chunk(self) -> None:
        self._flush_all()
        self._forget(self.shared)
        if self.lifetimes is not None:
            self.lifetimes.end()
        narrowing = Narrowing()
        for record in self.allocations.values():
            record.compact(narrowing)

    def end_launch(self, profile, finished: bool) -> None:
        """Let go of the records, which are large, instead of when Python collects the launch."""
        self.allocations.clear()
        self.shared = self.initialised = Record(0, 0)

    # -- for machine code (`run.machine_state`), which compares and records accesses that race with none -----------

    def wants(self, event: str, space: str = "") -> int | None:
        """Return 0 also for stores, which machine code makes and records (`to_write`)."""
        loads = event == "load" and space in self.word and self.written & {space, "generic"}
        return None if loads else 0

    def followed(self, site, space: str) -> bool | None:
        """Tell whether the accesses of a site are recorded; None if they have to be examined one by one."""
        if space not in self.word:
            return False
        if self.clocks is not None or self.fences is not None or site.strong or site.flag or ".volatile" in site.text:
            return None
        return site.op != "load" or bool(self.written & {space, "generic"})

    def settled(self) -> bool:
        """Examine the loads that are recorded. Returns False, and leaves them, where some race with stores before."""
        good = True
        for record, space in ((self.shared, "shared"), *((of, "global") for of in self.allocations.values())):
            if any(
                self._behind_writer(record, access, access.word + k).any()
                for access in record.pending
                for k in range(self._words(access.site, space))
            ):
                good = False
            elif record.pending:
                stored, record.stored = record.stored, True
                self._flush(record, space)
                record.stored = stored
        return good

    def to_write(self, space: str, allocation) -> Record | None:
        """Return the record of the words that a store of all lanes is about to write, with the loads before it
        examined; None if that store has to be examined here."""
        if self.clocks is not None or self.fences is not None or self.any_volatile:
            return None
        record = self.record(space, allocation)
        record.stored = True
        self._flush(record, space)
        self.epoch_stored |= space == "shared"
        return record

    # -- what orders accesses --------------------------------------------------------------------------------------

    def barrier(self, lanes) -> None:
        self._turn()
        if self.clocks is not None:
            self.clocks.sync_blocks(lanes)
        if self.operands is not None:
            self.operands.barrier(lanes)
        if lanes is not None:
            self._flush(self.shared, "shared")
            self.epochs = self.epochs.copy()  # earlier accesses keep the old ones
            self.epochs[np.unique(self.chunk.block_of[lanes])] = self._begin()
            return
        if self.epoch_stored:
            self._flush(self.shared, "shared")
            self.epoch_stored = False
        self._forget(self.shared)
        self.epochs = np.full_like(self.epochs, self._begin())

    def grid_barrier(self) -> None:
        self.barrier(None)
        self._flush_all()
        self.allocations.clear()
        self.pending_places = self.shared.kept

    def sync_warp(self, lanes) -> None:
        if lanes is not None and self.clocks is not None:
            lanes, some = self._of_whole_warps(lanes)
            if some.size:
                self._flush_all()
                self.clocks.sync_some(some)
            if not lanes.size:
                return
        self._turn()
        self._flush(self.shared, "shared")
        if self.clocks is not None:
            self._flush_all()
            self.clocks.sync_warps(self.chunk.all_lanes if lanes is None else lanes)
        self.times = self.times.copy()
        self.times[np.unique(self.chunk.warp_of if lanes is None else self.chunk.warp_of[lanes])] = self._begin()

    def _begin(self) -> int:
        """Return the number of a new epoch, warp's time or fence, above those before: with clocks, when it begins."""
        self.begun += 1
        return self.begun if self.clocks is None else self.clocks.now

    def _of_whole_warps(self, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Split lanes into those of warps that are all there, but for lanes that have ended, and the others."""
        warp = self.chunk.warp_of[lanes]
        here = np.zeros(self.chunk.warps, np.uint32)
        np.bitwise_or.at(here, warp, np.uint32(1) << self.chunk.lane_of[lanes].astype(np.uint32))
        whole = (self.chunk.scheduler.alive & ~here == 0)[warp]
        return lanes[whole], lanes[~whole]

    def _turn(self) -> None:
        """Drop snapshots, as epochs or times are about to change."""
        self.ordered = True
        self.latest.clear()

    def fence(self, lanes, scope: str = "gpu") -> None:
        if self.fences is None:
            self.fences = np.zeros((2, self.blocks * self.threads + 1), np.int32)
        kinds = slice(1 if scope == "cta" else 2)
        self.wide |= scope != "cta"
        owner = self.chunk.block_of if lanes is None else self.chunk.block_of[lanes]
        self.fence_epochs[kinds, self.chunk.first_block + 1 + owner] = self.epochs[owner]
        if self.clocks is not None:
            self.clocks.fence(self.chunk.all_lanes if lanes is None else lanes)
        self.fences[kinds, self._snapshot(lanes).thread] = self._begin()

    def arrive(self, places: np.ndarray, lanes: np.ndarray, relaxed: bool = False) -> None:
        if self.clocks is not None:
            self.clocks.release(places, lanes, later=True, fenced=relaxed)
        if self.lifetimes is not None:
            self.lifetimes.arrive(places, lanes)

    def phase_over(self, places: np.ndarray) -> None:
        if self.clocks is not None:
            self.clocks.over(places)

    def wait_over(self, places: np.ndarray, lanes: np.ndarray) -> None:
        if self.clocks is not None:
            self._flush_all()
            self.clocks.acquire(places, lanes)
        if self.lifetimes is not None:
            self.lifetimes.wait_over(places, lanes)

    def exchange(self, lanes) -> None:
        if self.clocks is not None:
            self._flush_all()
            self.clocks.exchange(self.chunk.all_lanes if lanes is None else lanes)

    def _flag(self, site, space: str, addresses: Addresses, lanes) -> None:
        """Follow an access that is meant to synchronise."""
        if space == "global" and site.releases:
            self.fence(lanes, "cta" if ".cta" in site.text else "gpu")
        if self.clocks is None or space != "shared":
            return
        every = self.chunk.all_lanes if lanes is None else lanes
        places = addresses.at(site.offset).view(np.int64)
        if site.op != "load":
            self._flush_all()
            if site.op == "atomic":
                self.clocks.acquire(places, every)
            self.clocks.release(places, every, fenced=not site.releases)
        if site.op != "store":  # in an atomic operation each lane also sees those before it
            self.wait_over(places, every)

    # -- accesses --------------------------------------------------------------------------------------------------

    def load(self, site, space: str, addresses: Addresses, lanes) -> None:
        if space not in self.word:
            return
        if site.flag:
            self._flag(site, space, addresses, lanes)
        self._in_step(site, space, addresses, lanes)
        if self._synchronises(site, space):
            return
        if not self.written & {space, "generic"}:
            return
        followed = self._followed(site, space, addresses, lanes)
        if followed is None:
            return
        self._note(*followed, space)
        if self.operands is not None and multiplies(site):
            self.operands.read(site, addresses.units(site.offset, PIECE), lanes)
            self._forget_repeated(*followed)

    copy_read = load

    def load_by_all(self, site, space: str, allocation, bases: Any) -> None:
        """Do as `load` for all lanes of the chunk, whose addresses are known to be aligned and, of global memory, to
        lie in `allocation`. `bases()` returns them; `bases.few`: if that is to be asked only when it is needed."""
        away = site.offset - (0 if space == "shared" else allocation.address)
        shift = self.word[space].bit_length() - 1

        def words() -> np.ndarray:
            return bases().view(np.int64) + away >> shift

        now = 0 if self.clocks is None else self.clocks.now
        places = words if bases.few else words()
        access = RecordedAccess(site, self._snapshot(None), self.chunk.lanes, now, places, 0, 1)
        self._note(self.record(space, allocation), access, space)

    def _note(self, record: Record, access: RecordedAccess, space: str) -> None:
        record.pending.append(access)
        self.pending_places += access.kept
        if self.pending_places > _PENDING_PLACES:
            record.stored = True
            self._flush(record, space)

    def _forget_repeated(self, record: Record, access: RecordedAccess) -> None:
        """Examine only the latest of reads that are alike, with nothing examined in between."""
        again = [earlier for earlier in record.pending[:-1] if access.repeats(earlier)]
        for earlier in again:
            self.pending_places -= earlier.kept
            record.pending.remove(earlier)

    def store(self, site, space: str, addresses: Addresses, lanes, values=None) -> None:
        """Examine it; also for an atomic operation, without `values`."""
        if space not in self.word:
            return
        if site.flag:
            self._flag(site, space, addresses, lanes)
        if site.op == "store":
            self._in_step(site, space, addresses, lanes, values)
            if self._synchronises(site, space):
                return
        followed = self._followed(site, space, addresses, lanes)
        if followed is None:
            return
        record, access = followed
        record.stored = True
        self._flush(record, space)
        self.epoch_stored |= space == "shared"
        word = access.word
        self._examine(record, space, access, word, addresses, values)

    copy_done = store

    def atomic(self, site, space: str, addresses: Addresses, lanes, reads: bool) -> None:
        self.store(site, space, addresses, lanes)

    reduced = store

    def copy_issued(self, site, addresses: Addresses, lanes, values) -> None:
        self.store(site, "shared", addresses, lanes, values)

    def mbarrier(self, site, addresses: Addresses, lanes, initialises: bool) -> None:
        followed = self._followed(site, "shared", addresses, lanes)
        if followed is None:
            return
        _, access = followed
        made, word = self.initialised, access.word  # one word of it stands for the mbarrier
        if not initialises:
            race = self._behind_writer(made, access, word)
            if race.any():
                sites = made.write_site
                self._report(
                    "uses", "initialised", made, made.writer, sites, "shared", access, word, race, _INITIALISED
                )
        self.store(site, "shared", addresses, lanes, None)
        if not initialises:
            return
        made.writer[word], made.write_site[word] = access.by.thread, site.index
        if self.clocks is not None:
            made.written_at[word] = access.now
        elif self.ordered:
            made.write_epoch[word], made.write_time[word] = access.by.epoch, access.by.time

    def _synchronises(self, site, space: str) -> bool:
        """Tell whether an access is meant to synchronise, and so no race by itself."""
        return site.strong and (self.volatile_flags or space != "shared" or ".volatile" not in site.text)

    def _in_step(self, site, space: str, addresses: Addresses, lanes, values=None) -> None:
        """Report lanes that rely on lockstep, for a volatile load, or store of `values`."""
        if self.lockstep is None or space != "shared" or ".volatile" not in site.text:
            return
        followed = self._followed(site, space, addresses, lanes)
        if followed is None:
            return
        record, access = followed
        for k in range(self._words(site, space)):
            word = access.word + k
            if values is not None:
                self.lockstep.store(access, word, np.asarray(self._unchanged(site, space, addresses, values)))
                continue
            race = self.lockstep.load(access, word)
            if race.any():
                written = self.lockstep.writer, self.lockstep.site
                self._report("reads", "wrote", record, *written, space, access, word, race, LOCKSTEP_REASON)

    def _followed(self, site, space: str, addresses: Addresses, lanes) -> tuple[Record, RecordedAccess] | None:
        """Return the record that an access concerns, and the access; None if it is not followed."""
        size, start = self.word[space], 0
        if space == "shared":
            record = self.shared
            if self.lifetimes is not None and site.cluster:
                self.lifetimes.access(site, addresses, lanes)
        else:
            allocation = self.chunk.access.allocation(site, addresses)
            if allocation is None:  # the lanes' addresses lie in several allocations: not followed
                return None
            start, record = allocation.address, self.record(space, allocation)
        by, item = self._snapshot(lanes), site.item
        count = self.chunk.lanes if lanes is None else lanes.shape[0]
        now = 0 if self.clocks is None else self.clocks.now
        below = addresses.high >> 63  # a base below the memory, to which the offset adds
        if item < size or addresses.bits & (item - 1) or site.offset & (item - 1) or below:
            places = (addresses.at(site.offset).view(np.int64) - start) // size
            return record, RecordedAccess(site, by, count, now, places, 0, 1)
        places, shift = addresses.items(item), (site.offset - (start & (ORIGIN - 1))) // item
        return record, RecordedAccess(site, by, count, now, places, shift, item // size)

    def record(self, space: str, allocation) -> Record:
        """Return the record of shared memory, or of an allocation of global memory."""
        if space == "shared":
            return self.shared
        if allocation.address not in self.allocations:
            words = -(-allocation.nbytes // self.word["global"])
            self.allocations[allocation.address] = Record(words, self.sites, allocation, self.clocks is not None)
        return self.allocations[allocation.address]

    def _snapshot(self, lanes) -> LaneSnapshot:
        _, by = self.latest.get(id(lanes), (None, None))
        if by is None:
            if len(self.latest) > _SNAPSHOTS:
                self.latest.clear()
            by = LaneSnapshot(self.numbers, lanes, self.epochs, self.times)
            self.latest[id(lanes)] = lanes, by
        return by

    def _flush_all(self) -> None:
        """Examine what is recorded, before threads learn what others did."""
        self._flush(self.shared, "shared")
        for record in self.allocations.values():
            self._flush(record, "global")

    def _flush(self, record: Record, space: str) -> None:
        """Compare recorded loads with the writes before them, and note the readers for the writes to come."""
        if record.stored:
            for access in record.pending:
                self._examine(record, space, access)
            self._forget(record)

    def _forget(self, record: Record) -> None:
        self.pending_places -= record.kept
        record.forget()
