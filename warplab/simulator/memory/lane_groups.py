"""Groups of lanes that stand at one place and run together, and how the banks of shared memory serve them."""

import contextlib
from collections.abc import Iterator

import numpy as np

from warplab.simulator.constants import SECTOR_BYTES, WARP_SIZE

BANKS = 32  # of shared memory, 4 bytes wide


class Group:
    """Lanes that run together. `lanes`: their sorted numbers, None for all lanes of the chunk."""

    __slots__ = ("_active", "_breaks", "_warps", "chunk", "count", "lanes")

    def __init__(self, chunk, lanes: np.ndarray | None) -> None:
        self.chunk, self.lanes = chunk, lanes
        self.count = chunk.lanes if lanes is None else lanes.shape[0]
        self._warps: int | None = None
        self._breaks: np.ndarray | None = None
        self._active: np.ndarray | None = None

    @property
    def all_lanes(self) -> np.ndarray:
        """Return the lane numbers, sorted."""
        return self.chunk.all_lanes if self.lanes is None else self.lanes

    @property
    def whole(self) -> bool:
        """Return whether it is all lanes of the chunk, with full warps."""
        return self.lanes is None and self.chunk.lanes == WARP_SIZE * self.chunk.warps

    @property
    def breaks(self) -> np.ndarray:
        """Return positions after which the next lane belongs to another warp."""
        if self._breaks is None:
            warps = self.chunk.warp_of if self.lanes is None else self.chunk.warp_of[self.lanes]
            self._breaks = np.flatnonzero(warps[1:] != warps[:-1])
        return self._breaks

    @property
    def warps(self) -> int:
        """Return the number of warps that have a lane in the group."""
        if self._warps is None:
            self._warps = self.chunk.warps if self.lanes is None else self.breaks.shape[0] + 1
        return self._warps

    @property
    def active(self) -> np.ndarray:
        """Return, for each lane, the bits of its warp's lanes that are in the group; uint32."""
        if self._active is None:
            lane = self.chunk.lane_of if self.lanes is None else self.chunk.lane_of.take(self.lanes)
            starts = np.concatenate([[0], self.breaks + 1])
            masks = np.bitwise_or.reduceat(np.uint32(1) << lane, starts)
            self._active = np.repeat(masks, np.diff(np.append(starts, self.count)))
        return self._active

    def ordered(self, keys: np.ndarray) -> np.ndarray:
        """Sort `keys`, one int64 below 2**44 per lane, within each warp. The result is for `distinct` only."""
        steps = keys[1:] - keys[:-1]
        steps[self.breaks] = 0
        if not steps.shape[0] or steps.min() >= 0:
            return keys
        return np.sort((self.warp_numbers << 44) + keys)

    def distinct(self, ordered: np.ndarray) -> int:
        """Count the distinct keys of each warp, summed over warps."""
        steps = ordered[1:] - ordered[:-1]
        steps[self.breaks] = 1
        return 1 + int(np.count_nonzero(steps))

    @property
    def warp_numbers(self) -> np.ndarray:
        """Return, for each lane the number of its warp among the group's warps."""
        order = np.zeros(self.count, np.int64)
        order[self.breaks + 1] = 1
        return np.cumsum(order)

    def bank_passes(self, words: np.ndarray, width: int, op: str) -> tuple[int, int]:
        """Count the wavefronts of accesses to `width` words from word numbers `words` on, summed over warps, and how
        many it would take without bank conflicts. `words`: int64, one per lane or one for all. `op`: "load", "store",
        "atomic" or "increment", an atomic operation that adds 1 and whose result is not used.

        A wavefront serves one word of each of the 32 banks. Lanes that access the same word share it, except in atomic
        operations. Accesses of two words are served by half-warp, of four by quarter-warp. Loads take two of these
        parts together where, throughout the warp, lane i reads the same as lane i ^ 1, or lane i reads the same as
        lane i ^ 2, or one of the two is idle. All this was measured on an H100 (evidence/counters).
        """
        if width == 1 and op != "atomic":
            if words.shape[0] == 1:
                return self.warps, self.warps
            steps = words[1:] - words[:-1]
            steps[self.breaks] = 1
            if (steps == 1).all():  # neighbours take neighbouring words
                return self.warps, self.warps
        return self.chunk.passes.of(self, words, width, op)

    def count_bank_passes(self, words: np.ndarray, width: int, op: str) -> tuple[int, int]:
        """Count `bank_passes` without the shortcuts."""
        words = np.broadcast_to(words, self.count)
        part = self._parts(words, width, op) if width > 1 else self.warp_numbers
        passes = _busiest(part, words, width, int(part[-1]) + 1, share=op != "atomic")
        return int(passes.sum()), int(np.count_nonzero(passes))

    def copy_passes(
        self, target: np.ndarray, source: np.ndarray, width: int, read: np.ndarray, past_l1: bool
    ) -> tuple[int, int, int]:
        """Count the wavefronts of cp.async with `width` words per lane, how many it would take without bank conflicts,
        and how many sectors of global memory it takes beyond those that hold the sources.

        `target`, `source`: number of each lane's first word in shared and in global memory. `read`: lanes that read
        their source at all; the others write zeros. The warp is served in parts, as for stores. Each lane counts by
        itself, even if others read or write the same word.

        Through the L1 cache (cp.async.ca), a part takes as many wavefronts as its busiest bank needs, either of shared
        memory or of the cache, which has the same 32. For `past_l1` (cp.async.cg) see `_past_l1`. The rules are those
        of an H100 on the 61 launches with copies in evidence/counters.
        """
        source = source - (int(source[0]) & -BANKS)  # shifting by whole rows of the banks keeps the pattern
        key = np.concatenate((target, source, read))

        def count() -> tuple[int, int, int]:
            part = self._parts(target, width, "copy") if width > 1 else self.warp_numbers
            parts = int(part[-1]) + 1
            writes = _busiest(part, target, width, parts, share=False)
            needed = int(np.count_nonzero(writes))
            if past_l1:
                return self._past_l1(target >> 2, source >> 2, part, read, needed)
            reads = _busiest(part[read], source[read], width, parts, share=False)
            return int(np.maximum(writes, reads).sum()), needed, 0

        return self.chunk.passes.find((width, "past L1" if past_l1 else "copy"), key, self.lanes, count)

    def _past_l1(
        self, target: np.ndarray, source: np.ndarray, part: np.ndarray, read: np.ndarray, needed: int
    ) -> tuple[int, int, int]:
        """Do as `copy_passes` for copies past the L1 cache, in pieces of 16 bytes, numbered `target`, `source`.

        What is copied from one line of 128 bytes to another goes together if all of it keeps its half of a sector or
        all of it changes halves, and if one wavefront fills each sector of the target from a single sector of the
        source. A request has one sector for each sector of the target that a line of the source is copied to, if that
        is more than the sectors that hold the sources.
        """
        source = np.where(read, source, (target & 7) - 8)  # zeros: from a line of their own
        lanes = np.stack((part, source >> 3, target >> 3, (source ^ target) & 1))
        together = np.unique(lanes, axis=1, return_inverse=True)[1].reshape(-1)
        pairs = np.unique(together << 4 | ((target >> 1 & 3) << 2) | (source >> 1 & 3))
        most = [
            _most(pairs >> 4, pairs >> 2 & 3),
            _most(together, target & 7),
            _most(together, source & 7),
        ]
        lines = np.unique(np.stack((self.warp_numbers[read], source[read] >> 3)), axis=1, return_inverse=True)[1]
        lines = lines.reshape(-1)
        held = np.unique(lines << 2 | (source[read] >> 1 & 3)) >> 2
        touched = np.unique(np.stack((lines, target[read] >> 1)), axis=1)[0]
        more = np.bincount(touched) - np.bincount(held) if lines.size else np.zeros(0, np.int64)
        return int(np.maximum.reduce(most).sum()), needed, int(more[more > 0].sum())

    def _parts(self, words: np.ndarray, width: int, op: str) -> np.ndarray:
        """Return for each lane the number of the part of its warp that is served together, in ascending order."""
        warp = self.warp_numbers
        lane = self.chunk.lane_of if self.lanes is None else self.chunk.lane_of.take(self.lanes)
        size = np.full(self.warps, WARP_SIZE // width)
        if op == "load":
            size[self._alike(words, warp, lane)] *= 2
        return warp * width + lane // size[warp]

    def _alike(self, words: np.ndarray, warp: np.ndarray, lane: np.ndarray) -> np.ndarray:
        """Tell, for each warp, whether all its lanes read the same words in pairs, as `bank_passes` says."""
        table = np.full((self.warps, WARP_SIZE), -1)
        table[warp, lane] = words
        alike = np.zeros(self.warps, bool)
        for distance in (1, 2):
            other = table[:, np.arange(WARP_SIZE) ^ distance]
            alike |= ((table == other) | (table < 0) | (other < 0)).all(axis=1)
        return alike

    def atomic_sectors(self, addresses: np.ndarray) -> int:
        """Count the sectors of atomic operations on global memory, summed over warps. `addresses`: int64, one per lane.

        Lanes with the same address take turns, and each turn touches its sectors anew.
        """
        keys = np.sort((self.warp_numbers << 44) + (addresses - addresses.min()))
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        turn = np.arange(self.count) - np.repeat(first, np.diff(np.append(first, self.count)))
        start = addresses.min() & (SECTOR_BYTES - 1)
        return np.unique((keys + start >> 5 << 5) + turn).shape[0]


class BankPassCache:
    """Bank passes already counted in a launch, as loops often repeat their accesses to shared memory."""

    MOST = 8  # kept for each width and kind of access

    def __init__(self) -> None:
        self.known: dict[tuple[int, str], list[tuple[np.ndarray, np.ndarray | None, tuple[int, ...]]]] = {}

    def of(self, group: Group, words: np.ndarray, width: int, op: str) -> tuple[int, int]:
        """Return `group.count_bank_passes(words, width, op)`; `words` must not change afterwards."""
        if words.shape[0] != group.count:
            return group.count_bank_passes(words, width, op)
        passes, needed = self.find((width, op), words, group.lanes, lambda: group.count_bank_passes(words, width, op))
        return passes, needed

    def find(self, key: tuple[int, str], words: np.ndarray, lanes: np.ndarray | None, count) -> tuple[int, ...]:
        """Return `count()`, or what it returned before for the same `key`, `words` and `lanes`."""
        known = self.known.setdefault(key, [])
        for before, lanes_before, passes in known:
            if _equal(before, words) and _equal(lanes_before, lanes):
                return passes
        passes = count()
        known.insert(0, (words, lanes, passes))
        del known[self.MOST :]
        return passes


def _busiest(part: np.ndarray, words: np.ndarray, width: int, parts: int, *, share: bool) -> np.ndarray:
    """Count, for each part of the lanes, the words in its busiest bank. `share`: lanes can share a word.

    `part`: for each lane, the number of its part, below `parts`. `words`: numbers of the first of its `width` words.
    """
    every = words if width == 1 else (words[:, None] + np.arange(width)).reshape(-1)
    bank = (np.repeat(part, width) << 5) | (every & (BANKS - 1))
    if share:
        keys = np.sort((bank << 32) | (every >> 5))
        first = np.flatnonzero(np.diff(keys, prepend=-1))  # equal keys are one word; np.unique takes longer
        bank = keys[first] >> 32
    return np.bincount(bank, minlength=BANKS * parts).reshape(-1, BANKS).max(axis=1)


def _most(group: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Count, for each group (numbered from 0), how often its most frequent key (below 8) occurs."""
    return np.bincount(group << 3 | key, minlength=8 * (int(group.max()) + 1)).reshape(-1, 8).max(axis=1)


def _equal(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    if a is b:
        return True
    if a is None or b is None or a.shape != b.shape:
        return False
    return bool(a[-1] == b[-1] and (a == b).all())


@contextlib.contextmanager
def subgroup(chunk, lanes: np.ndarray | None) -> Iterator[None]:
    """Make these lanes the chunk's group inside the block, for an access by some lanes of an instruction."""
    group = chunk.group
    if lanes is not group.lanes:
        chunk.group = Group(chunk, lanes)
    try:
        yield
    finally:
        chunk.group = group


def bits_of(parts: list[np.ndarray], words: int) -> np.ndarray:
    """Return lanes, given by their numbers in one or more arrays, as bits of `words` words of 64."""
    flags = np.zeros(64 * words, bool)
    for lanes in parts:
        flags[lanes] = True
    return np.packbits(flags, bitorder="little").view(np.uint64)


def lanes_of(bits: np.ndarray) -> np.ndarray:
    """Return the sorted numbers of the lanes whose bits are set in words of 64 (uint64)."""
    return np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))
