"""How many times threads went round each loop, from one entry to the next.

The totals alone do not tell a loop of 7 and one of 9 trips from two of 8. Where an assembler unrolls, that decides how
many trips go through the unrolled code and how many through what is left.
"""

from collections.abc import Sequence

import numpy as np

from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.translate.basic_blocks import Block, entered, loops


class TripCounts:
    """Counts trips while blocks of code run. `watched`: the blocks that `see` is to be told of.

    `found`: for the head of each loop, how many threads went round it how often; entering again counts again.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.ends = loops(blocks)
        self.found: dict[int, dict[int, int]] = {head: {} for head in self.ends}
        entries = {block.index: entered(block, self.ends) for block in blocks}
        self._entries = {number: heads for number, heads in entries.items() if heads}
        self.watched = frozenset((*self.ends, *self._entries))
        self._lanes = 0
        self._begin(0)

    def _begin(self, lanes: int) -> None:
        self._lanes = lanes
        self._all = dict.fromkeys(self.ends, 0)  # trips of all lanes
        self._own: dict[int, np.ndarray] = {}  # trips of single lanes beyond these
        self._latest: dict[int, tuple[Group, int]] = {}  # trips of the group that was the last to go round

    def see(self, number: int, group: Group) -> None:
        """Note that `group` is about to run the block `number`."""
        if group.chunk.lanes != self._lanes:
            self._begin(group.chunk.lanes)
        for head in self._entries.get(number, ()):
            self._end(head, group)
        if number in self.ends:
            latest = self._latest.get(number)
            if latest is not None and latest[0] is group:
                self._latest[number] = group, latest[1] + 1
            else:
                self._settle(number)
                self._latest[number] = group, 1

    def own(self, head: int, lanes: int) -> np.ndarray:
        """Return the trips of each of the chunk's lanes since it entered the loop, int64, to be counted on in place
        until another method is called."""
        if lanes != self._lanes:
            self._begin(lanes)
        self._settle(head)
        own = self._own.setdefault(head, np.zeros(lanes, np.int64))
        own += self._all[head]
        self._all[head] = 0
        return own

    def add(self, ended: np.ndarray) -> None:
        """Count loops that ended. `ended`: rows of a loop's head, trips, and how many threads went round so often."""
        for head, trips, threads in ended.tolist():
            self.found[head][trips] = self.found[head].get(trips, 0) + threads

    def end_chunk(self) -> None:
        """Note that all lanes have ended."""
        for head in self.ends:
            self._end(head, None)
        self._begin(0)

    def _settle(self, head: int) -> None:
        latest = self._latest.pop(head, None)
        if latest is None:
            return
        group, trips = latest
        if group.lanes is None:
            self._all[head] += trips
        else:
            if head not in self._own:
                self._own[head] = np.zeros(self._lanes, np.int64)
            self._own[head][group.lanes] += trips

    def _end(self, head: int, group: Group | None) -> None:
        """End the trips of `group` (None: of all lanes) so far: those of an entry that is over."""
        self._settle(head)
        own, every, found = self._own.get(head), self._all[head], self.found[head]
        if own is None and not every:
            return
        if group is None or group.lanes is None:
            if own is None:
                found[every] = found.get(every, 0) + self._lanes
            else:
                self._add(found, own + every)
            self._all[head] = 0
            self._own.pop(head, None)
            return
        if own is None:
            own = self._own[head] = np.zeros(self._lanes, np.int64)
        self._add(found, own[group.lanes] + every)
        own[group.lanes] = -every

    @staticmethod
    def _add(found: dict[int, int], trips: np.ndarray) -> None:
        for number, lanes in zip(*np.unique(trips, return_counts=True), strict=True):
            if number:
                found[int(number)] = found.get(int(number), 0) + int(lanes)
