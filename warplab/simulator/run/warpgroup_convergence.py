"""wgmma instructions hold a warpgroup's threads back until all four of its warps have arrived."""

import numpy as np

from warplab.simulator.errors import DivergentWarp
from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.run.warpgroups import NEEDS_WARPGROUP
from warplab.simulator.translate.warpgroup_instructions import THREADS


class WarpgroupConvergence:
    """Lanes of one chunk that are held back at wgmma instructions, at the start of a block of code."""

    def __init__(self, scheduler) -> None:
        self.scheduler, self.chunk = scheduler, scheduler.chunk
        self.held: dict[int, np.ndarray] = {}

    def converge(self, block, group: Group) -> Group | None:
        """Return the lanes whose whole warpgroup has arrived; the others are held until the rest arrives."""
        if block.index in self.held:
            group = self.scheduler.merged([group.all_lanes, self.held.pop(block.index)])
        if group.whole and self.chunk.threads % THREADS == 0:
            return group
        lanes = group.all_lanes
        complete = self._complete(lanes)
        if complete.all():
            return group
        self.held[block.index] = lanes[~complete]
        if self.scheduler.policy == "pascal":
            self.check_none_left()
        return Group(self.chunk, lanes[complete]) if complete.any() else None

    def _complete(self, lanes: np.ndarray) -> np.ndarray:
        """Return which of these lanes have the rest of their warpgroup with them, as far as it has not ended."""
        chunk, of_lane = self.chunk, self.chunk.warpgroups.of_lane
        alive = (self.scheduler.alive[chunk.warp_of] >> chunk.lane_of & 1).astype(bool)
        wanted = np.bincount(of_lane[alive], minlength=int(of_lane[-1]) + 1)
        here = np.bincount(of_lane[lanes], minlength=wanted.shape[0])
        return (here == wanted)[of_lane[lanes]]

    def wake(self) -> bool:
        """Release lanes whose warpgroup waited for ended lanes, as nothing else can run. True if there were any."""
        for number, lanes in sorted(self.held.items()):
            if self._complete(lanes).any():
                del self.held[number]
                self.scheduler.put(number, lanes)
                return True
        return False

    def check_none_left(self) -> None:
        """Raise DivergentWarp if lanes are still held: those they wait for will never arrive."""
        for number, lanes in sorted(self.held.items()):
            instruction = self.chunk.translation.blocks[number].warp_wide
            of_lane = self.chunk.warpgroups.of_lane
            here = int(np.count_nonzero(of_lane[lanes] == of_lane[lanes[0]]))
            raise DivergentWarp(
                f"`{instruction.text.split()[0].rstrip(';')}` waits for threads of its warpgroup that never come: "
                f"{here} of {THREADS} are there",
                reason=NEEDS_WARPGROUP,
                **self.chunk.where_instruction(instruction, int(lanes[0])),
            )
