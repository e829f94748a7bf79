"""What the threads of a block, or of a cluster, know of one another through synchronisation other than a barrier of the
whole block: mbarriers, flags with acquire and release, named barriers for some warps, barriers of a cluster.

Time is the number of such events so far. For each warp of its cluster, a thread knows up to which time that warp's
accesses come before its own: `whole` holds for all lanes of the warp, the later `part` for the lanes in `mask`. (Lanes
that arrive somewhere speak for others of their warp only as far as a __syncwarp has joined them.) A place, such as an
mbarrier, keeps what those that arrived there knew, and passes it on to those that wait there. What is known about
several lanes of a warp is merged, so a race may be missed, but none is invented.
"""

import functools

import numpy as np

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.ptx.program import Immediate, integer

WARP_BITS = 32  # of a mask of warps; a bit stands for several warps of a larger cluster
_JOIN = {"whole": np.maximum, "part": np.maximum, "mask": np.bitwise_or}
_DTYPES = {"whole": np.int32, "part": np.int32, "mask": np.uint32}


class _Knowledge:
    """Rows of what is known about each warp of a cluster, in arrays of shape (rows, warps).

    `take`, and `put` of rows as one element each, take a tenth of the time of indices."""

    def __init__(self, rows: int, warps: int) -> None:
        self.arrays = {name: np.zeros((rows, warps), dtype) for name, dtype in _DTYPES.items()}

    def join(self, rows: np.ndarray, more: dict[str, np.ndarray]) -> None:
        for name, array in self.arrays.items():
            joined, row = _JOIN[name](array.take(rows, axis=0), more[name]), f"V{4 * array.shape[1]}"
            array.view(row).put(rows, joined.view(row))

    def of(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        return {name: array.take(rows, axis=0) for name, array in self.arrays.items()}

    def together(self, rows: np.ndarray, starts: np.ndarray) -> dict[str, np.ndarray]:
        """Merge each group of `rows`, which begin at `starts`, into one row."""
        return {name: _JOIN[name].reduceat(array, starts, axis=0) for name, array in self.of(rows).items()}

    def grow(self) -> None:
        self.arrays = {name: np.concatenate((array, np.zeros_like(array))) for name, array in self.arrays.items()}


class Clocks:
    """The clocks of one chunk. `lanes` are lane numbers, `places` numbers of places (one per lane, or one for all)."""

    def __init__(self, chunk) -> None:
        self.chunk = chunk
        self.warps = -(-chunk.threads // WARP_SIZE) * chunk.cluster_blocks
        self.now = 0
        self.column = chunk.warp_of - self.warps * (chunk.block_of // chunk.cluster_blocks)
        self.known = _Knowledge(chunk.lanes, self.warps)
        self.synced = np.zeros(chunk.warps, np.int32)  # when all lanes of a warp were last joined
        self.met = np.zeros(chunk.warps, np.int32)  # when lanes of a warp last took part in a shuffle or the like
        self.fenced, self.fenced_whole = np.zeros((2, chunk.lanes), np.int32)  # at each lane's latest fence
        self.rows: dict[int, int] = {}  # place → row
        self.coming, self.there = _Knowledge(16, self.warps), _Knowledge(16, self.warps)

    # -- events ----------------------------------------------------------------------------------------------------

    def release(self, places: np.ndarray, lanes: np.ndarray, *, later: bool = False, fenced: bool = False) -> None:
        """Leave what the lanes know at places. `later`: after `over`. `fenced`: what they knew at the latest fence."""
        chunk = self.chunk
        if fenced:
            stamp, whole = self.fenced[lanes], self.fenced_whole[lanes]
            if not stamp.any():
                return
        else:
            stamp, whole = np.full(lanes.shape, self.now + 1), self.synced[chunk.warp_of[lanes]]
        places = np.broadcast_to(places, lanes.shape)
        order = np.argsort(places, kind="stable")
        places, lanes, stamp, whole = places[order], lanes[order], stamp[order], whole[order]
        starts = _starts(places)
        found = self.known.together(lanes, starts)
        # About its own warp, each lane knows the present.
        warp = chunk.warp_of[lanes]
        first = np.union1d(starts, _starts(warp))
        row, column = np.searchsorted(starts, first, side="right") - 1, self.column[lanes[first]]
        mask = np.bitwise_or.reduceat(np.uint32(1) << chunk.lane_of[lanes], first)
        all_lanes = mask == (np.uint64(1) << chunk.warp_sizes[warp[first]].astype(np.uint64)) - np.uint64(1)
        whole = np.where(all_lanes, np.minimum.reduceat(stamp, first), np.minimum.reduceat(whole, first))
        own = {"whole": whole, "part": np.maximum.reduceat(stamp, first), "mask": mask}
        for name, array in found.items():
            array[row, column] = _JOIN[name](array[row, column], own[name])
        (self.coming if later else self.there).join(self._rows(places[starts]), found)
        self.now += 1

    def over(self, places: np.ndarray) -> None:
        """Make what was left at these places known to those that wait."""
        rows = self._rows(places)
        self.there.join(rows, self.coming.of(rows))

    def acquire(self, places: np.ndarray, lanes: np.ndarray) -> None:
        """Let the lanes learn what was left at these places."""
        places = np.broadcast_to(places, lanes.shape)
        distinct = np.unique(places)
        row_of = np.array([self.rows.get(place, -1) for place in distinct.tolist()])
        rows = row_of[np.searchsorted(distinct, places)]
        here = rows >= 0
        if here.any():
            self.known.join(lanes[here], self.there.of(rows[here]))

    def fence(self, lanes: np.ndarray) -> None:
        self.now += 1
        self.fenced[lanes], self.fenced_whole[lanes] = self.now, self.synced[self.chunk.warp_of[lanes]]

    def exchange(self, lanes: np.ndarray) -> None:
        """Let the lanes of a warp learn in a shuffle, vote or the like what the others know, and that their earlier
        reads are over, but not their writes. (Cooperative groups of more than a warp rely on this.)"""
        self.now += 1
        self.met[self.chunk.warp_of[lanes]] = self.now
        starts = _starts(self.chunk.warp_of[lanes])
        lengths = np.diff(np.append(starts, lanes.shape[0]))
        together = self.known.together(lanes, starts)
        self.known.join(lanes, {name: np.repeat(array, lengths, axis=0) for name, array in together.items()})

    def sync_warps(self, lanes: np.ndarray) -> None:
        """Let lanes in a __syncwarp also learn what the others wrote."""
        self.exchange(lanes)
        self._join_warps(lanes)
        # What all of them have fenced, each can now publish for all.
        starts = _starts(self.chunk.warp_of[lanes])
        least = np.minimum.reduceat(self.fenced[lanes], starts)
        least = np.repeat(least, np.diff(np.append(starts, lanes.shape[0])))
        self.fenced_whole[lanes] = np.maximum(self.fenced_whole[lanes], least)

    def sync_some(self, lanes: np.ndarray) -> None:
        """Let some lanes of a warp, in their __syncwarp, learn what the others among them did and know."""
        self.now += 1
        starts = _starts(self.chunk.warp_of[lanes])
        lengths = np.diff(np.append(starts, lanes.shape[0]))
        together = self.known.together(lanes, starts)
        self.known.join(lanes, {name: np.repeat(array, lengths, axis=0) for name, array in together.items()})
        arrays, column = self.known.arrays, self.column[lanes]
        bits = np.bitwise_or.reduceat(np.uint32(1) << self.chunk.lane_of[lanes].astype(np.uint32), starts)
        arrays["part"][lanes, column] = self.now
        arrays["mask"][lanes, column] |= np.repeat(bits, lengths)

    def sync_blocks(self, lanes: np.ndarray | None) -> None:
        """Order by a barrier of the whole block, which orders on its own. `lanes`: None for all.

        For threads of other blocks of the cluster, those of the block then know what all of them did and knew.
        """
        self._join_warps(lanes)
        chunk = self.chunk
        if chunk.cluster_blocks > 1:
            blocks = np.arange(chunk.blocks) if lanes is None else np.unique(chunk.block_of[lanes])
            own = self.warps // chunk.cluster_blocks
            mine = (np.arange(self.warps) // own) == (blocks % chunk.cluster_blocks)[:, None]
            rows = blocks[:, None] * chunk.threads + np.arange(chunk.threads)
            for name, array in self.known.arrays.items():
                together = _JOIN[name].reduce(array[rows], axis=1)
                if name == "whole":
                    together = np.where(mine, self.now, together)
                array[rows] = together[:, None, :]

    def _join_warps(self, lanes: np.ndarray | None) -> None:
        self.now += 1
        self.synced[slice(None) if lanes is None else self.chunk.warp_of[lanes]] = self.now

    # -- questions -------------------------------------------------------------------------------------------------

    def knows(self, lanes: np.ndarray, others: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Return, for each lane: does what lane `others` of its cluster did at `time` come before what it does now?"""
        arrays, column = self.known.arrays, self.column[others]
        among = arrays["mask"][lanes, column] >> self.chunk.lane_of[others] & 1
        return (arrays["whole"][lanes, column] > time) | ((arrays["part"][lanes, column] > time) & (among != 0))

    def knows_warps(self, lanes: np.ndarray, warps: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Return, for each lane: do the reads at `time` by lanes of certain warps of its cluster come before what it
        does now? `warps`: the bits of these warps."""
        arrays, own = self.known.arrays, self.chunk.warp_of[lanes]
        latest = np.maximum(arrays["whole"][lanes], arrays["part"][lanes])
        row, column = np.arange(lanes.shape[0]), self.column[lanes]
        latest[row, column] = np.maximum(latest[row, column], np.maximum(self.synced[own], self.met[own]))
        if self.warps > WARP_BITS:
            more = np.pad(latest, ((0, 0), (0, -self.warps % WARP_BITS)))
            latest = more.reshape(lanes.shape[0], -1, WARP_BITS).max(axis=1)
        wanted = warps[:, None] >> np.arange(latest.shape[1], dtype=np.uint32) & 1
        return ((latest > time[:, None]) | (wanted == 0)).all(axis=1)

    def _rows(self, places: np.ndarray) -> np.ndarray:
        rows = [self.rows.setdefault(place, len(self.rows)) for place in places.tolist()]
        while len(self.rows) > self.there.arrays["whole"].shape[0]:
            self.there.grow()
            self.coming.grow()
        return np.array(rows)


def _starts(values: np.ndarray) -> np.ndarray:
    """Return the positions at which runs of equal values begin."""
    return np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))


def _names_all(mask) -> bool:
    """Tell whether the mask of a __syncwarp is the whole warp, whatever the kernel computes."""
    return isinstance(mask, Immediate) and integer(mask) & 0xFFFFFFFF == 0xFFFFFFFF


@functools.lru_cache(maxsize=64)
def clocks_needed(translation) -> bool:
    """Return whether anything other than a barrier of the whole block can order its accesses."""
    fences = flags = False
    for i in (i for block in translation.blocks for i in block.counted):
        modifiers = set(i.modifiers)
        if i.opcode in ("bar", "barrier") and ("arrive" in modifiers or len(i.operands) > 1 + 2 * ("red" in modifiers)):
            return True
        if i.opcode == "bar" and "warp" in modifiers and not _names_all(i.operands[-1]):
            return True
        if i.opcode in ("mbarrier", "wgmma") or (i.opcode == "cp" and "mbarrier" in modifiers):
            return True
        fences |= i.opcode in ("membar", "fence")
        if i.opcode in ("atom", "red", "ld", "st") and modifiers.isdisjoint(("global", "const", "param", "local")):
            if not modifiers.isdisjoint(("acquire", "release", "acq_rel")):
                return True
            flags |= i.opcode in ("atom", "red") or not modifiers.isdisjoint(("volatile", "relaxed"))
    return fences and flags
