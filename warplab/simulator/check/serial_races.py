"""Adds what a single lane did in one run through a loop (`run.serial_runs`) to the records of race detection.

The loop goes on only while its accesses race with none: nobody else wrote the word of a load, and nobody else wrote or
read that of a store. So it is enough to record them afterwards, all at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warplab.simulator.check.race_records import LaneSnapshot, Record, RecordedAccess
from warplab.simulator.check.races import Races


class _Sites:
    """Stands for the site of a `RecordedAccess` whose lanes come from several sites, of one word each."""

    def __init__(self, sites: Sequence, index: np.ndarray, width: int) -> None:
        self.sites, self.index, self.width = sites, index, width


class _SerialReads(RecordedAccess):
    """Loads by one lane, one after another, as an access with as many lanes."""

    __slots__ = ()

    def site_at(self, place: int):
        return self.site.sites[int(self.site.index[place])]


def followed(races: Races, site, space: str) -> bool | None:
    """Are the accesses of a site recorded? None if they have to be examined one by one."""
    if space not in races.word:
        return False
    if races.clocks is not None or site.strong or site.flag or ".volatile" in site.text:
        return None
    if site.op == "load" and not races.written & {space, "generic"}:
        return False
    return True if site.item >= races.word[space] else None


def record_of(races: Races, space: str, allocation) -> Record:
    return races.shared if space == "shared" else races.allocations[allocation.address]


def add_serial(
    races: Races, record: Record, space: str, lane: int, word: np.ndarray, sites: np.ndarray, stores: np.ndarray
) -> None:
    """Record accesses of `lane`, in order: their words, the numbers of their sites, and which of them store."""
    written = np.flatnonzero(stores)
    # As a store examines all loads before it, only those after the last one remain to be examined.
    end = int(written[-1]) + 1 if written.size else 0
    reads = np.flatnonzero(~stores[:end])
    if reads.size:
        races._read(record, space, _reads(races, lane, word[reads], sites[reads], space), word[reads])
    if written.size:
        _write(races, record, lane, word[written], sites[written])
        latest = dict(zip(word[written].tolist(), written.tolist(), strict=True))
        again = [place for place in reads.tolist() if latest.get(int(word[place]), end) < place]
        if again:
            _be_reader(races, record, lane, word[again])
    if end < word.size:
        access = _reads(races, lane, word[end:], sites[end:], space)
        record.pending.append(access)
        races.pending_lanes += access.lanes


def _reads(races: Races, lane: int, word: np.ndarray, sites: np.ndarray, space: str) -> _SerialReads:
    by = LaneSnapshot(races.numbers, np.full(word.size, lane), races.epochs, races.times)
    of = _Sites(races.translation.sites, sites, races.word[space])
    return _SerialReads(of, by, word.size, 0, word, 0, 1)


def _write(races: Races, record: Record, lane: int, word: np.ndarray, sites: np.ndarray) -> None:
    chunk, thread = races.chunk, races.numbers.first_thread + lane
    record.writer[word], record.write_site[word] = thread, sites
    if races.ordered:
        record.write_epoch[word] = races.epochs[chunk.block_of[lane]]
        record.write_time[word] = races.times[chunk.warp_of[lane]]
    if races.atomics:
        record.atomic[word] = False
    if races.fences is not None:
        record.write_fences[word] = races.fences[thread]
    if record.was_read:
        record.reader[word] = 0


def _be_reader(races: Races, record: Record, lane: int, word: np.ndarray) -> None:
    numbers = races.numbers
    record.reader[word] = numbers.first_thread + lane
    record.reader_warp[word], record.reader_block[word] = numbers.warp[lane], numbers.block[lane]
