"""How much longer a launch takes because its threads' ways differ: SMs wait for their last warps.

Known is how many threads go round the busiest loop how often, and how often a warp does, which goes on for its longest
thread. A warp is taken as the longest of `independent` draws from the threads, so many that the mean comes out right:
32 where a warp's threads have nothing to do with each other, 1 where they all do the same. Warps are taken to differ by
chance. Then blocks are dealt out: each SM has room for some, and takes the next when one has ended. Its warps advance
together, each as fast as alone or, where they are many, as fast as the busiest resource of the SM lets them.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from warplab.estimating.work import Uneven, Work

SMS = 8  # that are followed, of all
WAVES = 6  # of blocks that are followed; in longer launches the waves before add nothing but their own time
MOST_ENTRIES = 2.0  # of the loop in a thread; where it begins more often, the trips even out
MOST_WARPS = 20_000
SLACK = 0.05  # of the instructions, by which the machine's loops and the PTX's may differ
_SEED = 1


def independent(trips: dict[float, float], mean: float, most: int = 32) -> float:
    """Return how many draws have `mean` as the mean of their largest: 1 to `most`."""
    low, high = 1.0, float(most)
    if longest_of(trips, low) >= mean:
        return low
    if longest_of(trips, high) <= mean:
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if longest_of(trips, middle) < mean else (low, middle)
    return low


def longest_of(trips: dict[float, float], draws: float) -> float:
    """Return the mean of the largest of so many draws."""
    numbers, cumulated = _cumulated(trips)
    return float(np.sum(numbers * np.diff(cumulated**draws, prepend=0.0)))


def _cumulated(trips: dict[float, float]) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.array(sorted(trips))
    threads = np.cumsum([trips[n] for n in numbers])
    return numbers, threads / threads[-1]


def longer(work: Work, times: float) -> Work:
    """Return the code of a warp that goes round the uneven loop so many times as often: the machine's loops with most
    instructions, until they have the loop's share."""
    assert work.uneven is not None
    of_loops: dict[int, float] = {}
    for row in work.rows:
        loop = work.code[row.block].loop
        of_loops[loop] = of_loops.get(loop, 0.0) + row.warps
    of_loops.pop(-1, None)
    left, loops = (work.uneven.share - SLACK) * work.instructions, set()
    while left > 0 and of_loops:
        loops.add(most := max(of_loops, key=of_loops.__getitem__))
        left -= of_loops.pop(most)
    code = (replace(one, warps=one.warps * (times if one.loop in loops else 1.0)) for one in work.code)
    return replace(work, code=tuple(code))


def stretch(
    uneven: Uneven | None, *, blocks: float, warps: int, resident: int, sms: int, alone: float, each: float, knee: float
) -> float:
    """Return the time of a launch over the time it would take if its warps were alike, at least 1.

    `blocks`: of the grid, each of `warps` warps; `resident` fit on one of `sms` SMs. `alone`: cycles of a warp by
    itself. `each`: cycles of a warp for which it needs the busiest resource of an SM. `knee`: of the bend between both.
    """
    if uneven is None or uneven.entries > MOST_ENTRIES or uneven.mean <= 0 or alone <= 0:
        return 1.0
    followed = min(SMS, sms)
    number = round(min(blocks * followed / sms, followed * resident * WAVES, MOST_WARPS / warps))
    if number < 1:
        return 1.0
    draws = independent(uneven.trips, uneven.mean)
    numbers, cumulated = _cumulated(uneven.trips)
    rng = np.random.default_rng(_SEED)
    drawn = numbers[np.searchsorted(cumulated, rng.random((number, warps)) ** (1 / draws), side="left")]
    lengths = 1 - uneven.share + uneven.share * drawn / uneven.mean
    lengths /= lengths.mean()
    took = dealt(lengths, followed, resident, alone, each, knee)
    alike = dealt(np.ones_like(lengths), followed, resident, alone, each, knee)
    waves = blocks / (sms * resident)
    before = max(0.0, waves - number / (followed * resident)) * alike / max(1.0, number / (followed * resident))
    return max(1.0, (before + took) / (before + alike))


def dealt(lengths: np.ndarray, sms: int, resident: int, alone: float, each: float, knee: float) -> float:
    """Return cycles until all blocks have ended. `lengths`: work of each warp of each block, 1 for the average."""
    waiting = iter(lengths)
    units = [_Sm(resident, alone, each, knee) for _ in range(sms)]
    for _ in range(resident):
        for unit in units:
            unit.take(next(waiting, None))
    agenda = [(unit.next_end(), number) for number, unit in enumerate(units) if unit.active]
    heapq.heapify(agenda)
    time = 0.0
    while agenda:
        time, number = heapq.heappop(agenda)
        unit = units[number]
        for _ in range(unit.advance(time)):
            unit.take(next(waiting, None))
        if unit.active:
            heapq.heappush(agenda, (unit.next_end(), number))
    return time


class _Sm:
    """One SM. All its warps advance alike, so a warp ends when the advance since it began is its length."""

    def __init__(self, resident: int, alone: float, each: float, knee: float) -> None:
        self.alone, self.each, self.knee = alone, each, knee
        self.time = self.way = 0.0
        self.ends: list[tuple[float, int]] = []  # way at which a warp ends, its block
        self.left: dict[int, int] = {}  # warps of each block that still run
        self._number = 0

    @property
    def active(self) -> int:
        return len(self.ends)

    def take(self, lengths: Sequence[float] | None) -> None:
        """Begin a block; None for none."""
        if lengths is None:
            return
        self._number += 1
        self.left[self._number] = len(lengths)
        for length in lengths:
            heapq.heappush(self.ends, (self.way + float(length), self._number))

    def _cycles(self) -> float:
        """Return what a unit of way takes at present."""
        shared = self.each * self.active
        larger, smaller = max(self.alone, shared), min(self.alone, shared)
        return larger * (1 + (smaller / larger) ** self.knee) ** (1 / self.knee)

    def next_end(self) -> float:
        """Return the time at which the next warp ends."""
        return self.time + (self.ends[0][0] - self.way) * self._cycles()

    def advance(self, time: float) -> int:
        """Go on until `time`, at which the next warp ends; return how many blocks have ended."""
        self.time, self.way = time, self.ends[0][0]
        ended = 0
        while self.ends and self.ends[0][0] <= self.way:
            _, block = heapq.heappop(self.ends)
            self.left[block] -= 1
            ended += self.left[block] == 0
        return ended
