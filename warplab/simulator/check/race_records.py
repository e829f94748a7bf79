"""What `races` keeps: accesses that are still to be looked at, and for each word who touched it last.

It is kept small: what a launch keeps of its earlier chunks takes the processor's cache from the later ones.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np


class Numbers:
    """Thread, block and warp in the grid of each lane of a chunk, from 1 on, int32 arrays."""

    def __init__(self, chunk, warps_per_block: int) -> None:
        self.first_thread = chunk.first_block * chunk.threads + 1
        self._lanes = chunk.lanes
        self._first_block, self._first_warp = chunk.first_block + 1, chunk.first_block * warps_per_block + 1
        self.block_of, self.warp_of = chunk.block_of, chunk.warp_of  # in the chunk, from 0 on

    @cached_property
    def thread(self) -> np.ndarray:
        return np.arange(self.first_thread, self.first_thread + self._lanes, dtype=np.int32)

    @cached_property
    def block(self) -> np.ndarray:
        return (self.block_of + self._first_block).astype(np.int32)

    @cached_property
    def warp(self) -> np.ndarray:
        return (self.warp_of + self._first_warp).astype(np.int32)


class Who:
    """Lanes at one time, an int32 entry each: thread, block and warp in the grid, epoch of the block, time of the warp.

    One serves all accesses of all lanes between two barriers. `lanes`: None for all of the chunk; `epochs`, `times`:
    of the chunk's blocks and warps, which must not change. The arrays are made when they are asked for.
    """

    def __init__(self, numbers: Numbers, lanes: np.ndarray | None, epochs: np.ndarray, times: np.ndarray) -> None:
        self._numbers, self._lanes, self._epochs, self._times = numbers, lanes, epochs, times
        self._lowest, self._resting = 0, False

    def _of_lanes(self, values: np.ndarray) -> np.ndarray:
        return values if self._lanes is None else values[self._lowest :][self._lanes]

    @cached_property
    def thread(self) -> np.ndarray:
        return self._of_lanes(self._numbers.thread)

    @cached_property
    def block(self) -> np.ndarray:
        return self._of_lanes(self._numbers.block)

    @cached_property
    def warp(self) -> np.ndarray:
        return self._of_lanes(self._numbers.warp)

    @cached_property
    def epoch(self) -> np.ndarray:
        return self._epochs[self._of_lanes(self._numbers.block_of)]

    @cached_property
    def time(self) -> np.ndarray:
        return self._times[self._of_lanes(self._numbers.warp_of)]

    def rest(self, smaller: Smaller) -> None:
        """Drop the arrays for now."""
        for kept in (self, self._numbers):
            for name in ("thread", "block", "warp", "epoch", "time"):
                kept.__dict__.pop(name, None)
        if self._lanes is not None and not self._resting:
            self._lanes, self._lowest = smaller.of(self._lanes)
            self._resting = True


class Event:
    """An access by `lanes` lanes, `who`. The words of their first bytes are found when they are asked for: most never
    are."""

    __slots__ = ("_factor", "_lowest", "_places", "_shift", "lanes", "now", "site", "who")

    def __init__(self, site, who: Who, lanes: int, now: int, places: np.ndarray, shift: int, factor: int) -> None:
        self.site, self.who, self.lanes, self.now = site, who, lanes, now
        self._places, self._lowest, self._shift, self._factor = places, 0, shift, factor

    @property
    def word(self) -> np.ndarray:
        word = np.add(self._places, self._lowest + self._shift, dtype=np.int64)
        if self._factor != 1:
            word *= self._factor
        return word if word.shape[0] == self.lanes else np.repeat(word, self.lanes)

    def rest(self, smaller: Smaller) -> None:
        """Its chunk has ended: take less memory."""
        self.who.rest(smaller)
        self._places, self._lowest = smaller.of(self._places)


class Smaller:
    """Arrays of integers in the smallest unsigned type that holds them, less the lowest: one for each."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[np.ndarray, np.ndarray, int]] = {}  # with the array itself, which keeps its `id`

    def of(self, values: np.ndarray) -> tuple[np.ndarray, int]:
        """The smaller array, and the lowest value."""
        if id(values) not in self._known:
            lowest = int(values.min())
            small = (values - lowest).astype(np.min_scalar_type(int(values.max()) - lowest))
            self._known[id(values)] = values, small, lowest
        return self._known[id(values)][1:]


class Record:
    """Who touched each word of an allocation, or of a chunk's shared memory: arrays, made when they are asked for."""

    _DTYPES: ClassVar[dict[str, type]] = {
        # When words were written, last read, and first read by which warps of the reader's block; for `clocks`.
        **dict.fromkeys(("written_at", "read_at", "first_read_at"), np.int32),
        "read_by": np.uint32,
        **dict.fromkeys(("writer", "reader", "reader_warp", "reader_block"), np.int32),
        **dict.fromkeys(("write_epoch", "write_time", "write_fences", "read_epoch", "read_time"), np.int32),
        "atomic": bool,
    }

    def __init__(self, words: int, sites: int, allocation=None) -> None:
        self.words, self.allocation = words, allocation
        self._dtypes = self._DTYPES | dict.fromkeys(("write_site", "read_site"), np.min_scalar_type(sites))
        self.stored = self.was_read = False
        self.pending: list[Event] = []
        self._resting = 0  # so many of them

    def __getattr__(self, name: str) -> np.ndarray:
        """An array of zeros that nobody asked for before. Zeros take host memory only where they are overwritten."""
        if name not in self._dtypes:
            raise AttributeError(name)
        made = np.zeros(self.words, self._dtypes[name])
        setattr(self, name, made)
        return made

    @property
    def lanes(self) -> int:
        """Loads noted, counted in lanes."""
        return sum(event.lanes for event in self.pending)

    def forget(self) -> None:
        """What is noted was looked at, or need not be."""
        self.pending.clear()
        self._resting = 0

    def rest(self, smaller: Smaller) -> None:
        """A chunk has ended: what is noted of it stays for long."""
        for event in self.pending[self._resting :]:
            event.rest(smaller)
        self._resting = len(self.pending)
