"""What `races` keeps: accesses that are still to be looked at, and for each word who touched it last."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Who(NamedTuple):
    """Lanes at one time, an int32 entry each: thread, block and warp in the grid, epoch of the block, time of the warp.

    One serves all accesses of all lanes between two barriers.
    """

    thread: np.ndarray
    block: np.ndarray
    warp: np.ndarray
    epoch: np.ndarray
    time: np.ndarray


class Event:
    """An access by `who`. The words of the lanes' first bytes are found when they are asked for: most never are."""

    __slots__ = ("_factor", "_places", "_shift", "now", "site", "who")

    def __init__(self, site, who: Who, now: int, places: np.ndarray, shift: int, factor: int) -> None:
        self.site, self.who, self.now = site, who, now
        self._places, self._shift, self._factor = places, shift, factor

    @property
    def word(self) -> np.ndarray:
        word = self._places + self._shift
        if self._factor != 1:
            word *= self._factor
        lanes = self.who.thread.shape[0]
        return word if word.shape[0] == lanes else np.repeat(word, lanes)


class Record:
    """Who touched each word of an allocation, or of a chunk's shared memory. Arrays are made at the first store."""

    def __init__(self, words: int, allocation=None) -> None:
        self.words, self.allocation = words, allocation
        self.stored = False
        self.pending: list[Event] = []

    def make(self, clocks: bool) -> None:
        if self.stored:
            return
        self.stored = True
        if clocks:  # when words were written, last read, and first read by which warps of the reader's block
            self.written_at, self.read_at, self.first_read_at = np.zeros((3, self.words), np.int32)
            self.read_by = np.zeros(self.words, np.uint32)
        # Zeros take host memory only where they are overwritten, so that a large array touched in part costs little.
        self.writer, self.reader, self.reader_warp, self.reader_block = np.zeros((4, self.words), np.int32)
        self.write_epoch, self.write_time, self.write_site, self.write_fences = np.zeros((4, self.words), np.int32)
        self.read_epoch, self.read_time, self.read_site = np.zeros((3, self.words), np.int32)
        self.atomic = np.zeros(self.words, bool)
