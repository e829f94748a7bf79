"""Adds what a few lanes did in one run through a loop (`run.narrow_runs`) to the counters of a launch."""

from collections.abc import Mapping, Sequence

import numpy as np

from warplab.simulator.count.launch_counting import Counting
from warplab.simulator.count.reuse import Reads, ReuseWatch


def add_blocks(counting: Counting, nodes: Sequence[int], blocks: np.ndarray) -> None:
    """Add `blocks`: per node threads and warps that ran it, those that took its branch, and warps that parted there."""
    lists = (
        counting.block_threads,
        counting.block_warps,
        counting.taken_threads,
        counting.taken_warps,
        counting.divergent,
    )
    for number, row in zip(nodes, blocks.tolist(), strict=True):
        for amounts, amount in zip(lists, row, strict=True):
            amounts[number] += amount


def add_accesses(counting: Counting, rows: Mapping[tuple[int, str], np.ndarray]) -> None:
    """Add `rows`: by site and space, what `Counting.accesses` holds."""
    for key, row in rows.items():
        own = counting.accesses.setdefault(key, [0, 0, 0, 0, 0])
        for k, amount in enumerate(row.tolist()):
            own[k] += amount


def add_trips(counting: Counting, ended: np.ndarray) -> None:
    """Count loops that ended. `ended`: rows of a loop's head, trips, and how many threads went round so often."""
    for head, trips, threads in ended.tolist():
        found = counting.trips.found[head]
        found[trips] = found.get(trips, 0) + threads


def add_reads(watch: ReuseWatch, sectors: np.ndarray, requests: int, lines: int, passes: int) -> None:
    """Do what `watch.load` does for several loads, in order: the sectors that warps read of global memory, marked as in
    `narrow_access`, the requests, and the sums of their lines and of their passes through the banks."""
    begins = np.flatnonzero(sectors & 2)
    sizes = (
        np.diff(first, append=n)
        for first, n in ((begins, sectors.size), (np.flatnonzero(sectors[begins] & 1), begins.size))
    )
    watch.streams[-1].append(Reads(sectors >> 2, *sizes))
    watch._room -= sectors.size
    watch.requests += requests
    watch.lines += lines
    watch.passes += passes
