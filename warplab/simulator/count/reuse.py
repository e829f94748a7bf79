"""What a few blocks of a launch read again, and which addresses they share: what caches and atomics make of a launch.

Of each chunk of blocks the first block is watched. Its sectors, in the order in which its warps asked for them, give
the times between two reads of one sector, and these the share of reads that a cache of any size serves: a cache that
holds the lines of the last w reads, on average, serves those that come again within w (Xiang, Ding, Luo, Bao, "HOTL: a
higher order theory of locality", ASPLOS 2013). Other blocks only take their part of the cache.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from warplab.simulator.constants import SECTOR_BYTES
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.observer import NOBODY, Observer
from warplab.simulator.translate.block_writer import Site

MOST_READS = 1 << 18  # of a watched block; longer loops repeat themselves
MOST_BLOCKS = 16
_MOST_KNOWN = 256
MOST_KEPT = 1 << 18  # reads of a launch, 2 MB; of more the reuse is computed at once
WHOLE = 0.9  # of an array's sectors, from which on it counts as read whole
ALL_OVER = 0.25  # of an array, between the quartiles of places in it; of places anywhere it is a half
UP = 0.2  # share of blocks that read further on than the one before, or back, at least, where they read anywhere
CAPACITIES = tuple(1 << k for k in range(11, 19))  # bytes of cache for one block
_WARP_BIT = 44
_PLACE = (1 << _WARP_BIT) - 1
_LINE_BITS, _SECTOR_BITS = 7, 5  # of the address within a line, a sector
_LINE = 1 << _LINE_BITS
_SECTORS_BIT, _PAGE_BITS = 2, 7  # of the sectors of a line, of 4 KiB


@dataclass
class Reuse:
    """What the watched blocks of a launch did in global memory; `blocks` of them.

    `hits`: by bytes of cache for one block, the share of the sectors read that it serves (0 to 1). `again`: the same
    for a cache without limit. `pair_bytes`: bytes in aligned pairs of sectors of which a block read one or both, per
    byte of the sectors: 1 where both, 2 where only one. `page_sectors`: how many sectors of each 4 KiB a block read, of
    those of which it read any.

    `ready`: by bytes of cache, the share of requests for whose sectors no warp waits. Warps advance in step: of what
    they ask for by one instruction the cache has a sector for all of them or for none. `ready_blocks`: the same where
    the block waits for all its warps. `fresh`, `fresh_blocks`: the shares that ask for a pair of sectors for which the
    block has not asked before. `in_step`: of the requests for new sectors, the share of those that another warp has
    just asked for. `whole`: the share of the sectors read that are new and of an array that the block reads whole, as
    other blocks will; `whole_requests`, `whole_blocks`: of requests that wait for nothing else. `roaming`: the share of
    the different sectors that lie all over an array, and `roamed`: the bytes of such arrays.

    `requests`: of loads; each needs `lines` lines of 128 bytes and `passes` passes through the banks of the L1, which
    are those of shared memory, on average.

    `atomics`: operations on global memory, lanes counted, but as one where a warp adds integers to one address, as the
    assembler lets one lane add their sum; `hottest_word`: the share of them that go to the most common address of all
    watched blocks; `atomic_addresses`, `atomic_lines`: how many addresses and lines differ. `atomic_requests`: of
    warps; `sectors`: how many differ in one of them, on average; `atomic_turns`: how many lanes meet at the most common
    word of one; `atomic_passes`: the same of each of its sectors, summed. `hottest`: the share of passes that go to the
    most common line; `even_lines`: how many lines used alike would be as crowded.
    """

    blocks: int = 0
    hits: dict[int, float] = field(default_factory=dict)
    again: float = 0.0
    pair_bytes: float = 1.0
    page_sectors: float = 1.0
    ready: dict[int, float] = field(default_factory=dict)
    ready_blocks: dict[int, float] = field(default_factory=dict)
    fresh: float = 1.0
    fresh_blocks: float = 1.0
    in_step: float = 0.0
    whole: float = 0.0
    whole_requests: float = 0.0
    whole_blocks: float = 0.0
    roaming: float = 0.0
    roamed: int = 0
    requests: int = 0
    lines: float = 1.0
    passes: float = 1.0
    atomics: int = 0
    hottest: float = 0.0
    hottest_word: float = 0.0
    atomic_addresses: int = 0
    atomic_lines: int = 0
    atomic_requests: int = 0
    sectors: float = 1.0
    atomic_passes: float = 1.0
    atomic_turns: float = 1.0
    even_lines: float = 1.0


class Reads(NamedTuple):
    """Sectors that a block reads, in order, the numbers of them in each request, and of requests in each
    instruction."""

    sectors: np.ndarray
    requests: np.ndarray
    instructions: np.ndarray


class ReuseWatch(Observer):
    """Collects what a `Reuse` needs while a launch runs."""

    def __init__(self) -> None:
        self.streams: list[list[Reads]] = []  # of each block
        self.atomics: list[tuple[np.ndarray, np.ndarray]] = []  # numbers of requests, addresses
        self.requests = self.lines = self.passes = 0  # of loads
        self._room = self._atomic_requests = 0
        # By width, lanes and their distances from the start of a line: what `_examined` returns, from there on.
        self._known: dict[tuple[int, bytes, bytes], tuple[np.ndarray, np.ndarray, list[int]]] = {}

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

    def wants(self, event: str, space: str = "") -> int | None:
        return self.threads if space == "global" and self._room > 0 else 0

    def add(self, sectors: np.ndarray, requests: int, lines: int, passes: int) -> None:
        """Do what `load` does for several loads, in order: the sectors that warps read of global memory, marked as in
        `machine_access`, the requests, and the sums of their lines and of their passes through the banks."""
        begins = np.flatnonzero(sectors & 2)
        firsts = (begins, sectors.size), (np.flatnonzero(sectors[begins] & 1), begins.size)
        self.streams[-1].append(Reads(sectors >> 2, *(np.diff(first, append=n) for first, n in firsts)))
        self._room -= sectors.size
        self.requests, self.lines, self.passes = self.requests + requests, self.lines + lines, self.passes + passes

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
            found, sizes, *costs = self._examined(site, (numbers >> 5) << _WARP_BIT, places)
            self._known[key] = found - (start >> _SECTOR_BITS), sizes, costs
        found, sizes, (lines, requests, passes) = self._known[key]
        self.streams[-1].append(Reads(found + (start >> _SECTOR_BITS), sizes, np.array([sizes.size])))
        self._room -= found.size
        self.lines, self.requests, self.passes = self.lines + lines, self.requests + requests, self.passes + passes

    def _examined(
        self, site: Site, warps: np.ndarray, places: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, int, int, int]:
        """Return the sectors of each warp once, warp after warp; how many each has; lines; requests; and the passes in
        which the banks give what each of these asks for."""
        keys = np.unique(warps | (places >> _SECTOR_BITS & _PLACE))
        wide = max(4, 1 << (site.width - 1).bit_length())
        pieces = np.unique(warps | (places // wide & _PLACE))
        # Pieces of one warp that lie in the same banks come one after the other.
        banks = (pieces >> _WARP_BIT) * _LINE + pieces % max(1, _LINE // wide)
        of_banks, times = np.unique(banks, return_counts=True)
        starts = np.flatnonzero(np.concatenate([[True], of_banks[1:] // _LINE != of_banks[:-1] // _LINE]))
        lines = keys >> _SECTORS_BIT
        different = 1 + int(np.count_nonzero(lines[1:] != lines[:-1]))
        sizes = np.unique(keys >> _WARP_BIT, return_counts=True)[1]
        return keys & _PLACE, sizes, different, starts.size, int(np.maximum.reduceat(times, starts).sum())

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
        arrays = [] if self.chunk is None else self.chunk.device.memory.extents()
        self.chunk = None  # and with it the launch's memory
        means = (self.lines / self.requests, self.passes / self.requests) if self.requests else (1.0, 1.0)
        profile.watched = Watched(self.streams, self.atomics, self.requests, *means, arrays)
        if profile.watched.reads > MOST_KEPT:
            _ = profile.watched.reuse  # now, so that what was seen need not be kept


class Watched:
    """What the watched blocks read, in order, and their atomics' addresses, until somebody asks for the `reuse`."""

    def __init__(
        self,
        streams: list[list[Reads]],
        atomics: list[tuple[np.ndarray, np.ndarray]],
        requests: int = 0,
        lines: float = 1.0,
        passes: float = 1.0,
        arrays: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._streams, self._atomics = streams, atomics
        self._requests, self._lines, self._passes = requests, lines, passes
        self._arrays = [(start >> _SECTOR_BITS, -(-end >> _SECTOR_BITS)) for start, end in arrays]

    @property
    def reads(self) -> int:
        """Return how many sectors and addresses are kept."""
        atomics = sum(places.size for _, places in self._atomics)
        return sum(part.sectors.size for parts in self._streams for part in parts) + atomics

    @functools.cached_property
    def reuse(self) -> Reuse:
        """Return what was seen, averaged over the watched blocks, each with the weight of its reads."""
        none = dict.fromkeys(CAPACITIES, 0.0)
        found = Reuse(len(self._streams), none, ready=none.copy(), ready_blocks=none.copy())
        found.requests, found.lines, found.passes = self._requests, self._lines, self._passes
        reads = sectors = pairs = pages = whole = 0
        each: list[np.ndarray] = []
        waits = np.zeros((len(CAPACITIES) + 5, 2))  # as `_waits` returns
        for parts in self._streams:
            if not parts:
                continue
            all_reads = Reads(*map(np.concatenate, zip(*parts, strict=True)))
            stream = all_reads.sectors
            reads += stream.size
            for capacity, share in hit_shares(stream).items():
                found.hits[capacity] += share * stream.size
            distinct = np.unique(stream)
            sectors += distinct.size
            pairs += np.unique(distinct >> 1).size
            pages += np.unique(distinct - distinct[0] >> _PAGE_BITS).size  # wherever the arrays begin
            each.append(distinct)
            wholly = self._wholly_read(stream, distinct)
            whole += np.unique(stream[wholly]).size
            waits += _waits(all_reads, wholly)
        if reads:
            found.hits = {capacity: share / reads for capacity, share in found.hits.items()}
            found.again = 1 - sectors / reads
            found.pair_bytes = 2 * pairs / sectors
            found.page_sectors = sectors / pages
            found.whole = whole / reads
            roaming, roamed = self._roamed(each)
            found.roaming, found.roamed = roaming / sectors, SECTOR_BYTES * roamed
            found.in_step = 1 - waits[-3, 0] / max(1, waits[-2, 0])
            shares = (waits / waits[-1]).tolist()
            *ready, (found.fresh, found.fresh_blocks), (found.whole_requests, found.whole_blocks) = shares[:-3]
            found.ready, found.ready_blocks = (
                dict(zip(CAPACITIES, shares, strict=True)) for shares in zip(*ready, strict=True)
            )
        if self._atomics:
            _fill_atomics(found, *map(np.concatenate, zip(*self._atomics, strict=True)))
        self._streams, self._atomics = [], []
        return found

    def _roamed(self, blocks: Sequence[np.ndarray]) -> tuple[int, int]:
        """Return how many sectors blocks read of arrays all over which they read, and the sectors of these arrays.

        Such is one over which each block's sectors lie, or where those of block after block jump up and down.
        `blocks`: the different sectors of each, in order.
        """
        sectors = size = 0
        for start, end in self._arrays:
            parts = [of[slice(*np.searchsorted(of, (start, end)))] for of in blocks]
            parts = [of for of in parts if of.size]
            if not parts:
                continue
            own = float(np.mean([of[3 * of.size // 4] - of[of.size // 4] for of in parts]))
            middles = np.array([of[of.size // 2] for of in parts])
            up = np.count_nonzero(np.diff(middles) > 0) / max(1, middles.size - 1)
            between = float(np.subtract(*np.quantile(middles, (0.75, 0.25)))) if UP <= up <= 1 - UP else 0.0
            if max(own, between) > ALL_OVER * (end - start):
                sectors += sum(of.size for of in parts)
                size += end - start
        return sectors, size

    def _wholly_read(self, stream: np.ndarray, distinct: np.ndarray) -> np.ndarray:
        """Return for each read whether it is of an array that a block reads whole. `distinct`: all sectors in order."""
        result = np.zeros(stream.size, bool)
        for start, end in self._arrays:
            first, last = np.searchsorted(distinct, (start, end))
            if last - first > WHOLE * (end - start):
                result |= (stream >= start) & (stream < end)
        return result


def _summed(warps: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keep, of warps whose lanes all have one place, only the first lane."""
    starts = np.flatnonzero(np.concatenate([[True], warps[1:] != warps[:-1]]))
    same = np.minimum.reduceat(places, starts) == np.maximum.reduceat(places, starts)
    kept = ~np.repeat(same, np.diff(np.append(starts, warps.size)))
    kept[starts] = True
    return warps[kept], places[kept]


def _fill_atomics(found: Reuse, requests: np.ndarray, addresses: np.ndarray) -> None:
    """Write into `found` what atomics at `addresses` share, the lanes of request after request."""
    of_words = np.unique(addresses, return_counts=True)[1]
    order = np.lexsort((addresses, requests))
    requests, addresses = requests[order], addresses.view(np.int64)[order]
    new = np.concatenate([[True], requests[1:] != requests[:-1]])  # request, and so on
    new_sector = new | _changes(addresses >> _SECTOR_BITS)
    words = np.flatnonzero(new | _changes(addresses))
    lanes = np.diff(words, append=addresses.size)  # that meet at a word
    turns, passes = (np.maximum.reduceat(lanes, np.searchsorted(words, np.flatnonzero(of))) for of in (new, new_sector))
    of_lines = np.bincount(np.unique(addresses[new_sector] >> _LINE_BITS, return_inverse=True)[1], passes)
    number, every = turns.size, float(passes.sum())
    found.atomics, found.atomic_requests = addresses.size, number
    found.hottest_word, found.hottest = of_words.max() / addresses.size, of_lines.max() / every
    found.atomic_addresses, found.atomic_lines = of_words.size, of_lines.size
    found.sectors = passes.size / number
    found.atomic_passes, found.atomic_turns = every / number, float(turns.sum()) / number
    # Two passes drawn from all go to one line as often as if so many lines were used alike (Simpson, 1949).
    met = float(of_lines @ (of_lines - 1))
    found.even_lines = min(of_lines.size, every * (every - 1) / met) if met else of_lines.size


def _changes(numbers: np.ndarray) -> np.ndarray:
    return np.concatenate([[True], numbers[1:] != numbers[:-1]])


def hit_shares(stream: np.ndarray) -> dict[int, float]:
    """Return, for each of CAPACITIES, the share of a stream of sector numbers that such a cache serves.

    The first read of a sector is never served.
    """
    again = np.sort(_times(stream)[2])
    return {
        capacity: float(np.searchsorted(again, window, side="right") / stream.size)
        for capacity, window in _windows(stream).items()
    }


def _windows(stream: np.ndarray) -> dict[int, float]:
    """Return, for each of CAPACITIES, how many reads it takes until such a cache has lost a sector.

    The cache has room for lines of four sectors, of which it fetches those that are asked for, and gives up the line
    that was read least recently.
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
    result = {}
    for capacity in CAPACITIES:
        held = capacity // (SECTOR_BYTES << _SECTORS_BIT)
        result[capacity] = float(n) if footprint[-1] <= held else float(np.interp(held, footprint, windows))
    return result


def _waits(reads: Reads, wholly: np.ndarray) -> np.ndarray:
    """Count requests (first column) and instructions (second) by rows: by each of CAPACITIES those whose sectors are
    all there; those that ask for a new pair of sectors; for new sectors of `wholly` read arrays and no others; for
    sectors that nobody has asked for, not even in the same instruction; for new sectors; all."""
    stream, of_request, of_instruction = reads
    calls = np.repeat(np.repeat(np.arange(of_instruction.size), of_instruction), of_request)
    requests, instructions = (np.cumsum(of) - of for of in (of_request, of_instruction))
    windows = np.array(list(_windows(stream).values()))[:, None]
    since, never = _since(stream, calls), stream.size + 1
    of_reads = (
        since,
        np.where(wholly & (since == never), 0, since),
        _since(stream >> 1, calls),
        _since(stream, np.arange(stream.size)),
    )
    of_requests = np.array([np.maximum.reduceat(one, requests) for one in of_reads])
    columns = []
    for longest, others, pairs, own in (of_requests, np.maximum.reduceat(of_requests, instructions, axis=1)):
        new = longest == never
        counted = (pairs == never, new & (others < never), own == never, new)
        columns.append([*np.count_nonzero(longest <= windows, axis=1), *map(np.count_nonzero, counted), new.size])
    return np.array(columns).T


def _since(stream: np.ndarray, calls: np.ndarray) -> np.ndarray:
    """Return for each number how many places before it stands outside of its call; more than there are for nowhere."""
    order = np.argsort(stream, kind="stable")
    numbers, of = stream[order], calls[order]
    same = np.concatenate([[False], numbers[1:] == numbers[:-1]])
    begins = ~same | np.concatenate([[True], of[1:] != of[:-1]])
    first = np.maximum.accumulate(np.where(begins, np.arange(stream.size), 0))  # of the same number in the same call
    result = np.full(stream.size, stream.size + 1)
    known = same[first]
    result[order[known]] = (order - order[first - 1])[known]
    return result


def _times(stream: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each number's first place in a stream, its last from the end, and the times between its places."""
    order = np.argsort(stream, kind="stable")
    same = stream[order][1:] == stream[order][:-1]
    first = order[np.concatenate([[True], ~same])] + 1
    last = stream.size - order[np.concatenate([~same, [True]])]
    return first, last, (order[1:] - order[:-1])[same]
