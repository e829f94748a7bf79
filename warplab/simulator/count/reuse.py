"""What a few blocks of a launch read again, and which addresses they share: what caches and atomics make of a launch.

Of each chunk of blocks the first block is watched. Its sectors, in the order in which its warps asked for them, give
the times between two reads of one sector, and these the share of reads that a cache of any size serves: a cache that
holds the lines of the last w reads, on average, serves those that come again within w (Xiang, Ding, Luo, Bao, "HOTL: a
higher order theory of locality", ASPLOS 2013). Other blocks only take their part of the cache.
"""

import functools
from dataclasses import dataclass, field

import numpy as np

from warplab.simulator.constants import SECTOR_BYTES
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.observer import NOBODY, Observer
from warplab.simulator.translate.block_writer import Site

MOST_READS = 1 << 18  # of a watched block; longer loops repeat themselves
MOST_BLOCKS = 16
_MOST_KNOWN = 256
MOST_KEPT = 1 << 18  # reads of a launch, 2 MB; of more the reuse is computed at once
CAPACITIES = tuple(1 << k for k in range(11, 19))  # bytes of cache for one block
_WARP_BIT = 44
_PLACE = (1 << _WARP_BIT) - 1
_LINE_BITS, _SECTOR_BITS = 7, 5  # of the address within a line, a sector
_LINE = 1 << _LINE_BITS
_SECTORS_BIT = 2  # a line has four sectors


@dataclass
class Reuse:
    """What the watched blocks of a launch did in global memory; `blocks` of them.

    `hits`: by bytes of cache for one block, the share of the sectors read that it serves (0 to 1). `again`: the same
    for a cache without limit. `pair_bytes`: bytes in aligned pairs of sectors of which a block read one or both, per
    byte of the sectors: 1 where both, 2 where only one.

    `requests`: of loads; each needs `lines` lines of 128 bytes and `passes` passes through the banks of the L1, which
    are those of shared memory, on average.

    `atomics`: operations on global memory, lanes counted, but as one where a warp adds integers to one address, as the
    assembler lets one lane add their sum; `hottest`, `hottest_word`: the shares of them that go to the most common
    line and the most common address of all watched blocks; `atomic_addresses`, `atomic_lines`: how many addresses and
    lines differ. `atomic_requests`: of warps; `words`, `sectors`: how many differ in one of them, on average.
    """

    blocks: int = 0
    hits: dict[int, float] = field(default_factory=dict)
    again: float = 0.0
    pair_bytes: float = 1.0
    requests: int = 0
    lines: float = 1.0
    passes: float = 1.0
    atomics: int = 0
    hottest: float = 0.0
    hottest_word: float = 0.0
    atomic_addresses: int = 0
    atomic_lines: int = 0
    atomic_requests: int = 0
    words: float = 1.0
    sectors: float = 1.0


class ReuseWatch(Observer):
    """Collects what a `Reuse` needs while a launch runs."""

    def __init__(self) -> None:
        self.streams: list[list[np.ndarray]] = []
        self.atomics: list[tuple[np.ndarray, np.ndarray]] = []  # numbers of requests, addresses
        self.requests = self.lines = self.passes = 0  # of loads
        self._room = self._atomic_requests = 0
        # By width, lanes and their distances from the start of a line: what `_examined` returns, from there on.
        self._known: dict[tuple[int, bytes, bytes], tuple[np.ndarray, list[int]]] = {}

    def watch(self, chunk) -> Observer:
        if len(self.streams) >= MOST_BLOCKS:
            return NOBODY
        self.streams.append([])
        self._room = MOST_READS
        self.threads = min(chunk.threads, chunk.lanes)  # those watched, from the first on
        return super().watch(chunk)

    @property
    def room(self) -> int:
        """Return how many more sectors of the block are watched."""
        return max(0, self._room)

    def load(self, site: Site, space: str, addresses: Addresses, lanes: np.ndarray | None) -> None:
        if space != "global" or self._room <= 0:
            return
        base = self._of_first_block(addresses, lanes)
        if base is None:
            return
        numbers, mine = base
        places = (mine + np.uint64(site.offset & 0xFFFFFFFFFFFFFFFF)).view(np.int64)
        start = int(places[0]) // _LINE * _LINE
        key = site.width, numbers.tobytes(), (places - start).tobytes()
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found, *costs = self._examined(site, (numbers >> 5) << _WARP_BIT, places)
            self._known[key] = found - (start >> _SECTOR_BITS), costs
        found, (lines, requests, passes) = self._known[key]
        self.streams[-1].append(found + (start >> _SECTOR_BITS))
        self._room -= found.size
        self.lines, self.requests, self.passes = self.lines + lines, self.requests + requests, self.passes + passes

    def _examined(self, site: Site, warps: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, int, int, int]:
        """Return the sectors of each warp once, warp after warp; lines; requests; and the passes in which the banks
        give what each of these asks for."""
        keys = np.unique(warps | (places >> _SECTOR_BITS & _PLACE))
        wide = max(4, 1 << (site.width - 1).bit_length())
        pieces = np.unique(warps | (places // wide & _PLACE))
        # Pieces of one warp that lie in the same banks come one after the other.
        banks = (pieces >> _WARP_BIT) * _LINE + pieces % max(1, _LINE // wide)
        of_banks, times = np.unique(banks, return_counts=True)
        starts = np.flatnonzero(np.concatenate([[True], of_banks[1:] // _LINE != of_banks[:-1] // _LINE]))
        lines = keys >> _SECTORS_BIT
        different = 1 + int(np.count_nonzero(lines[1:] != lines[:-1]))
        return keys & _PLACE, different, starts.size, int(np.maximum.reduceat(times, starts).sum())

    copy_request = load

    def atomic(self, site: Site, space: str, addresses: Addresses, lanes: np.ndarray | None, reads: bool) -> None:
        if space != "global" or self._room <= 0:
            return
        base = self._of_first_block(addresses, lanes)
        if base is None:
            return
        warps, places = base[0] >> 5, base[1] + np.uint64(site.offset & 0xFFFFFFFFFFFFFFFF)
        if site.summed:
            warps, places = _summed(warps, places)
        self.atomics.append((warps + self._atomic_requests, places))
        self._atomic_requests += -(-self.threads // 32)
        self._room -= places.size

    def _of_first_block(self, addresses: Addresses, lanes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the lane numbers of the watched block in the group, and their bases; None for none."""
        if lanes is None:
            numbers = np.arange(self.threads)
        else:
            numbers = lanes[: np.searchsorted(lanes, self.threads)]
            if not numbers.size:
                return None
        base = addresses.base
        return numbers, base[: numbers.size] if base.shape[0] > 1 else np.broadcast_to(base, numbers.shape)

    def end_launch(self, profile, finished: bool) -> None:
        self.chunk = None  # and with it the launch's memory
        means = (self.lines / self.requests, self.passes / self.requests) if self.requests else (1.0, 1.0)
        profile.watched = Watched(self.streams, self.atomics, self.requests, *means)
        if profile.watched.reads > MOST_KEPT:
            _ = profile.watched.reuse  # now, so that what was seen need not be kept


class Watched:
    """What the watched blocks read, in order, and their atomics' addresses, until somebody asks for the `reuse`."""

    def __init__(
        self,
        streams: list[list[np.ndarray]],
        atomics: list[tuple[np.ndarray, np.ndarray]],
        requests: int = 0,
        lines: float = 1.0,
        passes: float = 1.0,
    ) -> None:
        self._streams, self._atomics = streams, atomics
        self._requests, self._lines, self._passes = requests, lines, passes

    @property
    def reads(self) -> int:
        """Return how many sectors and addresses are kept."""
        atomics = sum(places.size for _, places in self._atomics)
        return sum(part.size for parts in self._streams for part in parts) + atomics

    @functools.cached_property
    def reuse(self) -> Reuse:
        """Return what was seen, averaged over the watched blocks, each with the weight of its reads."""
        found = Reuse(len(self._streams), dict.fromkeys(CAPACITIES, 0.0))
        found.requests, found.lines, found.passes = self._requests, self._lines, self._passes
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
            _fill_atomics(found, *map(np.concatenate, zip(*self._atomics, strict=True)))
        self._streams, self._atomics = [], []
        return found


def _summed(warps: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keep, of warps whose lanes all have one place, only the first lane."""
    starts = np.flatnonzero(np.concatenate([[True], warps[1:] != warps[:-1]]))
    same = np.minimum.reduceat(places, starts) == np.maximum.reduceat(places, starts)
    kept = ~np.repeat(same, np.diff(np.append(starts, warps.size)))
    kept[starts] = True
    return warps[kept], places[kept]


def _fill_atomics(found: Reuse, requests: np.ndarray, addresses: np.ndarray) -> None:
    """Write into `found` what atomics at `addresses` share, the lanes of request after request."""
    addresses = addresses.view(np.int64)
    found.atomics, found.atomic_requests = addresses.size, int(np.unique(requests).size)
    of_words = np.unique(addresses, return_counts=True)[1]
    of_lines = np.unique(addresses >> _LINE_BITS, return_counts=True)[1]
    found.atomic_addresses, found.atomic_lines = of_words.size, of_lines.size
    found.hottest_word, found.hottest = (float(times.max() / addresses.size) for times in (of_words, of_lines))
    found.words = _differing(requests, addresses) / found.atomic_requests
    found.sectors = _differing(requests, addresses >> _SECTOR_BITS) / found.atomic_requests


def _differing(requests: np.ndarray, places: np.ndarray) -> int:
    """Return how many pairs of request and place there are."""
    order = np.lexsort((requests, places))
    requests, places = requests[order], places[order]
    return 1 + int(np.count_nonzero((places[1:] != places[:-1]) | (requests[1:] != requests[:-1])))


def hit_shares(stream: np.ndarray) -> dict[int, float]:
    """Return, for each of CAPACITIES, the share of a stream of sector numbers that such a cache serves.

    The first read of a sector is never served. The cache has room for lines of four sectors, of which it fetches those
    that are asked for, and gives up the line that was read least recently.
    """
    n = stream.size
    first, last, between = _times(stream >> _SECTORS_BIT)
    windows = np.unique(np.geomspace(1, n, 200).astype(np.int64))

    def beyond(values: np.ndarray) -> np.ndarray:
        """Return the sum of (value - window) over the values above each window."""
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
    """Return each number's first place in a stream, its last from the end, and the times between its places."""
    order = np.argsort(stream, kind="stable")
    same = stream[order][1:] == stream[order][:-1]
    first = order[np.concatenate([[True], ~same])] + 1
    last = stream.size - order[np.concatenate([~same, [True]])]
    return first, last, (order[1:] - order[:-1])[same]
