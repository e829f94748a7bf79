"""Data races: two threads touch the same word, one of them writes, and no barrier or warp sync lies between.

For each word (of the narrowest access in the kernel) the last writer and the readers since are recorded: thread, block,
the block's epoch (barriers passed) and the warp's time (`__syncwarp` passed). A later access by another thread is in
order if both are in one block and a barrier lies between, or in one warp and a `__syncwarp` lies between. The order in
which the simulator happens to run the threads plays no part.

Loads are only noted when they happen. They are looked at when a store to the same memory comes, or at the barrier that
ends their epoch; an epoch without a store costs nothing.

What is not seen: accesses through volatile, acquire or release loads and stores count as synchronisation. In global
memory a write that its thread followed by a fence counts as published to all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .access import Addresses
from .counters import WARP_SIZE
from .errors import DataRace
from .memory import ORIGIN

_NONE, _SEVERAL = 0, -1  # threads, warps and blocks are numbered from 1, so that records of zeros are empty ones
_PENDING_LANES = 1 << 25  # loads noted at most, counted in lanes


class _Who(NamedTuple):
    """Lanes at one time, an int32 entry each: thread, block and warp in the grid, epoch of the block, time of the warp.

    One serves all accesses of all lanes between two barriers.
    """

    thread: np.ndarray
    block: np.ndarray
    warp: np.ndarray
    epoch: np.ndarray
    time: np.ndarray


class _Event:
    """An access by `who`. The words of the lanes' first bytes are found when they are asked for: most never are."""

    __slots__ = ("_factor", "_places", "_shift", "site", "who")

    def __init__(self, site, who: _Who, places: np.ndarray, shift: int, factor: int) -> None:
        self.site, self.who = site, who
        self._places, self._shift, self._factor = places, shift, factor

    @property
    def word(self) -> np.ndarray:
        word = self._places + self._shift
        if self._factor != 1:
            word *= self._factor
        lanes = self.who.thread.shape[0]
        return word if word.shape[0] == lanes else np.repeat(word, lanes)


class _Record:
    """Who touched each word of an allocation, or of a chunk's shared memory. Arrays are made at the first store."""

    def __init__(self, words: int, allocation=None) -> None:
        self.words, self.allocation = words, allocation
        self.stored = False
        self.pending: list[_Event] = []

    def make(self) -> None:
        if self.stored:
            return
        self.stored = True
        # Zeros take host memory only where they are overwritten, so that a large array touched in part costs little.
        self.writer, self.reader, self.reader_warp, self.reader_block = np.zeros((4, self.words), np.int32)
        self.write_epoch, self.write_time, self.write_site, self.write_fences = np.zeros((4, self.words), np.int32)
        self.read_epoch, self.read_time, self.read_site = np.zeros((3, self.words), np.int32)
        self.atomic = np.zeros(self.words, bool)


class Races:
    """Race detection for one launch. Threads are numbered through the whole grid."""

    def __init__(self, translation, threads: int, blocks: int) -> None:
        self.translation, self.threads, self.blocks = translation, threads, blocks
        self.warps_per_block = -(-threads // WARP_SIZE)
        sites = translation.sites
        self.word = {
            space: min((s.item for s in sites if s.space in (space, "generic")), default=4)
            for space in ("shared", "global")
        }
        self.written = {s.space for s in sites if s.op != "load"}
        self.atomics = any(s.op == "atomic" for s in sites)
        self.ordered = False  # by a barrier or a warp sync, so far: epochs and times are not all zero
        self.fences: np.ndarray | None = None  # fences passed by each thread of the grid
        self.allocations: dict[int, _Record] = {}

    def start(self, chunk) -> None:
        """A new chunk of blocks: its shared memory is new, its blocks have passed no barrier."""
        self.chunk = chunk
        first = chunk.first_block
        self.thread_of = np.arange(first * self.threads + 1, first * self.threads + chunk.lanes + 1, dtype=np.int32)
        self.block_of = (chunk.block_of + (first + 1)).astype(np.int32)
        self.warp_of = (chunk.warp_of + (first * self.warps_per_block + 1)).astype(np.int32)
        self.latest: dict[str, tuple[object, _Who]] = {}  # made since the latest barrier: for all lanes, for some
        self.epochs = np.zeros(chunk.blocks, np.int32)
        self.times = np.zeros(chunk.warps, np.int32)
        self.epoch_stored = False  # a store to shared memory since the last barrier of all blocks
        self.shared = _Record(chunk.access.shared.nbytes // self.word["shared"])
        self.pending_lanes = sum(self._lanes(record) for record in self.allocations.values())

    def finish(self) -> None:
        """The chunk has ended."""
        self._flush(self.shared, "shared")
        for record in self.allocations.values():
            self._flush(record, "global")

    # -- what orders accesses --------------------------------------------------------------------------------------

    def barrier(self, lanes) -> None:
        """The blocks of these lanes (None: all blocks of the chunk) have passed a barrier."""
        self._turn()
        if lanes is not None:
            self._flush(self.shared, "shared")
            self.epochs[np.unique(self.chunk.block_of[lanes])] += 1
            return
        if self.epoch_stored:
            self._flush(self.shared, "shared")
            self.epoch_stored = False
        self._forget(self.shared)
        self.epochs += 1

    def sync_warp(self, lanes) -> None:
        """The lanes have passed a `__syncwarp`."""
        self._turn()
        self._flush(self.shared, "shared")
        self.times[np.unique(self.chunk.warp_of if lanes is None else self.chunk.warp_of[lanes])] += 1

    def _turn(self) -> None:
        """Epochs or times are about to change."""
        self.ordered = True
        self.latest.clear()

    def fence(self, lanes) -> None:
        """The lanes have passed a memory fence."""
        if self.fences is None:
            self.fences = np.zeros(self.blocks * self.threads + 1, np.int32)
        self.fences[self.thread_of if lanes is None else self.thread_of[lanes]] += 1

    # -- accesses --------------------------------------------------------------------------------------------------

    def load(self, site, space: str, addresses: Addresses, lanes, allocation) -> None:
        if site.strong or not self.written & {space, "generic"}:
            return
        record, event = self._event(site, space, addresses, lanes, allocation)
        if record is None:
            return
        record.pending.append(event)
        self.pending_lanes += event.who.thread.shape[0]
        if self.pending_lanes > _PENDING_LANES:
            record.make()
            self._flush(record, space)

    def store(self, site, space: str, addresses: Addresses, lanes, allocation, values) -> None:
        """A store or an atomic, about to happen; `values`: what a store writes."""
        if site.strong and site.op == "store":
            return
        record, event = self._event(site, space, addresses, lanes, allocation)
        if record is None:
            return
        record.make()
        self._flush(record, space)
        self.epoch_stored |= space == "shared"
        first = event.word
        for k in range(self._words(site, space)):
            self._write(record, space, event, first + k if k else first, addresses, values)

    def _words(self, site, space: str) -> int:
        return max(1, site.width // self.word[space])

    def _event(self, site, space: str, addresses: Addresses, lanes, allocation) -> tuple[_Record | None, _Event | None]:
        size, start = self.word[space], 0
        if space == "shared":
            record = self.shared
        elif allocation is None:  # the lanes' addresses lie in several allocations: not followed
            return None, None
        else:
            start = allocation.address
            record = self.allocations.get(start)
            if record is None:
                record = self.allocations[start] = _Record(-(-allocation.nbytes // size), allocation)
        who, item = self._who(lanes), site.item
        if addresses.bits & (item - 1) or site.offset & (item - 1):
            places = (addresses.at(site.offset).view(np.int64) - start) // size
            return record, _Event(site, who, places, 0, 1)
        places, shift = addresses.items(item), (site.offset - (start & (ORIGIN - 1))) // item
        return record, _Event(site, who, places, shift, item // size)

    def _who(self, lanes) -> _Who:
        key = "all" if lanes is None else "some"
        of, who = self.latest.get(key, (None, None))
        if who is None or of is not lanes:
            chunk = self.chunk
            if lanes is None:
                epoch, time = self.epochs[chunk.block_of], self.times[chunk.warp_of]
                who = _Who(self.thread_of, self.block_of, self.warp_of, epoch, time)
            else:
                epoch, time = self.epochs[chunk.block_of[lanes]], self.times[chunk.warp_of[lanes]]
                who = _Who(self.thread_of[lanes], self.block_of[lanes], self.warp_of[lanes], epoch, time)
            self.latest[key] = lanes, who
        return who

    def _flush(self, record: _Record, space: str) -> None:
        """Compare the noted loads with the writes before them, and record them for the writes to come."""
        if record.stored:
            for event in record.pending:
                first = event.word
                for k in range(self._words(event.site, space)):
                    self._read(record, space, event, first + k if k else first)
            self._forget(record)

    def _forget(self, record: _Record) -> None:
        self.pending_lanes -= self._lanes(record)
        record.pending.clear()

    @staticmethod
    def _lanes(record: _Record) -> int:
        return sum(event.who.thread.shape[0] for event in record.pending)

    # -- words -----------------------------------------------------------------------------------------------------

    def _behind_writer(self, record: _Record, event: _Event, word: np.ndarray) -> np.ndarray:
        """Lanes whose word another thread wrote with nothing to order the two."""
        writer = record.writer[word]
        race = (writer != _NONE) & (writer != event.who.thread)
        if race.any():  # rarely: most words belong to one thread
            block, thread = np.divmod(writer - 1, self.threads)
            warp = block * self.warps_per_block + thread // WARP_SIZE + 1
            block += 1
            race &= ~((block == event.who.block) & (record.write_epoch[word] < event.who.epoch))
            race &= ~((warp == event.who.warp) & (record.write_time[word] < event.who.time))
        return race

    def _published(self, record: _Record, word: np.ndarray) -> np.ndarray:
        """Words whose writer has passed a fence since, or that an atomic wrote in a kernel with fences."""
        if self.fences is None:
            return np.zeros(word.shape, bool)
        return (self.fences[record.writer[word]] > record.write_fences[word]) | record.atomic[word]

    def _read(self, record: _Record, space: str, event: _Event, word: np.ndarray) -> None:
        race = self._behind_writer(record, event, word)
        if race.any() and space == "global":
            race &= ~self._published(record, word)
        if race.any():
            self._report("reads", "wrote", record, record.writer, record.write_site, space, event, word, race)
        record.read_site[word] = event.site.index
        if not self._mine(record.reader[word], event):
            self._add_readers(record, event, word)
        if self.ordered:
            record.read_epoch[word], record.read_time[word] = event.who.epoch, event.who.time

    @staticmethod
    def _mine(threads: np.ndarray, event: _Event) -> bool:
        """Is each word known to its lane's own thread alone? Then lanes share none either."""
        return bool((threads == event.who.thread).all())

    @staticmethod
    def _add_readers(record: _Record, event: _Event, word: np.ndarray) -> None:
        names = (
            (record.reader, event.who.thread),
            (record.reader_warp, event.who.warp),
            (record.reader_block, event.who.block),
        )
        old = record.reader[word]
        if (old == _NONE).all():
            for record_of, mine in names:
                record_of[word] = mine
            if (record.reader[word] == event.who.thread).all():
                return  # the first to read these words, and each lane its own
            old[:] = _NONE
        fresh = (old == _NONE) | (
            (record.reader_block[word] == event.who.block) & (record.read_epoch[word] < event.who.epoch)
        )
        for record_of, mine in names:
            record_of[word] = np.where(fresh | (record_of[word] == mine), mine, _SEVERAL)
            shared = record_of[word] != mine  # several lanes of this very access read the word
            record_of[word[shared]] = _SEVERAL

    def _write(self, record: _Record, space: str, event: _Event, word: np.ndarray, addresses, values) -> None:
        atomic = event.site.op == "atomic"
        race = self._behind_writer(record, event, word)
        if race.any():
            if atomic:
                race &= ~record.atomic[word]
            if space == "global":
                race &= ~self._published(record, word)
            race &= ~self._unchanged(event.site, space, addresses, values)
        if race.any():
            self._report("writes", "wrote", record, record.writer, record.write_site, space, event, word, race)
        reader = record.reader[word]
        race = (reader != _NONE) & (reader != event.who.thread)
        if race.any():
            race &= ~((record.reader_block[word] == event.who.block) & (record.read_epoch[word] < event.who.epoch))
            race &= ~((record.reader_warp[word] == event.who.warp) & (record.read_time[word] < event.who.time))
            if space == "global" and self.fences is not None:
                race[:] = False
            race &= ~self._unchanged(event.site, space, addresses, values)
        if race.any():
            self._report("writes", "read", record, record.reader, record.read_site, space, event, word, race)
        record.writer[word] = event.who.thread
        if not atomic:
            same_word = record.writer[word] != event.who.thread
            if same_word.any():
                self._one_value(record, space, event, word, same_word, values)
        if self.ordered:
            record.write_epoch[word], record.write_time[word] = event.who.epoch, event.who.time
        record.write_site[word] = event.site.index
        if self.atomics:
            record.atomic[word] = atomic
        if self.fences is not None:
            record.write_fences[word] = self.fences[event.who.thread]
        if reader.any():  # what warp and block read it no longer counts then
            record.reader[word] = _NONE

    def _unchanged(self, site, space: str, addresses: Addresses, values) -> np.ndarray | bool:
        """Lanes that write what is there already: harmless."""
        if values is None:
            return np.False_
        view, index = addresses.index(self.chunk.access.views[space][site.dtype], site.item, site.offset)
        same = view.take(index) == values[0]
        for k in range(1, site.count):
            same = same & (view[k:].take(index) == values[k])
        return same

    def _one_value(self, record: _Record, space: str, event: _Event, word, same_word, values) -> None:
        """Lanes of one store share a word: a race unless they write the same."""
        different = np.zeros(word.shape, bool)
        for value in values:  # lanes that share a word of an aligned access share all its words
            value = np.broadcast_to(value, word.shape)
            winner = np.zeros(record.words, value.dtype)
            winner[word] = value
            different |= winner[word] != value
        same_word &= different
        if same_word.any():
            self._report("writes", "writes", record, record.writer, None, space, event, word, same_word)

    def _report(
        self, does: str, did: str, record: _Record, others, sites, space: str, event: _Event, word, race
    ) -> None:
        place = int(np.argmax(race))
        thread, other = int(event.who.thread[place]) - 1, int(others[word[place]]) - 1
        at = int(word[place]) * self.word[space]
        site = event.site
        earlier = self.translation.sites[int(sites[word[place]])] if sites is not None else site
        chunk = self.chunk
        if space == "shared":
            at -= (thread // self.threads - chunk.first_block) * chunk.shared_stride
            what, name = f"byte {at} of shared memory", None
        else:
            name = record.allocation.name
            what = f"byte {at} of array `{name}`" if name else f"byte {at} of an array"
        who = "other threads" if other < 0 else f"thread {_numbers(chunk.thread_index(other))}"
        raise DataRace(
            f"race: thread {_numbers(chunk.thread_index(thread))} {does} {what}, which {who} {did} "
            f"at line {earlier.where.line}, and nothing orders the two",
            reason=_BARRIER if space == "shared" or other // self.threads == thread // self.threads else _NO_BARRIER,
            array=name,
            other_line=earlier.where.line,
            other_thread=chunk.thread_index(other) if other >= 0 else None,
            **chunk.where(site, thread - chunk.first_block * self.threads),
        )


_BARRIER = "Is a __syncthreads() missing between them (or a __syncwarp() within a warp)?"
_NO_BARRIER = (
    "Threads of different blocks cannot wait for each other: give each its own element, use an atomic, or start a "
    "second kernel."
)


def _numbers(index) -> str:
    block, thread = index
    return f"{thread} of block {block}"
