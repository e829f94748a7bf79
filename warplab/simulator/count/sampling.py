"""Counters of a large launch from a sample of its blocks: which blocks run, and how their counters are scaled.

The sample consists of runs of neighbouring blocks: the first, the last, and others drawn from equal parts of the grid
between them. The first and last blocks, which often differ at the edge of the data, count once. The counters of the
others are scaled to the number of blocks between the ends. If those blocks all do the same, the result is exact.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from warplab.simulator.count.counters import Counts, LaunchProfile
from warplab.simulator.count.launch_counting import Counting, Touched, fill_footprint, summed
from warplab.simulator.count.reuse import MOST_BLOCKS
from warplab.simulator.observer import Observer
from warplab.simulator.translate.translation import Translation

_RUNS = 8  # at least, if the sample has that many blocks
_SEED = 1  # the same launch gets the same sample


class BlockRange(NamedTuple):
    """Blocks `first` to `first + blocks - 1`, which run together. `end`: they are the first or last of the grid."""

    first: int
    blocks: int
    end: bool


def split(total: int, step: int, wanted: int | None = None, cluster: int = 1, later: int = 0) -> list[BlockRange]:
    """Return the runs of a grid of `total` blocks, each of at most `step`: all blocks, or a sample of about `wanted`.

    All blocks run if a sample would hardly be smaller. `cluster`: blocks that always run together. `later`: of all
    blocks, those of a run behind the runs that `ReuseWatch` watches, if that is more.
    """
    if cluster > 1:
        wanted = None if wanted is None else max(1, wanted // cluster)
        runs = split(total // cluster, max(1, step // cluster), wanted, later=later // cluster)
        return [BlockRange(run.first * cluster, run.blocks * cluster, run.end) for run in runs]
    if wanted is None or wanted >= total:
        return _whole(total, step, later)
    length = max(1, min(step, wanted // _RUNS))
    between = max(1, wanted // length - 2)  # runs between the ends
    inner = total - 2 * length  # blocks between the ends
    if inner < between * length:
        return _whole(total, step, later)
    rng = np.random.default_rng(_SEED)
    runs = [BlockRange(0, length, True)]
    for number in range(between):
        start = length + number * inner // between
        room = (number + 1) * inner // between - number * inner // between - length
        runs.append(BlockRange(start + int(rng.integers(room + 1)), length, False))
    return [*runs, BlockRange(total - length, length, True)]


def _whole(total: int, step: int, later: int) -> list[BlockRange]:
    watched = min(total, MOST_BLOCKS * step)
    first, behind = range(0, watched, step), range(watched, total, max(step, later))
    return [BlockRange(start, min(of.step, total - start), True) for of in (first, behind) for start in of]


class Tally(Observer):
    """The counters of a launch that runs as `runs` out of `total` blocks."""

    def __init__(self, translation: Translation, runs: Sequence[BlockRange], total: int) -> None:
        self.runs, self.total = runs, total
        self.started = 0  # runs
        self.ends, self.between = Counting(translation), Counting(translation)
        self.between.touched = self.ends.touched  # both together touch the distinct memory
        # Sectors touched before two runs: the first of the second half, and the last one.
        self.touched: dict[int, dict[Touched, int]] = {len(runs) // 2: {}, len(runs) - 1: {}}

    def watch(self, chunk) -> Observer:
        """Return what counts the next run, whose blocks `chunk` holds."""
        number, self.started = self.started, self.started + 1
        if number in self.touched and len(self.runs) > 2 and not self.runs[1].end:
            self.touched[number] = self.ends.touched_sectors()
        return (self.ends if self.runs[number].end else self.between).watch(chunk)

    def end_launch(self, profile: LaunchProfile, finished: bool) -> None:
        """Write the counters into a profile, scaled to the whole launch; unscaled if an error has stopped it."""
        self.ends.fill(profile)
        if not finished:
            return
        ran = sum(run.blocks for run in self.runs)
        if ran == self.total:
            return
        profile.sampled = ran, self.total
        ran_between = sum(run.blocks for run in self.runs if not run.end)
        between = LaunchProfile(profile.kernel, profile.grid, profile.block)
        self.between.fill(between)
        _add_scaled(profile, between, self.total - (ran - ran_between), ran_between)
        if profile.flow is not None and between.flow is not None:
            profile.flow.add_scaled(between.flow, (self.total - (ran - ran_between)) / ran_between)
        fill_footprint(profile, self._all_sectors(ran))

    def _all_sectors(self, ran: int) -> dict[Touched, int]:
        """Return the sectors that the launch would touch if all blocks touched new ones at the second half's rate.

        That is exact if each block has its own memory, and if all share the same.
        """
        (start, before), (stop, after) = self.touched.items()
        blocks = sum(run.blocks for run in self.runs[start:stop])
        result = {}
        for key, sectors in self.ends.touched_sectors().items():
            new = after.get(key, 0) - before.get(key, 0)
            more = _scaled(new, self.total - ran, blocks)
            result[key] = min(sectors + more, self.ends.sectors_of(key))
        return result


def _scaled(n: int, blocks: int, run: int) -> int:
    return (n * blocks + run // 2) // run


def _add_scaled(profile: LaunchProfile, sampled: LaunchProfile, blocks: int, run: int) -> None:
    """Add to `profile` the counters of `sampled`, in which `run` blocks stand for `blocks`."""
    for where, counts in sampled.lines.items():
        more = Counts(**{name: _scaled(n, blocks, run) for name, n in counts.as_dict().items()})
        profile.lines[where] = profile.lines.get(where, Counts()) + more
    profile.lines = dict(sorted(profile.lines.items()))
    profile.counts = sum(profile.lines.values(), Counts())
    for ours, theirs in (
        (profile.line_mix, sampled.line_mix),
        (profile.line_tensor_operations, sampled.line_tensor_operations),
    ):
        for place, amounts in theirs.items():
            own = ours.setdefault(place, {})
            for name, n in amounts.items():
                own[name] = own.get(name, 0) + _scaled(n, blocks, run)
    profile.mix = summed(profile.line_mix)
    profile.tensor_operations = summed(profile.line_tensor_operations)
