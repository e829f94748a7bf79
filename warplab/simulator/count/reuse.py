"""What a few blocks of a launch read again, and which addresses they share: what caches and atomics make of a launch.

Of each chunk of blocks the first block is watched. Its sectors, in the order in which its warps asked for them, give
the times between two reads of one sector, and these the share of reads that a cache of any size serves: a cache that
holds the lines of the last w reads, on average, serves those that come again within w (Xiang, Ding, Luo, Bao,
"HOTL: a higher order theory of locality", ASPLOS 2013). Other blocks of the multiprocessor only take their part of the
cache.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np

from warplab.simulator.constants import SECTOR_BYTES
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.observer import Observer
from warplab.simulator.translate.block_writer import Site

MOST_READS = 1 << 18  # of a watched block; longer loops repeat themselves
MOST_BLOCKS = 16
MOST_KEPT = 1 << 18  # reads of a launch, 2 MB; of more the reuse is computed at once
CAPACITIES = tuple(1 << k for k in range(11, 19))  # bytes of cache for one block
_WARP_BIT = 44
_LINE_BITS = 7  # of the address within a line
_SECTORS_BIT = 2  # a line has four sectors


@dataclass
class Reuse:
    """What the watched blocks of a launch did in global memory; `blocks` of them.

    `hits`: by bytes of cache for one block, the share of the sectors read that it serves (0 to 1). `again`: the same
    for a cache without limit. `pair_bytes`: bytes in aligned pairs of sectors of which a block read one or both, per
    byte of the sectors: 1 where both, 2 where only one. `atomics`: operations on global memory, lanes counted;
    `hottest`: the share of them that goes to the most common line of 128 bytes of all watched blocks;
    `atomic_addresses`: how many addresses differ.
    """

    blocks: int = 0
    hits: dict[int, float] = field(default_factory=dict)
    again: float = 0.0
    pair_bytes: float = 1.0
    atomics: int = 0
    hottest: float = 0.0
    atomic_addresses: int = 0


class ReuseWatch(Observer):
    """Collects what a `Reuse` needs while a launch runs."""

    def __init__(self) -> None:
        self.streams: list[list[np.ndarray]] = []
        self.atomics: list[np.ndarray] = []
        self._room = 0

    def watch(self, chunk) -> Observer:
        if len(self.streams) >= MOST_BLOCKS:
            return Observer()
        self.streams.append([])
        self._room = MOST_READS
        self._threads = min(chunk.threads, chunk.lanes)
        return super().watch(chunk)

    @property
    def room(self) -> int:
        """How many more sectors of the block are watched."""
        return max(0, self._room)

    def watches(self, lane: int) -> bool:
        """Does the lane belong to the watched block?"""
        return lane < self._threads

    def add(self, addresses: list[int]) -> None:
        """Watch reads of global memory by a single lane, in order."""
        if addresses:
            self.streams[-1].append(np.array(addresses[: self.room], np.int64) >> 5)
            self._room -= len(addresses)

    def load(self, site: Site, space: str, addresses: Addresses, lanes: np.ndarray | None) -> None:
        if space != "global" or self._room <= 0:
            return
        base = self._of_first_block(addresses, lanes)
        if base is None:
            return
        numbers, mine = base
        sectors = (mine + np.uint64(site.offset & 0xFFFFFFFFFFFFFFFF)).view(np.int64) >> 5
        # The sectors of each warp once, warp after warp.
        keys = np.unique(((numbers >> 5) << _WARP_BIT) | (sectors & ((1 << _WARP_BIT) - 1)))
        found = keys & ((1 << _WARP_BIT) - 1)
        self.streams[-1].append(found)
        self._room -= found.size

    copy_request = load

    def atomic(self, site: Site, space: str, addresses: Addresses, lanes: np.ndarray | None, reads: bool) -> None:
        if space != "global" or self._room <= 0:
            return
        base = self._of_first_block(addresses, lanes)
        if base is not None:
            self.atomics.append(base[1] + np.uint64(site.offset & 0xFFFFFFFFFFFFFFFF))
            self._room -= base[1].size

    def _of_first_block(self, addresses: Addresses, lanes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
        """Lane numbers of the watched block in the group, and their base addresses; None for none."""
        if lanes is None:
            numbers = np.arange(self._threads)
        else:
            numbers = lanes[: np.searchsorted(lanes, self._threads)]
            if not numbers.size:
                return None
        base = addresses.base
        return numbers, base[: numbers.size] if base.shape[0] > 1 else np.broadcast_to(base, numbers.shape)

    def end_launch(self, profile, finished: bool) -> None:
        self.chunk = None  # and with it the launch's memory
        profile.watched = Watched(self.streams, self.atomics)
        if profile.watched.reads > MOST_KEPT:
            _ = profile.watched.reuse  # now, so that what was seen need not be kept


class Watched:
    """What the watched blocks read, in order, and their atomics' addresses, until somebody asks for the `reuse`."""

    def __init__(self, streams: list[list[np.ndarray]], atomics: list[np.ndarray]) -> None:
        self._streams, self._atomics = streams, atomics

    @property
    def reads(self) -> int:
        """How many sectors and addresses are kept."""
        return sum(part.size for parts in (*self._streams, self._atomics) for part in parts)

    @functools.cached_property
    def reuse(self) -> Reuse:
        """What was seen, averaged over the watched blocks, each with the weight of its reads."""
        found = Reuse(blocks=len(self._streams), hits=dict.fromkeys(CAPACITIES, 0.0))
        reads = sectors = pairs = 0
        for parts in self._streams:
            if not parts:
                continue
            stream = np.concatenate(parts)
            reads += stream.size
            for capacity, share in hit_shares(stream).items():
                found.hits[capacity] += share * stream.size
            distinct = np.unique(stream)
            sectors += distinct.size
            pairs += np.unique(distinct >> 1).size
        if reads:
            found.hits = {capacity: share / reads for capacity, share in found.hits.items()}
            found.again = 1 - sectors / reads
            found.pair_bytes = 2 * pairs / sectors
        if self._atomics:
            addresses = np.concatenate(self._atomics)
            _, times = np.unique(addresses >> np.uint64(_LINE_BITS), return_counts=True)
            found.atomics, found.atomic_addresses = addresses.size, int(np.unique(addresses).size)
            found.hottest = float(times.max() / addresses.size)
        self._streams, self._atomics = [], []
        return found


def hit_shares(stream: np.ndarray) -> dict[int, float]:
    """For each of CAPACITIES, the share of a stream of sector numbers that such a cache serves.

    The first read of a sector is never served. The cache has room for lines of four sectors, of which it fetches those
    that are asked for, and gives up the line that was read least recently.
    """
    n = stream.size
    first, last, between = _times(stream >> _SECTORS_BIT)
    windows = np.unique(np.geomspace(1, n, 200).astype(np.int64))

    def beyond(values: np.ndarray) -> np.ndarray:
        """Sum of (value - window) over the values above each window."""
        ordered = np.sort(values)
        above = ordered.size - np.searchsorted(ordered, windows, side="right")
        sums = np.concatenate([[0], np.cumsum(ordered[::-1])])
        return sums[above] - above * windows

    unused = (beyond(first) + beyond(last) + beyond(between)) / (n - windows + 1)
    footprint = np.maximum.accumulate(first.size - unused)  # lines in the average window
    again = np.sort(_times(stream)[2])
    result = {}
    for capacity in CAPACITIES:
        held = capacity // (SECTOR_BYTES << _SECTORS_BIT)
        window = np.inf if footprint[-1] <= held else float(np.interp(held, footprint, windows))
        result[capacity] = float(np.searchsorted(again, window, side="right") / n)
    return result


def _times(stream: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each number in a stream its first place, its last place from the end, and the times between its places."""
    order = np.argsort(stream, kind="stable")
    same = stream[order][1:] == stream[order][:-1]
    first = order[np.concatenate([[True], ~same])] + 1
    last = stream.size - order[np.concatenate([~same, [True]])]
    return first, last, (order[1:] - order[:-1])[same]
