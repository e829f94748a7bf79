"""Adds what a single lane did in one run through a loop (`run.serial_runs`) to the counters of a launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warplab.simulator.count.launch_counting import Counting
from warplab.simulator.memory.lane_groups import Group


def add_serial(
    counting: Counting,
    group: Group,
    blocks: Mapping[int, int],
    taken: Mapping[int, int],
    accesses: Mapping[tuple[int, str], int],
    rounds: Mapping[int, tuple[int, Sequence[int]]],
) -> None:
    """Count a run of `group`, a single lane.

    `blocks`: how often each block ran. `taken`: how often the branch at its end was taken. `accesses`: by site and
    space. `rounds`: as `TripCounts.see_rounds` takes them, by the head of the loop.
    """
    for number, n in blocks.items():
        counting.block_threads[number] += n
        counting.block_warps[number] += n
    for number, n in taken.items():
        counting.taken_threads[number] += n
        counting.taken_warps[number] += n
    for (index, space), n in accesses.items():
        row = counting.accesses.setdefault((index, space), [0, 0, 0, 0, 0])
        # One lane has one address in one sector, and no bank conflicts.
        shared = [0, 3, 4] if counting.translation.sites[index].counted_bytes else []
        for column in {"global": [0, 1, 2], "shared": shared}.get(space, [0]):
            row[column] += n
    for head, (visits, ends) in rounds.items():
        counting.trips.see_rounds(head, group, visits, ends)
