"""Groups of lanes that stand at one place and run together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from .counters import WARP_SIZE

BANKS = 32  # of shared memory, 4 bytes wide


class Group:
    """Lanes that run together: sorted lane numbers, or None for all lanes of the chunk."""

    __slots__ = ("_active", "_breaks", "_warps", "chunk", "count", "lanes")

    def __init__(self, chunk, lanes: np.ndarray | None) -> None:
        self.chunk, self.lanes = chunk, lanes
        self.count = chunk.lanes if lanes is None else lanes.shape[0]
        self._warps = self._breaks = self._active = None

    @property
    def all_lanes(self) -> np.ndarray:
        """The lane numbers, sorted."""
        return self.chunk.all_lanes if self.lanes is None else self.lanes

    @property
    def whole(self) -> bool:
        """All lanes of the chunk, and its warps are all full."""
        return self.lanes is None and self.chunk.lanes == WARP_SIZE * self.chunk.warps

    @property
    def breaks(self) -> np.ndarray:
        """Places after which the next lane belongs to another warp."""
        if self._breaks is None:
            warps = self.chunk.warp_of if self.lanes is None else self.chunk.warp_of[self.lanes]
            self._breaks = np.flatnonzero(warps[1:] != warps[:-1])
        return self._breaks

    @property
    def warps(self) -> int:
        """Number of warps with a lane in the group."""
        if self._warps is None:
            self._warps = self.chunk.warps if self.lanes is None else self.breaks.shape[0] + 1
        return self._warps

    @property
    def active(self) -> np.ndarray:
        """For each lane, the bits of the lanes of its warp that are in the group; uint32."""
        if self._active is None:
            lane = self.chunk.lane_of if self.lanes is None else self.chunk.lane_of.take(self.lanes)
            starts = np.concatenate([[0], self.breaks + 1])
            masks = np.bitwise_or.reduceat(np.uint32(1) << lane, starts)
            self._active = np.repeat(masks, np.diff(np.append(starts, self.count)))
        return self._active

    def distinct(self, keys: np.ndarray) -> int:
        """Distinct keys in each warp, summed over warps; `keys` has an int64 entry a lane."""
        steps = keys[1:] - keys[:-1]
        breaks = self.breaks
        steps[breaks] = 1
        if steps.shape[0] and steps.min() < 0:  # not in order within a warp
            order = np.zeros(keys.shape[0], np.int64)
            order[breaks + 1] = 1
            keys = np.sort((np.cumsum(order) << 44) + keys)
            steps = keys[1:] - keys[:-1]
        return 1 + int(np.count_nonzero(steps))

    def bank_passes(self, words: np.ndarray, width: int) -> int:
        """Wavefronts of accesses to `width` words from word numbers `words` on, summed over warps.

        Each pass serves one word of each of the 32 banks; lanes that share a word share its pass.
        """
        if width == 1:
            steps = words[1:] - words[:-1]
            steps[self.breaks] = 1
            if (steps == 1).all():  # neighbours take neighbouring words
                return self.warps
        order = np.zeros(words.shape[0], np.int64)
        order[self.breaks + 1] = 1
        warp = np.cumsum(order)
        every = (words[:, None] + np.arange(width)).reshape(-1)
        bank = (np.repeat(warp, width) << 5) | (every & (BANKS - 1))
        keys = np.sort((bank << 32) | (every >> 5))
        first = np.flatnonzero(np.diff(keys, prepend=-1))  # equal keys are one word; np.unique takes longer
        return int(np.bincount(keys[first] >> 32, minlength=BANKS * self.warps).reshape(-1, BANKS).max(axis=1).sum())


@contextlib.contextmanager
def part(chunk, lanes: np.ndarray | None) -> Iterator[None]:
    """Within it the chunk's group consists of these lanes: an access that only some lanes of an instruction make."""
    group = chunk.group
    if lanes is not group.lanes:
        chunk.group = Group(chunk, lanes)
    try:
        yield
    finally:
        chunk.group = group
