"""Data races: two threads access the same word, one of them writes, and nothing orders the two.

For each word (as wide as the narrowest access in the kernel), the last writer and the readers since then are recorded:
thread, block, the block's epoch (barriers passed) and the warp's time (`__syncwarp` passed). A later access by another
thread is ordered if both are in one block with a barrier in between, or in one warp with a `__syncwarp` in between, or
if the later thread knows of the access in another way (`vector_clocks`: mbarriers, flags in shared memory, barriers for
some warps). The order in which the simulator happens to run the threads plays no part.

Loads are merely recorded when they happen. They are examined when a store to the same memory follows, or at the barrier
that ends their epoch; an epoch without a store costs nothing.

Not detected: acquire and release accesses are never races, nor are volatile ones, except between lanes of one warp
(`lockstep`) and unless `volatile_orders` is off. In global memory, a write that its thread followed by a fence or a
release counts as published to all.
"""

from __future__ import annotations

import numpy as np

from warplab.simulator.check.lockstep import REASON, Lockstep, relies_on_it
from warplab.simulator.check.race_records import GridNumbers, LaneSnapshot, Narrowing, Record, RecordedAccess
from warplab.simulator.check.race_report import race_error
from warplab.simulator.check.vector_clocks import Clocks, clocks_needed
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.memory.device_memory import ORIGIN
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.observer import Observer

_NONE, _SEVERAL = 0, -1  # threads, warps and blocks are numbered from 1, so that a record of zeros is empty
_PENDING_LANES = 1 << 25  # the most loads recorded, counted in lanes


class Races(Observer):
    """Race detection for one launch. Threads are numbered through the whole grid."""

    def __init__(self, translation, threads: int, blocks: int, volatile_orders: bool = True) -> None:
        self.volatile_orders = volatile_orders
        self.translation, self.threads, self.blocks = translation, threads, blocks
        self.warps_per_block = -(-threads // WARP_SIZE)
        sites = translation.sites
        self.sites = len(sites)
        self.word = {
            space: min((s.item for s in sites if s.space in (space, "generic")), default=4)
            for space in ("shared", "global")
        }
        self.written = {s.space for s in sites if s.op != "load"}
        self.atomics = any(s.op == "atomic" for s in sites)
        self.needs_clocks = clocks_needed([i for block in translation.blocks for i in block.counted])
        self.clocks: Clocks | None = None
        self.relies_on_lockstep = volatile_orders and relies_on_it(translation)
        self.lockstep: Lockstep | None = None
        self.ordered = False  # have barriers or warp syncs ordered anything: are epochs and times not all zero?
        self.fences: np.ndarray | None = None  # how many fences each thread of the grid has passed
        self.fence_epochs = np.zeros(blocks + 1, np.int32)  # of each block at its latest fence
        self.allocations: dict[int, Record] = {}

    def watch(self, chunk) -> Races:
        """Begin a new chunk of blocks, with new shared memory and no barriers passed."""
        self.chunk = chunk
        self.numbers = GridNumbers(chunk, self.warps_per_block)
        self.latest: dict[
            str, tuple[object, LaneSnapshot]
        ] = {}  # made since the latest barrier, for all lanes and for some
        self.epochs = np.zeros(chunk.blocks, np.int32)
        self.times = np.zeros(chunk.warps, np.int32)
        self.clocks = Clocks(chunk) if self.needs_clocks else None
        self.epoch_stored = False  # was there a store to shared memory since the last barrier of all blocks?
        self.shared = Record(chunk.access.shared.nbytes // self.word["shared"], self.sites)
        self.lockstep = Lockstep(self.shared.words) if self.relies_on_lockstep else None
        self.pending_lanes = sum(record.lanes for record in self.allocations.values())
        return self

    def end_chunk(self) -> None:
        self._flush_all()
        narrowing = Narrowing()
        for record in self.allocations.values():
            record.compact(narrowing)

    # -- what orders accesses --------------------------------------------------------------------------------------

    def barrier(self, lanes) -> None:
        self._turn()
        if self.clocks is not None:
            self.clocks.sync_blocks(lanes)
        if lanes is not None:
            self._flush(self.shared, "shared")
            self.epochs = self.epochs.copy()  # earlier accesses keep the old ones
            self.epochs[np.unique(self.chunk.block_of[lanes])] += 1
            return
        if self.epoch_stored:
            self._flush(self.shared, "shared")
            self.epoch_stored = False
        self._forget(self.shared)
        self.epochs = self.epochs + 1

    def grid_barrier(self) -> None:
        self.barrier(None)
        self._flush_all()
        self.allocations.clear()
        self.pending_lanes = self.shared.lanes

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
        self.times[np.unique(self.chunk.warp_of if lanes is None else self.chunk.warp_of[lanes])] += 1

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
            self.fences = np.zeros(self.blocks * self.threads + 1, np.int32)
        self.fences[self._snapshot(lanes).thread] += 1
        owner = self.chunk.block_of if lanes is None else self.chunk.block_of[lanes]
        self.fence_epochs[self.chunk.first_block + 1 + owner] = self.epochs[owner]
        if self.clocks is not None:
            self.clocks.fence(self.chunk.all_lanes if lanes is None else lanes)

    def arrive(self, places: np.ndarray, lanes: np.ndarray) -> None:
        if self.clocks is not None:
            self.clocks.release(places, lanes, later=True)

    def phase_over(self, places: np.ndarray) -> None:
        if self.clocks is not None:
            self.clocks.over(places)

    def wait_over(self, places: np.ndarray, lanes: np.ndarray) -> None:
        if self.clocks is not None:
            self._flush_all()
            self.clocks.acquire(places, lanes)

    def exchange(self, lanes) -> None:
        if self.clocks is not None:
            self._flush_all()
            self.clocks.exchange(self.chunk.all_lanes if lanes is None else lanes)

    def _flag(self, site, space: str, addresses: Addresses, lanes) -> None:
        """Follow an access that is meant to synchronise."""
        if space == "global" and site.releases:
            self.fence(lanes)
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
        if self._synchronises(site, space):
            self._in_step(site, space, addresses, lanes)
            return
        if not self.written & {space, "generic"}:
            return
        followed = self._followed(site, space, addresses, lanes)
        if followed is None:
            return
        record, access = followed
        record.pending.append(access)
        self.pending_lanes += access.lanes
        if self.pending_lanes > _PENDING_LANES:
            record.stored = True
            self._flush(record, space)

    copy_read = load

    def store(self, site, space: str, addresses: Addresses, lanes, values) -> None:
        """Also for an atomic operation, without `values`."""
        if space not in self.word:
            return
        if site.flag:
            self._flag(site, space, addresses, lanes)
        if site.op == "store" and self._synchronises(site, space):
            self._in_step(site, space, addresses, lanes, values)
            return
        followed = self._followed(site, space, addresses, lanes)
        if followed is None:
            return
        record, access = followed
        record.stored = True
        self._flush(record, space)
        self.epoch_stored |= space == "shared"
        first = access.word
        for k in range(self._words(site, space)):
            self._write(record, space, access, first + k if k else first, addresses, values)

    copy_done = store

    def atomic(self, site, space: str, addresses: Addresses, lanes, reads: bool) -> None:
        self.store(site, space, addresses, lanes, None)

    def copy_issued(self, site, addresses: Addresses, lanes, values) -> None:
        self.store(site, "shared", addresses, lanes, values)

    def mbarrier(self, site, addresses: Addresses, lanes, initialises: bool) -> None:
        self.store(site, "shared", addresses, lanes, None)

    def _synchronises(self, site, space: str) -> bool:
        """Is an access meant to synchronise, and so no race by itself?"""
        return site.strong and (self.volatile_orders or space != "shared" or ".volatile" not in site.text)

    def _in_step(self, site, space: str, addresses: Addresses, lanes, values=None) -> None:
        """For a volatile load, or store of `values`: report lanes that rely on lockstep."""
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
                self._report("reads", "wrote", record, *written, space, access, word, race, REASON)

    def _words(self, site, space: str) -> int:
        return max(1, site.width // self.word[space])

    def _followed(self, site, space: str, addresses: Addresses, lanes) -> tuple[Record, RecordedAccess] | None:
        """Return the record that an access concerns, and the access; None if it is not followed."""
        size, start = self.word[space], 0
        if space == "shared":
            record = self.shared
        else:
            allocation = self.chunk.access.allocation(site, addresses)
            if allocation is None:  # the lanes' addresses lie in several allocations: not followed
                return None
            start = allocation.address
            if start not in self.allocations:
                self.allocations[start] = Record(-(-allocation.nbytes // size), self.sites, allocation)
            record = self.allocations[start]
        by, item = self._snapshot(lanes), site.item
        count = self.chunk.lanes if lanes is None else lanes.shape[0]
        now = 0 if self.clocks is None else self.clocks.now
        if addresses.bits & (item - 1) or site.offset & (item - 1):
            places = (addresses.at(site.offset).view(np.int64) - start) // size
            return record, RecordedAccess(site, by, count, now, places, 0, 1)
        places, shift = addresses.items(item), (site.offset - (start & (ORIGIN - 1))) // item
        return record, RecordedAccess(site, by, count, now, places, shift, item // size)

    def _snapshot(self, lanes) -> LaneSnapshot:
        key = "all" if lanes is None else "some"
        of, by = self.latest.get(key, (None, None))
        if by is None or of is not lanes:
            by = LaneSnapshot(self.numbers, lanes, self.epochs, self.times)
            self.latest[key] = lanes, by
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
                first = access.word
                for k in range(self._words(access.site, space)):
                    self._read(record, space, access, first + k if k else first)
            self._forget(record)

    def _forget(self, record: Record) -> None:
        self.pending_lanes -= record.lanes
        record.forget()

    # -- words -----------------------------------------------------------------------------------------------------

    def _behind_writer(self, record: Record, access: RecordedAccess, word: np.ndarray) -> np.ndarray:
        """Return the lanes whose word another thread wrote, with nothing to order the two."""
        writer = record.writer[word]
        race = (writer != _NONE) & (writer != access.by.thread)
        if race.any():  # rarely: most words belong to one thread
            block, thread = np.divmod(writer - 1, self.threads)
            warp = block * self.warps_per_block + thread // WARP_SIZE + 1
            block += 1
            if self.ordered:
                race &= ~((block == access.by.block) & (record.write_epoch[word] < access.by.epoch))
                race &= ~((warp == access.by.warp) & (record.write_time[word] < access.by.time))
            if self.clocks is not None and race.any():
                race &= ~self._knows(self.clocks, access, writer, block, record.written_at[word])
        return race

    def _knows(
        self, clocks: Clocks, access: RecordedAccess, others: np.ndarray, blocks: np.ndarray, time: np.ndarray
    ) -> np.ndarray:
        """Return the lanes that know what threads `others` of `blocks` did at `time`."""
        first = self.numbers.first_thread
        same = blocks == access.by.block
        return same & clocks.knows(access.by.thread - first, np.where(same, others - first, 0), time)

    def _published(self, record: Record, word: np.ndarray) -> np.ndarray:
        """Return the words whose writer, or after a barrier a thread of its block, has passed a fence since, or that an
        atomic wrote in a kernel with fences."""
        if self.fences is None:
            return np.zeros(word.shape, bool)
        writer = record.writer[word]
        block = np.where(writer > 0, (writer - 1) // self.threads + 1, 0)
        published = self.fences[writer] > record.write_fences[word]
        return published | (record.write_epoch[word] < self.fence_epochs[block]) | record.atomic[word]

    def _read(self, record: Record, space: str, access: RecordedAccess, word: np.ndarray) -> None:
        race = self._behind_writer(record, access, word)
        if race.any() and space == "global":
            race &= ~self._published(record, word)
        if race.any():
            self._report("reads", "wrote", record, record.writer, record.write_site, space, access, word, race)
        record.was_read = True
        record.read_site[word] = access.site.index
        if self.clocks is not None:
            record.read_at[word] = access.now
        if not self._mine(record.reader[word], access):
            self._add_readers(record, access, word)
        if self.ordered:
            record.read_epoch[word], record.read_time[word] = access.by.epoch, access.by.time

    @staticmethod
    def _mine(threads: np.ndarray, access: RecordedAccess) -> bool:
        """Has only each lane's own thread touched its word? Then lanes share no word either."""
        return bool((threads == access.by.thread).all())

    def _add_readers(self, record: Record, access: RecordedAccess, word: np.ndarray) -> None:
        names = (
            (record.reader, access.by.thread),
            (record.reader_warp, access.by.warp),
            (record.reader_block, access.by.block),
        )
        old = record.reader[word]
        if (old == _NONE).all():
            for record_of, mine in names:
                record_of[word] = mine
            self._add_reading_warps(record, access, word, None)
            if (record.reader[word] == access.by.thread).all():
                return  # these lanes are the first readers, and each has its own word
            old[:] = _NONE
        fresh = old == _NONE
        if self.ordered:
            fresh |= (record.reader_block[word] == access.by.block) & (record.read_epoch[word] < access.by.epoch)
            fresh |= (record.reader_warp[word] == access.by.warp) & (record.read_time[word] < access.by.time)
        for record_of, mine in names:
            record_of[word] = np.where(fresh | (record_of[word] == mine), mine, _SEVERAL)
            shared = record_of[word] != mine  # several lanes of this access read the word
            record_of[word[shared]] = _SEVERAL
        if (old != _NONE).any():
            self._add_reading_warps(record, access, word, fresh)

    def _add_reading_warps(
        self, record: Record, access: RecordedAccess, word: np.ndarray, fresh: np.ndarray | None
    ) -> None:
        """`fresh`: lanes whose read is ordered after all others of their word since it was written; None for all."""
        if self.clocks is None:
            return
        first = word if fresh is None else word[fresh]
        record.first_read_at[first], record.read_by[first] = access.now, 0
        column = (access.by.warp - 1) % self.warps_per_block
        np.bitwise_or.at(record.read_by, word, np.uint32(1) << column.astype(np.uint32))

    def _write(self, record: Record, space: str, access: RecordedAccess, word: np.ndarray, addresses, values) -> None:
        atomic = access.site.op == "atomic"
        race = self._behind_writer(record, access, word)
        if race.any():
            if atomic:
                race &= ~record.atomic[word]
            if space == "global":
                race &= ~self._published(record, word)
            race &= ~self._unchanged(access.site, space, addresses, values)
        if race.any():
            self._report("writes", "wrote", record, record.writer, record.write_site, space, access, word, race)
        if record.was_read:
            self._after_readers(record, space, access, word, addresses, values)
        record.writer[word] = access.by.thread
        if not atomic:
            same_word = record.writer[word] != access.by.thread
            if same_word.any():
                self._one_value(record, space, access, word, same_word, values)
        if self.ordered:
            record.write_epoch[word], record.write_time[word] = access.by.epoch, access.by.time
        record.write_site[word] = access.site.index
        if self.clocks is not None:
            record.written_at[word] = access.now
        if self.atomics:
            record.atomic[word] = atomic
        if self.fences is not None:
            record.write_fences[word] = self.fences[access.by.thread]

    def _after_readers(
        self, record: Record, space: str, access: RecordedAccess, word: np.ndarray, addresses, values
    ) -> None:
        """Compare a write with the reads before it, which then no longer count."""
        reader = record.reader[word]
        race = (reader != _NONE) & (reader != access.by.thread)
        if race.any():
            if self.ordered:
                race &= ~((record.reader_block[word] == access.by.block) & (record.read_epoch[word] < access.by.epoch))
                race &= ~((record.reader_warp[word] == access.by.warp) & (record.read_time[word] < access.by.time))
            if self.clocks is not None and race.any():
                race &= ~self._knows_readers(self.clocks, record, access, word, reader)
            if space == "global" and self.fences is not None:
                race[:] = False
            race &= ~self._unchanged(access.site, space, addresses, values)
        if race.any():
            self._report("writes", "read", record, record.reader, record.read_site, space, access, word, race)
        if reader.any():  # the reading warp and block no longer count either
            record.reader[word] = _NONE

    def _knows_readers(
        self, clocks: Clocks, record: Record, access: RecordedAccess, word: np.ndarray, reader: np.ndarray
    ) -> np.ndarray:
        """Return the lanes that know of all reads of their word."""
        blocks = record.reader_block[word]
        lanes, time = access.by.thread - self.numbers.first_thread, record.read_at[word]
        several = clocks.knows_warps(lanes, record.read_by[word], record.first_read_at[word])
        one = self._knows(clocks, access, reader, np.where(reader > 0, blocks, 0), time)
        own_warp = record.reader_warp[word] == access.by.warp
        own_warp &= time < clocks.met[self.chunk.warp_of[lanes]]
        return own_warp | ((blocks == access.by.block) & np.where(reader == _SEVERAL, several, one))

    def _unchanged(self, site, space: str, addresses: Addresses, values) -> np.ndarray | np.bool:
        """Return the lanes that write what is there already, which is harmless."""
        if values is None:
            return np.False_
        view, index = addresses.index(self.chunk.access.views[space][site.dtype], site.item, site.offset)
        same = view.take(index) == values[0]
        for k in range(1, site.count):
            same = same & (view[k:].take(index) == values[k])
        return same

    def _one_value(self, record: Record, space: str, access: RecordedAccess, word, same_word, values) -> None:
        """Report lanes of one store that share a word, unless they write the same value."""
        different = np.zeros(word.shape, bool)
        for value in values:  # lanes that share one word of an aligned access share all its words
            value = np.broadcast_to(value, word.shape)
            winner = np.zeros(record.words, value.dtype)
            winner[word] = value
            different |= winner[word] != value
        same_word &= different
        if same_word.any():
            self._report("writes", "writes", record, record.writer, None, space, access, word, same_word)

    def _report(
        self, does: str, did: str, record: Record, others, sites, space: str, access, word, race, reason: str = ""
    ) -> None:
        """Raise the error for the first lane in `race`. `others`, `sites`: who touched each word before, and where in
        the program; None for this access."""
        place = int(np.argmax(race))
        at = word[place]
        raise race_error(
            self.chunk,
            (does, did),
            threads=(int(access.by.thread[place]) - 1, int(others[at]) - 1),
            sites=(access.site, access.site if sites is None else self.translation.sites[int(sites[at])]),
            allocation=None if space == "shared" else record.allocation,
            offset=int(at) * self.word[space],
            readers_block=int(record.reader_block[at]) - 1,
            reason=reason,
        )
