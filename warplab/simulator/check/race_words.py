"""When an access to a word races with those before it, and what is recorded of it then: the base of `Races`.

Machine code (`translate.machine_access`) does so for accesses that race with none; where they may, nothing is changed,
and NumPy looks at them again.
"""

import functools
import re
from typing import Any

import numpy as np

from warplab.simulator.check.operand_reads import OperandReads
from warplab.simulator.check.race_records import TIMES, GridNumbers, LaneSnapshot, Record, RecordedAccess
from warplab.simulator.check.race_report import race_error
from warplab.simulator.check.vector_clocks import WARP_BITS, Clocks
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.tensor_maps import PIECE
from warplab.simulator.observer import Observer
from warplab.simulator.translate import machine_access
from warplab.simulator.translate.machine_access import FIELDS, PLACE, F, P, fill, place_of
from warplab.simulator.translate.waiting_loops import used_registers

_REGISTER = re.compile(r"%\w+")
_BY_SEVERAL = 2  # of `Record.atomic`
_NONE, _SEVERAL = 0, -1  # threads, warps and blocks are numbered from 1, so that a record of zeros is empty
# Nanoseconds that NumPy takes to examine an access, and for each lane, roughly; those that must have been spent before
# code is linked that an earlier process has compiled, and before it is compiled.
_ACCESS, _LANE, _LINKING, _COMPILING = 3e4, 80.0, 5e7, 1.5e9


@functools.lru_cache(maxsize=64)
def _blind(translation: Any) -> list[bool]:
    """Tell of which sites nobody uses the result of an atomic operation, which tells a thread who came before it."""
    used, sites = used_registers(translation.blocks), translation.sites
    results = [_REGISTER.findall(s.text.partition("[")[0]) for s in sites]
    return [s.op == "atomic" and used.isdisjoint(of) for s, of in zip(sites, results, strict=True)]


class WordRaces(Observer):
    """Compares accesses with the records of their words. Threads are numbered through the whole grid."""

    numbers: GridNumbers
    shared: Record
    operands: OperandReads | None = None
    spent = 0.0  # nanoseconds in this process, roughly

    def __init__(self, translation: Any, threads: int, volatile_orders: bool) -> None:
        self.translation, self.threads = translation, threads
        self.warps_per_block = -(-threads // WARP_SIZE)
        self.cluster = 1  # blocks; those of one share what `clocks` know
        sites = translation.sites
        self.word = {
            space: min((s.item for s in sites if s.space in (space, "generic")), default=4)
            for space in ("shared", "global")
        }
        self.atomics = any(s.op == "atomic" for s in sites)
        self.blind = _blind(translation) if self.atomics else [False] * len(sites)
        self.clocks: Clocks | None = None
        self._stated: tuple[Any, ...] = (None,)  # whose numbers `_state` was last asked for, and what it holds of them
        # Sites whose accesses do not race with those of their own warp.
        self.volatile = np.array([".volatile" in s.text for s in sites] or [False])
        self.volatile_sites = self.volatile & volatile_orders
        self.any_volatile = bool(self.volatile_sites.any())
        self.volatile_beside_atomics = self.atomics and bool(self.volatile.any())
        self.ordered = False  # have barriers or warp syncs ordered anything: are epochs and times not all zero?
        # The number of the latest fence of each thread of the grid: of any scope, and wider than its block.
        self.fences: np.ndarray | None = None
        self.fence_epochs = np.zeros((2, 0), np.int32)  # of each block at its latest fence of either kind
        self.wide = False  # has any thread passed a fence wider than its block?

    def _words(self, site, space: str) -> int:
        return max(1, site.width // self.word[space])

    def _examine(
        self, record: Record, space: str, access: RecordedAccess, first=None, addresses=None, values=None
    ) -> None:
        """Compare an access with the records of its words, and record it: a store, or without addresses a load.

        `first`: its words, if they are known."""
        if first is None:
            first = access.word
        if self._examined(record, space, access, first, addresses is None):
            return
        if addresses is not None and self.operands is not None and space == "shared":
            self._after_operands(self.operands, access, first, addresses, values)
        for k in range(self._words(access.site, space)):
            word = first + k if k else first
            if addresses is None:
                self._read(record, space, access, word)
            else:
                self._write(record, space, access, word, addresses, values)

    def _examined(self, record: Record, space: str, access: RecordedAccess, word: np.ndarray, reads: bool) -> bool:
        """Do so by machine code. Returns False, with nothing changed, where that does not know or lanes may race."""
        site, by, atomic = access.site, access.by, not reads and access.site.op == "atomic"
        if not self.chunk.options.machine_code:
            return False
        why = self._left_to_numpy(site, by, reads, atomic)
        if why:
            self.chunk.launch.log[f"NumPy looked for races: {why}"] = None
            return False
        words = self._words(site, space)
        if WordRaces.spent < _LINKING or not (WordRaces.spent >= _COMPILING or machine_access.ready()):
            WordRaces.spent += words * (_ACCESS + _LANE * word.shape[0])
            return False
        examine, why = machine_access.examined()
        if why:
            self.chunk.launch.log[f"NumPy looked for races: {why}"] = None
            return False
        by.state = by.state or self._state(by)
        if record.place is None:
            record.place = np.zeros(len(PLACE), np.int64)
            fill(record.place, P, self.words_of(record, site, space))
            record.place[P["WORD_SHIFT"]] = 0  # words are in place of addresses
            if self.operands is not None and space == "shared":
                fill(record.place, P, self.operands.fields(self.word[space]))
        state, place = by.state[0], record.place
        state[F["ADDRESS"]], state[F["COUNT"]], state[F["ORDERED"]] = place_of(word), word.shape[0], self.ordered
        state[F["NOW"]] = access.now
        state[F["FENCES"]] = 0
        if self.fences is not None and self.clocks is None:
            state[F["FENCES"]], state[F["WIDE_FENCES"]] = map(place_of, self.fences)
            place[P["WRITE_FENCES"]], place[P["WRITE_WIDE"]] = map(place_of, (record.write_fences, record.write_wide))
        place[P["SITE"]], place[P["RACE_WORDS"]], place[P["LIMIT"]] = site.index, words, record.words - words
        place[P["IS_LOAD"]], place[P["IS_ATOMIC"]] = reads, atomic and 1 + self._is_blind(site)
        unrecorded = reads and self.operands is not None and multiplies(site)
        place[P["ENDS_READS"]], place[P["UNRECORDED"]] = self._ends_reads(site), unrecorded
        if examine(place_of(state), place_of(place)):
            return False
        record.was_read |= reads and not unrecorded
        return True

    def _ends_reads(self, site) -> bool:
        """Tell whether a write replaces all that wgmma has read, rather than leave some of it to other threads."""
        return site.width >= PIECE or self.any_volatile

    def _after_operands(self, operands: OperandReads, access: RecordedAccess, word, addresses, values) -> None:
        """Compare a write with the reads of wgmma before it."""
        start, lanes = word * self.word["shared"], access.by.thread - self.numbers.first_thread
        reader = operands.unaware(start, lanes, self._ends_reads(access.site))
        if reader is None:
            return
        race = reader >= 0
        if race.any():
            race &= ~self._unchanged(access.site, "shared", addresses, values)
        if race.any():
            self.shared.reader[word] = reader + self.numbers.first_thread
            self.shared.read_site[word] = operands.site[start // PIECE]
            readers = self.shared.reader, self.shared.read_site
            self._report("writes", "may still read", self.shared, *readers, "shared", access, word, race)

    def _left_to_numpy(self, site, by: LaneSnapshot, reads: bool, atomic: bool) -> str:
        """Return why machine code does not know an access; "" if it does."""
        if self.clocks is not None and self.clocks.warps > WARP_BITS:
            return f"clusters have more than {WARP_BITS} warps"
        if self.clocks is not None and by.numbers is not self.numbers:
            return "what earlier blocks loaded is looked at late"
        if reads and self.volatile_beside_atomics:
            return "there are volatile accesses and atomic ones"
        return "atomic operations order their own block alone" if atomic and ".cta" in site.text else ""

    def _state(self, by: LaneSnapshot) -> tuple[np.ndarray, ...]:
        """Return what `machine_access.FIELDS` holds of lanes, and the arrays that it refers to."""
        lane, numbers = by.lane, by.numbers
        if numbers is not self._stated[0]:
            block_of, warp_of = numbers.small
            arrays = {"BLOCK_OF": block_of, "WARP_OF": warp_of}
            if self.clocks is not None:
                known, chunk = self.clocks.known.arrays, self.chunk
                arrays |= {"LANE_OF": chunk.lane_of, "SYNCED": self.clocks.synced, "MET": self.clocks.met}
                arrays |= {name.upper(): array for name, array in known.items()}
            state = np.zeros(len(FIELDS), np.int64)
            fill(state, F, {**arrays, **self.fields_of(numbers)})
            state[F["COLUMNS"]] = 0 if self.clocks is None else self.clocks.warps
            self._stated = numbers, state, *arrays.values()
        state, own = self._stated[1].copy(), {"LIST": lane, "OLD": np.empty_like(lane)}
        fill(state, F, {**own, "EPOCHS": by.epochs, "TIMES": by.times})
        return state, *own.values(), *self._stated[2:]

    def fields_of(self, numbers: GridNumbers) -> dict[str, int]:
        """Return what `machine_access.FIELDS` holds of a chunk, and does not change."""
        return {
            "FIRST_THREAD": numbers.first_thread,
            "FIRST_BLOCK": numbers.first_block,
            "FIRST_WARP": numbers.first_warp,
            "LANES": numbers.lanes,
            "SITE_BYTES": np.min_scalar_type(len(self.translation.sites)).itemsize,
        }

    def words_of(self, record: Record, site, space: str) -> dict[str, Any]:
        """Return what `machine_access.PLACE` holds of a record."""
        size = self.word[space]
        return {
            "WRITER": record.writer,
            "READER": record.reader,
            "READER_WARP": record.reader_warp,
            "READER_BLOCK": record.reader_block,
            "WRITE_EPOCH": record.write_epoch,
            "WRITE_TIME": record.write_time,
            "READ_EPOCH": record.read_epoch,
            "READ_TIME": record.read_time,
            "WRITE_SITE": record.write_site,
            "READ_SITE": record.read_site,
            "ATOMIC": record.atomic if self.atomics else 0,
            "WORD_SHIFT": size.bit_length() - 1,
            "RACE_WORDS": self._words(site, space),
            **({name.upper(): getattr(record, name) for name in TIMES} if self.clocks is not None else {}),
            "READER_CLUSTER": record.reader_block if self.cluster == 1 else record.reader_cluster,
        }

    def _in_lockstep(self, access: RecordedAccess, earlier_sites: np.ndarray) -> np.ndarray | np.bool:
        """Return the lanes whose access, or the one before it, `volatile` excuses within a warp."""
        return self.volatile_sites[access.site.index] | self.volatile_sites[earlier_sites]

    def _behind_writer(self, record: Record, access: RecordedAccess, word: np.ndarray) -> np.ndarray:
        """Return the lanes whose word another thread wrote, with nothing to order the two."""
        writer = record.writer[word]
        race = (writer != _NONE) & (writer != access.by.thread)
        if self.atomics:
            race |= record.atomic[word] == _BY_SEVERAL
        if race.any():  # rarely: most words belong to one thread
            block, thread = np.divmod(writer - 1, self.threads)
            warp = block * self.warps_per_block + thread // WARP_SIZE + 1
            block += 1
            if self.ordered:
                race &= ~((block == access.by.block) & (record.write_epoch[word] < access.by.epoch))
                race &= ~((warp == access.by.warp) & (record.write_time[word] < access.by.time))
            if self.any_volatile:
                race &= ~((warp == access.by.warp) & self._in_lockstep(access, record.write_site[word]))
            if self.clocks is not None and race.any():
                race &= ~self._knows(self.clocks, access, writer, block, record.written_at[word])
        return race

    def _knows(
        self, clocks: Clocks, access: RecordedAccess, others: np.ndarray, blocks: np.ndarray, time: np.ndarray
    ) -> np.ndarray:
        """Return the lanes that know what threads `others` of `blocks` did at `time`."""
        first = self.numbers.first_thread
        same = self._cluster_of(blocks) == self._cluster_of(access.by.block)
        return same & clocks.knows(access.by.thread - first, np.where(same, others - first, 0), time)

    def _cluster_of(self, blocks: np.ndarray) -> np.ndarray:
        """Return the clusters of blocks, both numbered through the grid from 1."""
        return blocks if self.cluster == 1 else (blocks - 1) // self.cluster + 1

    def _published(self, record: Record, access: RecordedAccess, word: np.ndarray) -> np.ndarray:
        """Return the words whose writer, or after a barrier a thread of its block, has passed a fence since that
        reaches the access, or that an atomic wrote in a kernel with such fences."""
        if self.fences is None:
            return np.zeros(word.shape, bool)
        writer = record.writer[word]
        block = np.where(writer > 0, (writer - 1) // self.threads + 1, 0)
        any_fence, wide = (
            (fences[writer] > before[word]) | (record.write_epoch[word] < epochs[block])
            for fences, before, epochs in zip(
                self.fences, (record.write_fences, record.write_wide), self.fence_epochs, strict=True
            )
        )
        here = block == access.by.block
        return np.where(here, any_fence, wide) | ((record.atomic[word] != 0) & (here | self.wide))

    def _read(self, record: Record, space: str, access: RecordedAccess, word: np.ndarray) -> None:
        race = self._behind_writer(record, access, word)
        if race.any() and space == "global":
            race &= ~self._published(record, access, word)
        if self.atomics and self.volatile[access.site.index]:  # as a loop that compares and swaps begins
            race &= record.atomic[word] == 0
        if race.any():
            self._report("reads", "wrote", record, record.writer, record.write_site, space, access, word, race)
        if self.operands is not None and multiplies(access.site):  # which keeps these reads
            return
        record.was_read = True
        if self.volatile_beside_atomics:
            self._read_plainly(record, access, word)
        else:
            record.read_site[word] = access.site.index
        if not self._mine(record.reader[word], access):
            self._add_readers(record, access, word)
        if self.clocks is not None:
            record.read_at[word] = access.now
        elif self.ordered:
            record.read_epoch[word], record.read_time[word] = access.by.epoch, access.by.time

    def _behind_readers(self, record: Record, access: RecordedAccess, word: np.ndarray) -> np.ndarray:
        """Return the lanes that barriers put after all who read their word."""
        behind = record.reader[word] == _NONE
        if self.ordered:
            behind |= (record.reader_block[word] == access.by.block) & (record.read_epoch[word] < access.by.epoch)
            behind |= (record.reader_warp[word] == access.by.warp) & (record.read_time[word] < access.by.time)
        return behind

    def _read_plainly(self, record: Record, access: RecordedAccess, word: np.ndarray) -> None:
        """Record where words were read and who read them without `volatile`, which later volatile loads do not hide."""
        before = np.where(self._behind_readers(record, access, word), _NONE, self._plain_reader(record, word))
        if self.volatile[access.site.index]:
            record.plain_reader[word] = before
            word = word[before == _NONE]
        else:
            mine = access.by.thread
            record.plain_reader[word] = np.where((before == _NONE) | (before == mine), mine, _SEVERAL)
            record.plain_reader[word[record.plain_reader[word] != mine]] = _SEVERAL
        record.read_site[word] = access.site.index

    def _plain_reader(self, record: Record, word: np.ndarray) -> np.ndarray:
        """Return who read words without `volatile`: machine code, which reads so alone, records `reader` only."""
        plain = record.plain_reader[word]
        return np.where((plain == _NONE) & ~self.volatile[record.read_site[word]], record.reader[word], plain)

    @staticmethod
    def _mine(threads: np.ndarray, access: RecordedAccess) -> bool:
        """Tell whether only each lane's own thread touched its word. Then lanes share no word either."""
        return bool((threads == access.by.thread).all())

    def _add_readers(self, record: Record, access: RecordedAccess, word: np.ndarray) -> None:
        names = (
            (record.reader, access.by.thread),
            (record.reader_warp, access.by.warp),
            (record.reader_block, access.by.block),
            *([(record.reader_cluster, self._cluster_of(access.by.block))] if self.cluster > 1 else []),
        )
        old = record.reader[word]
        if (old == _NONE).all():
            for record_of, mine in names:
                record_of[word] = mine
            self._add_reading_warps(record, access, word, None)
            if (record.reader[word] == access.by.thread).all():
                return  # these lanes are the first readers, and each has its own word
            old[:] = _NONE
        fresh = self._behind_readers(record, access, word)
        for record_of, mine in names:
            record_of[word] = np.where(fresh | (record_of[word] == mine), mine, _SEVERAL)
            shared = record_of[word] != mine  # several lanes of this access read the word
            record_of[word[shared]] = _SEVERAL
        if (old != _NONE).any():
            self._add_reading_warps(record, access, word, fresh)

    def _add_reading_warps(
        self, record: Record, access: RecordedAccess, word: np.ndarray, fresh: np.ndarray | None
    ) -> None:
        """Add readers. `fresh`: lanes that read after all others of their word since it was written; None for all.

        Of the warps in `read_by`, those in `again_by` last read at `again_at` or later, the others at `first_read_at`
        or later."""
        if self.clocks is None:
            return
        first = word if fresh is None else word[fresh]
        record.first_read_at[first], record.read_by[first], record.again_by[first] = access.now, 0, 0
        column = (access.by.warp - 1) % (self.warps_per_block * self.cluster)
        bits = np.uint32(1) << (column % WARP_BITS).astype(np.uint32)
        np.bitwise_or.at(record.read_by, word, bits)
        if fresh is None:
            return
        word = word[~fresh]
        record.again_at[word[record.again_by[word] == 0]] = access.now
        np.bitwise_or.at(record.again_by, word, bits[~fresh])
        word = word[record.again_by[word] == record.read_by[word]]
        record.first_read_at[word], record.again_by[word] = record.again_at[word], 0

    def _write(self, record: Record, space: str, access: RecordedAccess, word: np.ndarray, addresses, values) -> None:
        atomic = access.site.op == "atomic"
        race = self._behind_writer(record, access, word)
        beside = race & (record.atomic[word] != 0) if atomic and self._is_blind(access.site) else None
        if race.any():
            if atomic:
                race &= (record.atomic[word] == 0) | self._apart(record, access, word)
            if space == "global":
                race &= ~self._published(record, access, word)
            race &= ~self._unchanged(access.site, space, addresses, values)
        if race.any():
            self._report("writes", "wrote", record, record.writer, record.write_site, space, access, word, race)
        if record.was_read:
            self._after_readers(record, space, access, word, addresses, values)
        record.writer[word] = access.by.thread
        if atomic and (apart := self._apart(record, access, word)).any():
            sites = record.write_site
            sites[word] = access.site.index
            self._report("writes", "writes", record, record.writer, sites, space, access, word, apart)
        if not atomic:
            same_word = record.writer[word] != access.by.thread
            if self.volatile_sites[access.site.index] or (self.chunk.options.replicas and space == "shared"):
                winner = record.writer[word] - 1
                block, thread = np.divmod(winner, self.threads)
                same_word &= block * self.warps_per_block + thread // WARP_SIZE + 1 != access.by.warp
            if same_word.any():
                self._one_value(record, space, access, word, same_word, values)
        record.write_site[word] = access.site.index
        if self.clocks is not None:
            record.written_at[word] = access.now
        elif self.ordered:
            record.write_epoch[word], record.write_time[word] = access.by.epoch, access.by.time
        if self.atomics:
            record.atomic[word] = atomic
            if beside is not None:
                record.atomic[word[beside | (record.writer[word] != access.by.thread)]] = _BY_SEVERAL
        if self.fences is not None and self.clocks is None:
            record.write_fences[word], record.write_wide[word] = self.fences[:, access.by.thread]

    def _is_blind(self, site) -> bool:
        return self.clocks is None and self.blind[site.index]

    def _apart(self, record: Record, access: RecordedAccess, word: np.ndarray) -> np.ndarray:
        """Return the lanes whose atomic operation holds for their block alone, and whose word another block wrote."""
        text = access.site.text
        return (".cta." in text or ".cta " in text) & ((record.writer[word] - 1) // self.threads + 1 != access.by.block)

    def _after_readers(
        self, record: Record, space: str, access: RecordedAccess, word: np.ndarray, addresses, values
    ) -> None:
        """Compare a write with the reads before it, which then no longer count."""
        others, reader = record.reader, record.reader[word]
        race = (reader != _NONE) & (reader != access.by.thread)
        if race.any():
            race &= ~self._behind_readers(record, access, word)
            if self.any_volatile:
                same = record.reader_warp[word] == access.by.warp
                race &= ~(same & self._in_lockstep(access, record.read_site[word]))
            if self.clocks is not None and race.any():
                race &= ~self._knows_readers(self.clocks, record, access, word, reader)
            if space == "global" and self.fences is not None:
                race &= (record.reader_block[word] != access.by.block) & (not self.wide)
            if access.site.op == "atomic" and self.volatile_beside_atomics:
                others = record.plain_reader
                others[word] = plain = self._plain_reader(record, word)
                race &= (plain != _NONE) & (plain != access.by.thread)
            race &= ~self._unchanged(access.site, space, addresses, values)
        if race.any():
            self._report("writes", "read", record, others, record.read_site, space, access, word, race)
        if reader.any():  # the reading warp and block no longer count either
            record.reader[word] = _NONE

    def _knows_readers(
        self, clocks: Clocks, record: Record, access: RecordedAccess, word: np.ndarray, reader: np.ndarray
    ) -> np.ndarray:
        """Return the lanes that know of all reads of their word."""
        blocks = record.reader_block[word]
        lanes, time = access.by.thread - self.numbers.first_thread, record.read_at[word]
        again = record.again_by[word]
        several = clocks.knows_warps(lanes, record.read_by[word] & ~again, record.first_read_at[word])
        if again.any():
            several &= clocks.knows_warps(lanes, again, record.again_at[word])
        one = self._knows(clocks, access, reader, np.where(reader > 0, blocks, 0), time)
        own_warp = record.reader_warp[word] == access.by.warp
        own_warp &= time < clocks.met[self.chunk.warp_of[lanes]]
        same = blocks == access.by.block
        if self.cluster > 1:
            same = record.reader_cluster[word] == self._cluster_of(access.by.block)
        return own_warp | (same & np.where(reader == _SEVERAL, several, one))

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
        """Report lanes of one store that share a word, unless they write the same value.

        An mbarrier has no `values`: PTX leaves undefined what becomes of one that is initialised twice."""
        different = np.full(word.shape, values is None)
        for value in values or ():  # lanes that share one word of an aligned access share all its words
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
        at, site = word[place], access.site
        thread, other = int(access.by.thread[place]), int(others[at])
        raise race_error(
            self.chunk,
            (does, did),
            threads=(thread - 1, (_SEVERAL if other == thread and did == "wrote" else other) - 1),
            sites=(site, site if sites is None else self.translation.sites[int(sites[at])]),
            allocation=None if space == "shared" else record.allocation,
            offset=int(at) * self.word[space],
            readers_block=int(record.reader_block[at]) - 1,
            reason=reason,
        )


def multiplies(site) -> bool:
    """Tell whether a site reads operands of wgmma."""
    return site.text.startswith("wgmma")
