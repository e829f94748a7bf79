"""Groups of lanes that stand at one place and run together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from .counters import SECTOR_BYTES, WARP_SIZE

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

    def ordered(self, keys: np.ndarray) -> np.ndarray:
        """`keys`, an int64 (below 2**44) a lane, sorted within each warp: only for `distinct`."""
        steps = keys[1:] - keys[:-1]
        steps[self.breaks] = 0
        if not steps.shape[0] or steps.min() >= 0:
            return keys
        return np.sort((self.warp_numbers << 44) + keys)

    def distinct(self, ordered: np.ndarray) -> int:
        """Distinct keys in each warp, summed over warps."""
        steps = ordered[1:] - ordered[:-1]
        steps[self.breaks] = 1
        return 1 + int(np.count_nonzero(steps))

    @property
    def warp_numbers(self) -> np.ndarray:
        """For each lane the number of its warp among the group's warps."""
        order = np.zeros(self.count, np.int64)
        order[self.breaks + 1] = 1
        return np.cumsum(order)

    def bank_passes(self, words: np.ndarray, width: int, op: str) -> tuple[int, int]:
        """Wavefronts of accesses to `width` words from word numbers `words` on, summed over warps, and how many of
        them would do without bank conflicts. `words`: int64, one a lane or one for all. `op`: "load", "store",
        "atomic" or "increment", an atomic operation that adds 1 and whose result is not used.

        A wavefront serves one word of each of the 32 banks; lanes that share a word share it, but not for atomic
        operations. Accesses of two words are served by half-warps, of four by quarter-warps. Loads take two of
        these parts together where, throughout the warp, lane i reads the same as lane i ^ 1, or lane i reads the
        same as lane i ^ 2, or one of the two is idle. All this as measured on an H100 (docs/counters.md).
        """
        if width == 1 and op != "atomic":
            if words.shape[0] == 1:
                return self.warps, self.warps
            steps = words[1:] - words[:-1]
            steps[self.breaks] = 1
            if (steps == 1).all():  # neighbours take neighbouring words
                return self.warps, self.warps
        return self.chunk.counting.passes.of(self, words, width, op)

    def count_bank_passes(self, words: np.ndarray, width: int, op: str) -> tuple[int, int]:
        """`bank_passes` without its short cuts."""
        words = np.broadcast_to(words, self.count)
        part = self._parts(words, width, op) if width > 1 else self.warp_numbers
        passes = _busiest(part, words, width, int(part[-1]) + 1, share=op != "atomic")
        return int(passes.sum()), int(np.count_nonzero(passes))

    def copy_passes(self, target: np.ndarray, source: np.ndarray, width: int, read: np.ndarray) -> tuple[int, int]:
        """Wavefronts of cp.async, of `width` words a lane, and how many of them would do without bank conflicts.

        `target`, `source`: number of each lane's first word in shared and in global memory. `read`: lanes that read
        their source at all, the others write zeros. The warp is served in parts, as stores are. In each part every
        lane writes by itself, also to a word that others write; and what it reads comes out of the L1 cache, which
        has the same 32 banks, so that the parts with more conflicts there take as long as that. (Not measured here;
        after measurements by others on a GPU of compute capability 12.0.)
        """
        source = source - (int(source[0]) & -BANKS)  # moved by whole rows of the banks, the pattern stays
        key = np.concatenate((target, source, read))

        def count() -> tuple[int, int]:
            part = self._parts(target, width, "copy") if width > 1 else self.warp_numbers
            parts = int(part[-1]) + 1
            writes = _busiest(part, target, width, parts, share=False)
            reads = _busiest(part[read], source[read], width, parts, share=True)
            return int(np.maximum(writes, reads).sum()), int(np.count_nonzero(writes))

        return self.chunk.counting.passes.find((width, "copy"), key, self.lanes, count)

    def _parts(self, words: np.ndarray, width: int, op: str) -> np.ndarray:
        """For each lane the number of the part of its warp that is served together, ascending."""
        warp = self.warp_numbers
        lane = self.chunk.lane_of if self.lanes is None else self.chunk.lane_of.take(self.lanes)
        size = np.full(self.warps, WARP_SIZE // width)
        if op == "load":
            size[self._alike(words, warp, lane)] *= 2
        return warp * width + lane // size[warp]

    def _alike(self, words: np.ndarray, warp: np.ndarray, lane: np.ndarray) -> np.ndarray:
        """For each warp, whether all its lanes read the words of their neighbours in pairs, as `bank_passes` says."""
        table = np.full((self.warps, WARP_SIZE), -1)
        table[warp, lane] = words
        alike = np.zeros(self.warps, bool)
        for distance in (1, 2):
            other = table[:, np.arange(WARP_SIZE) ^ distance]
            alike |= ((table == other) | (table < 0) | (other < 0)).all(axis=1)
        return alike

    def atomic_sectors(self, addresses: np.ndarray) -> int:
        """Sectors of atomic operations on global memory, summed over warps. `addresses`: int64, one a lane.

        Lanes with one address take turns, and each turn touches its sectors anew.
        """
        keys = np.sort((self.warp_numbers << 44) + (addresses - addresses.min()))
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        turn = np.arange(self.count) - np.repeat(first, np.diff(np.append(first, self.count)))
        start = addresses.min() & (SECTOR_BYTES - 1)
        return np.unique((keys + start >> 5 << 5) + turn).shape[0]


class KnownPasses:
    """Bank passes found before in a launch: a loop often repeats its accesses to shared memory, block after block."""

    MOST = 8  # kept for each width and kind of access

    def __init__(self) -> None:
        self.known: dict[tuple[int, str], list[tuple[np.ndarray, np.ndarray | None, tuple[int, int]]]] = {}

    def of(self, group: Group, words: np.ndarray, width: int, op: str) -> tuple[int, int]:
        """`group.count_bank_passes(words, width, op)`; `words` must not change afterwards."""
        if words.shape[0] != group.count:
            return group.count_bank_passes(words, width, op)
        return self.find((width, op), words, group.lanes, lambda: group.count_bank_passes(words, width, op))

    def find(self, key: tuple[int, str], words: np.ndarray, lanes: np.ndarray | None, count) -> tuple[int, int]:
        """`count()`, or what it gave before for the same `key`, `words` and `lanes`."""
        known = self.known.setdefault(key, [])
        for before, lanes_before, passes in known:
            if _equal(before, words) and _equal(lanes_before, lanes):
                return passes
        passes = count()
        known.insert(0, (words, lanes, passes))
        del known[self.MOST :]
        return passes


def _busiest(part: np.ndarray, words: np.ndarray, width: int, parts: int, *, share: bool) -> np.ndarray:
    """For each part of the lanes, the number of words in its busiest bank. `share`: lanes can have one word together.

    `part`: for each lane the number of its part, below `parts`; `words`: of the first of its `width` words.
    """
    every = words if width == 1 else (words[:, None] + np.arange(width)).reshape(-1)
    bank = (np.repeat(part, width) << 5) | (every & (BANKS - 1))
    if share:
        keys = np.sort((bank << 32) | (every >> 5))
        first = np.flatnonzero(np.diff(keys, prepend=-1))  # equal keys are one word; np.unique takes longer
        bank = keys[first] >> 32
    return np.bincount(bank, minlength=BANKS * parts).reshape(-1, BANKS).max(axis=1)


def _equal(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    if a is b:
        return True
    if a is None or b is None or a.shape != b.shape:
        return False
    return bool(a[-1] == b[-1] and (a == b).all())


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
