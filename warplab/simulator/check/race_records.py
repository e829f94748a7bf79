"""What `races` records: accesses that it still has to examine, and for each word who touched it last.

Records are kept small, as those of earlier chunks take the processor's cache from later ones.
"""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from warplab.simulator.translate.waiting_loops import turns_on_memory

# For `vector_clocks`: when words were written, last read, first and again, and by which warps of the cluster.
TIMES: dict[str, type] = dict.fromkeys(("written_at", "read_at", "first_read_at", "again_at"), np.int32)
TIMES |= dict.fromkeys(("read_by", "again_by"), np.uint32)
# With clocks an epoch, a warp's time and a fence are numbered by when they began, and the time of an access tells all.
_IN_TIME = dict.fromkeys(("write_epoch", "write_time", "write_fences", "write_wide"), "written_at")
_IN_TIME |= dict.fromkeys(("read_epoch", "read_time"), "read_at")


class GridNumbers:
    """The thread, block and warp of each lane of a chunk, numbered through the grid from 1, as int32 arrays."""

    def __init__(self, chunk, warps_per_block: int) -> None:
        self.first_thread = chunk.first_block * chunk.threads + 1
        self.lanes = chunk.lanes
        self.first_block, self.first_warp = chunk.first_block + 1, chunk.first_block * warps_per_block + 1
        self.block_of, self.warp_of = chunk.block_of, chunk.warp_of  # in the chunk, from 0 on
        self.small = chunk.geometry.small

    @cached_property
    def thread(self) -> np.ndarray:
        return np.arange(self.first_thread, self.first_thread + self.lanes, dtype=np.int32)

    @cached_property
    def block(self) -> np.ndarray:
        return (self.block_of + self.first_block).astype(np.int32)

    @cached_property
    def warp(self) -> np.ndarray:
        return (self.warp_of + self.first_warp).astype(np.int32)


class LaneSnapshot:
    """Lanes at one time: thread, block and warp in the grid, epoch of the block, time of the warp, int32 per lane.

    One snapshot serves all accesses by all lanes between two barriers. `lanes`: None for all of the chunk. `epochs`,
    `times`: those of the chunk's blocks and warps, which must not change. The arrays are made on demand.
    """

    def __init__(self, numbers: GridNumbers, lanes: np.ndarray | None, epochs: np.ndarray, times: np.ndarray) -> None:
        self.numbers, self.lanes, self.epochs, self.times = numbers, lanes, epochs, times
        self._lowest, self._compacted = 0, False
        self.state: tuple[np.ndarray, ...] = ()  # what `machine_access.FIELDS` holds of it, and what that refers to

    def _of_lanes(self, values: np.ndarray) -> np.ndarray:
        return values if self.lanes is None else values[self._lowest :][self.lanes]

    @cached_property
    def thread(self) -> np.ndarray:
        return self._of_lanes(self.numbers.thread)

    @cached_property
    def block(self) -> np.ndarray:
        return self._of_lanes(self.numbers.block)

    @cached_property
    def warp(self) -> np.ndarray:
        return self._of_lanes(self.numbers.warp)

    @property
    def lane(self) -> np.ndarray:
        """Return the numbers of the lanes in the chunk."""
        lanes = np.arange(self.numbers.lanes) if self.lanes is None else self.lanes
        return lanes.astype(np.int32) + np.int32(self._lowest)

    @cached_property
    def epoch(self) -> np.ndarray:
        return self.epochs[self._of_lanes(self.numbers.block_of)]

    @cached_property
    def time(self) -> np.ndarray:
        return self.times[self._of_lanes(self.numbers.warp_of)]

    def compact(self, narrowing: "Narrowing") -> None:
        """Drop the arrays until they are needed again."""
        self.state = ()
        for kept in (self, self.numbers):
            for name in ("thread", "block", "warp", "epoch", "time"):
                kept.__dict__.pop(name, None)
        if self.lanes is not None and not self._compacted:
            self.lanes, self._lowest = narrowing.of(self.lanes)
            self._compacted = True


class RecordedAccess:
    """An access by `lanes` lanes, `by`. Most accesses never need the words of their first bytes: computed on demand, as
    are the `places` themselves where these are a function."""

    __slots__ = ("_factor", "_lowest", "_places", "_shift", "by", "lanes", "now", "site")

    def __init__(self, site, by: LaneSnapshot, lanes: int, now: int, places: Any, shift: int, factor: int) -> None:
        self.site, self.by, self.lanes, self.now = site, by, lanes, now
        self._places, self._lowest, self._shift, self._factor = places, 0, shift, factor

    def repeats(self, earlier: "RecordedAccess") -> bool:
        """Tell whether the same threads have accessed the same before, with no barrier in between."""
        by, its = self.by, earlier.by
        same = self._places is earlier._places and self.site is earlier.site and by.lanes is its.lanes
        return same and by.epochs is its.epochs and by.times is its.times

    @property
    def kept(self) -> int:
        """Return how many places it keeps; a function of them takes up to 28 bytes for a warp (`WarpAddresses.few`)."""
        return self.lanes >> 3 if callable(self._places) else self.lanes

    @property
    def word(self) -> np.ndarray:
        places = self._places() if callable(self._places) else self._places
        word = np.add(places, self._lowest + self._shift, dtype=np.int64)
        if self._factor != 1:
            word *= self._factor
        return word if word.shape[0] == self.lanes else np.repeat(word, self.lanes)

    def compact(self, narrowing: "Narrowing") -> None:
        """Take less memory, as the chunk has ended."""
        self.by.compact(narrowing)
        if not callable(self._places):
            self._places, self._lowest = narrowing.of(self._places)


class Narrowing:
    """Stores arrays of integers in the smallest unsigned type, relative to their lowest value, each array once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[np.ndarray, np.ndarray, int]] = {}  # with the array itself, which keeps its `id`

    def of(self, values: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the narrow array, and the lowest value."""
        if id(values) not in self._known:
            lowest = int(values.min())
            small = (values - lowest).astype(np.min_scalar_type(int(values.max()) - lowest))
            self._known[id(values)] = values, small, lowest
        return self._known[id(values)][1:]


class Record:
    """Who touched each word of an allocation, or of a chunk's shared memory, in arrays made on demand."""

    _DTYPES: ClassVar[dict[str, type]] = {
        **TIMES,
        **dict.fromkeys(("writer", "reader", "reader_warp", "reader_block", "reader_cluster"), np.int32),
        "plain_reader": np.int32,
        **dict.fromkeys(("write_epoch", "write_time", "write_fences", "write_wide"), np.int32),
        **dict.fromkeys(("read_epoch", "read_time"), np.int32),
        "atomic": np.uint8,  # 1: written so; 2: by several threads that do not know of each other
    }

    def __init__(self, words: int, sites: int, allocation=None, timed: bool = False) -> None:
        self.words, self.allocation, self.timed = words, allocation, timed
        self._dtypes = self._DTYPES | dict.fromkeys(("write_site", "read_site"), np.min_scalar_type(sites))
        self.stored = self.was_read = False
        self.place: np.ndarray | None = None  # what `machine_access.PLACE` holds of it
        self.pending: list[RecordedAccess] = []
        self._compacted = 0  # how many of them are compact

    def __getattr__(self, name: str) -> np.ndarray:
        """Make an array of zeros on first use. Zeros take host memory only where they are overwritten."""
        if name not in self._dtypes:
            raise AttributeError(name)
        if self.timed and name in _IN_TIME:
            return getattr(self, _IN_TIME[name])
        made = np.zeros(self.words, self._dtypes[name])
        setattr(self, name, made)
        return made

    @property
    def kept(self) -> int:
        """Return how many places are kept of the recorded loads."""
        return sum(access.kept for access in self.pending)

    def forget(self) -> None:
        """Drop the recorded accesses, which have been examined or need not be."""
        self.pending.clear()
        self._compacted = 0

    def compact(self, narrowing: Narrowing) -> None:
        """Compact the recorded accesses of a chunk that has ended, as they stay for long."""
        for access in self.pending[self._compacted :]:
            access.compact(narrowing)
        self._compacted = len(self.pending)


LOCKSTEP_REASON = (
    "`volatile` does not make the lanes of a warp wait for one another: since compute capability 7.0 (2017) they need "
    "not run in lockstep. Put a __syncwarp() between."
)


def relies_on_it(translation) -> bool:
    """Return whether a kernel can rely on lockstep."""
    stores = [s for s in translation.sites if s.op == "store" and s.space in ("shared", "generic")]
    return not turns_on_memory(translation.blocks) and any(".volatile" in s.text for s in stores)


class Lockstep:
    """Lanes of a warp that rely on lockstep, with `volatile` in place of a `__syncwarp`, as in reductions before 2017:
    who wrote each of `words` words of a chunk's shared memory with a volatile store, and when.

    A volatile load of shared memory that reads what another lane of its warp wrote with a volatile store, with no
    barrier and no `__syncwarp` between them, is a race. Kernels with a loop that waits for memory (`turns_on_memory`)
    are exempt: their volatile words are flags, and what these guard may be volatile as well.
    """

    def __init__(self, words: int) -> None:
        self.writer, self.warp, self.epoch, self.time, self.site = np.zeros((5, words), np.int32)

    def store(self, access: RecordedAccess, word: np.ndarray, unchanged: np.ndarray) -> None:
        """Record a volatile store. `unchanged`: lanes that write what is there already."""
        new = np.broadcast_to(~unchanged, word.shape)
        by, word = access.by, word[new]
        self.writer[word], self.warp[word] = by.thread[new], by.warp[new]
        self.epoch[word], self.time[word] = by.epoch[new], by.time[new]
        self.site[word] = access.site.index

    def load(self, access: RecordedAccess, word: np.ndarray) -> np.ndarray:
        """Return the lanes that read what another lane of their warp wrote, with nothing to order the two."""
        by = access.by
        other = (self.writer[word] != by.thread) & (self.warp[word] == by.warp)
        return other & (self.epoch[word] == by.epoch) & (self.time[word] == by.time)
