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

_NONE, _SEVERAL = -1, -2
_PENDING_LANES = 1 << 22  # loads noted at most, counted in lanes


class _Event(NamedTuple):
    """An access of a group, an entry a lane: global thread, block, warp, word of its first byte, epoch, warp time."""

    site: object
    thread: np.ndarray
    block: np.ndarray
    warp: np.ndarray
    word: np.ndarray
    epoch: np.ndarray
    time: np.ndarray


class _Record:
    """Who touched each word of an allocation, or of a chunk's shared memory. Arrays are made at the first store."""

    def __init__(self, words: int, allocation=None) -> None:
        self.words, self.allocation = words, allocation
        self.stored = False
        self.pending: list[_Event] = []
        self.pending_lanes = 0

    def make(self) -> None:
        if self.stored:
            return
        self.stored = True
        self.writer, self.reader, self.reader_warp, self.reader_block = np.full((4, self.words), _NONE, np.int32)
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
        self.fences: np.ndarray | None = None  # fences passed by each thread of the grid
        self.allocations: dict[int, _Record] = {}

    def start(self, chunk) -> None:
        """A new chunk of blocks: its shared memory is new, its blocks have passed no barrier."""
        self.chunk = chunk
        self.epochs = np.zeros(chunk.blocks, np.int32)
        self.times = np.zeros(chunk.warps, np.int32)
        self.epoch_stored = False  # a store to shared memory since the last barrier of all blocks
        self.shared = _Record(chunk.access.shared.nbytes // self.word["shared"])

    def finish(self) -> None:
        """The chunk has ended."""
        self._flush(self.shared, "shared")
        for record in self.allocations.values():
            self._flush(record, "global")

    # -- what orders accesses --------------------------------------------------------------------------------------

    def barrier(self, lanes) -> None:
        """The blocks of these lanes (None: all blocks of the chunk) have passed a barrier."""
        if lanes is not None:
            self._flush(self.shared, "shared")
            self.epochs[np.unique(self.chunk.block_of[lanes])] += 1
            return
        if self.epoch_stored:
            self._flush(self.shared, "shared")
            self.epoch_stored = False
        self.shared.pending.clear()
        self.shared.pending_lanes = 0
        self.epochs += 1

    def sync_warp(self, lanes) -> None:
        """The lanes have passed a `__syncwarp`."""
        self._flush(self.shared, "shared")
        self.times[np.unique(self.chunk.warp_of if lanes is None else self.chunk.warp_of[lanes])] += 1

    def fence(self, lanes) -> None:
        """The lanes have passed a memory fence."""
        if self.fences is None:
            self.fences = np.zeros(self.blocks * self.threads, np.int32)
        self.fences[self._threads(lanes)] += 1

    # -- accesses --------------------------------------------------------------------------------------------------

    def load(self, site, space: str, addresses: Addresses, lanes, allocation) -> None:
        if site.strong or not self.written & {space, "generic"}:
            return
        record, event = self._event(site, space, addresses, lanes, allocation)
        if record is None:
            return
        record.pending.append(event)
        record.pending_lanes += event.thread.shape[0]
        if record.pending_lanes > _PENDING_LANES:
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
        for k in range(self._words(site, space)):
            self._write(record, space, event, event.word + k, addresses, values)

    def _words(self, site, space: str) -> int:
        return max(1, site.width // self.word[space])

    def _event(self, site, space: str, addresses: Addresses, lanes, allocation) -> tuple[_Record | None, _Event | None]:
        chunk, size = self.chunk, self.word[space]
        if space == "shared":
            record, start = self.shared, 0
        elif allocation is None:  # the lanes' addresses lie in several allocations: not followed
            return None, None
        else:
            start = allocation.address
            record = self.allocations.get(start)
            if record is None:
                record = self.allocations[start] = _Record(-(-allocation.nbytes // size), allocation)
        word = (addresses.at(site.offset).view(np.int64) - start) >> (size.bit_length() - 1)
        block, warp = chunk.block_of, chunk.warp_of
        if lanes is not None:
            block, warp = block[lanes], warp[lanes]
        thread = self._threads(lanes)
        if word.shape[0] < thread.shape[0]:
            word = np.repeat(word, thread.shape[0])
        first = chunk.first_block
        epoch, time = self.epochs[block], self.times[warp]
        return record, _Event(site, thread, block + first, warp + first * self.warps_per_block, word, epoch, time)

    def _threads(self, lanes) -> np.ndarray:
        return (self.chunk.all_lanes if lanes is None else lanes) + self.chunk.first_block * self.threads

    def _flush(self, record: _Record, space: str) -> None:
        """Compare the noted loads with the writes before them, and record them for the writes to come."""
        if record.stored:
            for event in record.pending:
                for k in range(self._words(event.site, space)):
                    self._read(record, space, event, event.word + k)
            record.pending.clear()
            record.pending_lanes = 0

    # -- words -----------------------------------------------------------------------------------------------------

    def _behind_writer(self, record: _Record, event: _Event, word: np.ndarray) -> np.ndarray:
        """Lanes whose word another thread wrote with nothing to order the two."""
        writer = record.writer[word]
        race = (writer != _NONE) & (writer != event.thread)
        if race.any():  # rarely: most words belong to one thread
            block = writer // self.threads
            warp = block * self.warps_per_block + writer % self.threads // WARP_SIZE
            race &= ~((block == event.block) & (record.write_epoch[word] < event.epoch))
            race &= ~((warp == event.warp) & (record.write_time[word] < event.time))
        return race

    def _published(self, record: _Record, word: np.ndarray) -> np.ndarray:
        """Words whose writer has passed a fence since, or that an atomic wrote in a kernel with fences."""
        if self.fences is None:
            return np.zeros(word.shape, bool)
        return (self.fences[np.maximum(record.writer[word], 0)] > record.write_fences[word]) | record.atomic[word]

    def _read(self, record: _Record, space: str, event: _Event, word: np.ndarray) -> None:
        race = self._behind_writer(record, event, word)
        if race.any() and space == "global":
            race &= ~self._published(record, word)
        if race.any():
            self._report("reads", "wrote", record, record.writer, record.write_site, space, event, word, race)
        record.read_site[word] = event.site.index
        if not self._mine(record.reader[word], event):
            self._add_readers(record, event, word)
        record.read_epoch[word], record.read_time[word] = event.epoch, event.time

    @staticmethod
    def _mine(threads: np.ndarray, event: _Event) -> bool:
        """Is each word known to its lane's own thread alone? Then lanes share none either."""
        return bool((threads == event.thread).all())

    @staticmethod
    def _add_readers(record: _Record, event: _Event, word: np.ndarray) -> None:
        names = (
            (record.reader, event.thread),
            (record.reader_warp, event.warp),
            (record.reader_block, event.block),
        )
        old = record.reader[word]
        if (old == _NONE).all():
            for record_of, mine in names:
                record_of[word] = mine
            if (record.reader[word] == event.thread).all():
                return  # the first to read these words, and each lane its own
            old[:] = _NONE
        fresh = (old == _NONE) | ((record.reader_block[word] == event.block) & (record.read_epoch[word] < event.epoch))
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
        race = (reader != _NONE) & (reader != event.thread)
        if race.any():
            race &= ~((record.reader_block[word] == event.block) & (record.read_epoch[word] < event.epoch))
            race &= ~((record.reader_warp[word] == event.warp) & (record.read_time[word] < event.time))
            if space == "global" and self.fences is not None:
                race[:] = False
            race &= ~self._unchanged(event.site, space, addresses, values)
        if race.any():
            self._report("writes", "read", record, record.reader, record.read_site, space, event, word, race)
        record.writer[word] = event.thread
        if not atomic:
            same_word = record.writer[word] != event.thread
            if same_word.any():
                self._one_value(record, space, event, word, same_word, values)
        record.write_epoch[word], record.write_time[word] = event.epoch, event.time
        record.write_site[word] = event.site.index
        record.atomic[word] = atomic
        if self.fences is not None:
            record.write_fences[word] = self.fences[event.thread]
        record.reader[word] = record.reader_warp[word] = record.reader_block[word] = _NONE

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
        thread, other = int(event.thread[place]), int(others[word[place]])
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
