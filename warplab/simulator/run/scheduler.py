"""Which lanes run next: groups of lanes at basic blocks, the lowest block first.

The lanes of a chunk that stand at the same block form one group and run it together. Because the lowest block goes
first, lanes that diverged at a branch reconverge at the block where the two sides join, as a compiler lays them out.
Barriers (`barriers`) and warp-wide instructions (`warp_convergence`) hold lanes back until the others arrive.

Scheduling "volta": each thread has its own program counter. Lanes that have waited in vain for many steps while others
loop get a turn, as the hardware gives every thread one sooner or later: a thread that spins on a lock cannot starve the
thread that holds it. Scheduling "pascal": one program counter per warp. Lanes that left a loop wait for those still in
it, whatever they wait for, and no lane can be held back at a `__syncwarp` for others of its warp.
"""

import time
from collections.abc import Iterator

import numpy as np

from warplab.simulator.errors import SimulatorError
from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.run import counted_loops
from warplab.simulator.run.barriers import Barriers
from warplab.simulator.run.launch_limits import COOPERATIVE_HINT, seeks_grid_barrier
from warplab.simulator.run.machine_runs import MachineRuns
from warplab.simulator.run.narrow_runs import NarrowRuns
from warplab.simulator.run.standstill import Standstill, deadlock, limit_error
from warplab.simulator.run.warp_convergence import WarpConvergence
from warplab.simulator.translate.basic_blocks import BARRIER, BRANCH, EXIT, GUARD, JUMP, TRAP, WARP_SYNC, leads_on

# Steps (blocks run) for which waiting lanes are left waiting; fewer once the kernel is seen to spin.
_PATIENCE, _PATIENCE_SPINNING = 4096, 64
_PATH = 1_000_000  # instructions along a chunk's path
_LOOKS = 16  # at the clock, in the time of a budget


class Scheduler:
    """Runs one chunk to its end. `budget`: thread instructions; with `seconds` as many again where lanes have got on in
    the meantime, and where they have not, more until so many seconds of processor time have passed. `path_budget`:
    instructions along its path; None: a million, and more for loops that count. With a `deadline` (of
    time.thread_time) both budgets are given again until then."""

    def __init__(
        self,
        chunk,
        budget: int,
        path_budget: int | None,
        policy: str,
        seconds: float | None = None,
        deadline: float | None = None,
    ) -> None:
        self.chunk, self.policy = chunk, policy
        chunk.scheduler = self
        self.counted = path_budget is None and deadline is None
        self.budget, self.path_budget = budget, _PATH if path_budget is None else path_budget
        self.share, self.seconds = budget, seconds
        self.path_share, self.deadline = self.path_budget, deadline
        self.began = time.thread_time()  # or when lanes had got on
        # Since the budget was last looked at, have lanes come to where no way leads back from?
        self.advanced = False
        self._one_way: dict[int, bool] = {}  # of branches, by block
        self.turn = self.executed = 0
        self.alone = False  # is this the only launch, so that nobody else changes its memory?
        self.stuck = False
        self.late: frozenset[int] = frozenset()  # blocks before which others get a turn
        self.pending: dict[int, list[np.ndarray]] = {}
        # For each warp, the bits of the lanes that have not ended.
        self.alive = ((np.uint64(1) << chunk.warp_sizes.astype(np.uint64)) - np.uint64(1)).astype(np.uint32)
        # Of those that have, the ones that ended in other code than the rest of their warp went on to.
        self.ended_elsewhere = np.zeros_like(self.alive)
        self.convergence = WarpConvergence(self)
        self.barriers = Barriers(self)
        self.waited = self.grace = 0
        self.loops = chunk.translation.waiting_loops
        self.spinning: frozenset[int] = frozenset()  # blocks whose lanes stand aside while `grace` lasts
        self.latest_turn = -1  # block of the lanes that had the latest turn
        self.patience = _PATIENCE
        self.standstill = Standstill(chunk)
        self.gathering: dict[int, np.ndarray] = {}  # by block: lanes at a barrier that wait for the rest of their warp

    def run(self) -> int:
        """Run to the end. Returns the number of thread instructions executed. Raises SimulatorError."""
        for _ in self.turns():
            pass
        return self.executed

    def turns(self) -> Iterator[tuple[int, Group]]:
        """Run to the end, in turns: other chunks may run in between. A turn ends after `turn` instructions along the
        path, if that is set, and before blocks that are `late`. Yields the block and the group that come next."""
        chunk, translation = self.chunk, self.chunk.translation
        blocks, functions, registers = translation.blocks, translation.functions, chunk.registers
        lengths = [len(block.counted) for block in blocks]
        pending, observers, late = self.pending, chunk.observers, self.late
        executed = path = 0
        turn_ends = min(self.turn, self.path_budget) if self.turn else self.path_budget
        current, group = 0, chunk.everyone
        moving, narrow, machine = self.standstill.moving, NarrowRuns(self), MachineRuns(self)
        while True:
            if pending:
                current, group = self._next(current, group)
                if self.stuck:
                    raise deadlock(self, blocks[current], group, path)
            elif group is None:
                if not self._idle():
                    self.executed = executed
                    return
                continue
            block = blocks[current]
            if block.warp_wide is not None:
                group = self.convergence.converge(block, group)
                if group is None:
                    continue
            if narrow.possible:
                these = narrow.run(current, group, executed, path, turn_ends)
                if these is not None:
                    current, group, instructions, distance = these
                    executed, path = executed + instructions, path + distance
                    continue
            executed += group.count * lengths[current]
            path += lengths[current]
            if executed > self.budget:
                self._allow_more(executed)
            if executed > self.budget or path > turn_ends or current in late:
                if path > self.path_budget and self.counted and counted_loops.ends(chunk, block, group):
                    self.path_budget = path + max(self.path_share, path // 4)
                if executed > self.budget or path > self.path_budget:
                    if self.deadline is None or time.thread_time() > self.deadline:
                        raise limit_error(self, block, group, executed, path)
                    self.budget, self.path_budget = executed + self.share, path + self.path_share
                if self.turn or current in late:
                    yield current, group
                turn_ends = min(path + self.turn, self.path_budget) if self.turn else self.path_budget
            if current in moving:
                self.standstill.moved = True
            elif moving and not pending and self.alone and self.standstill.reached_by_all(current, group):
                raise deadlock(self, block, group, path)
            for notify in observers.block:
                notify(current, group, path - lengths[current])
            chunk.group, chunk.clock = group, path
            if machine.possible and group.lanes is None:
                result = machine.run(current, functions[current])
            else:
                result = functions[current](chunk, registers, group.lanes)
            end = block.end
            if end in (BRANCH, GUARD):
                current, group = self._branch(block, group, result)
            elif end == JUMP:
                current = block.target
            elif end == EXIT:
                self._exit(group, elsewhere=True)
                group = None
            elif end == BARRIER:
                group = self._gathered(block, group)
                if group is not None:
                    current, group = self.barriers.arrive(block, group)
            elif end == WARP_SYNC:
                current, group = self.convergence.sync(block, group)
            elif end == TRAP:
                reason = "" if chunk.launch.workspace or not seeks_grid_barrier(translation) else COOPERATIVE_HINT
                raise SimulatorError("the kernel stopped itself (trap)", reason=reason, **self.where(block, group))
            else:
                current += 1

    def _allow_more(self, executed: int) -> None:
        """Raise the budget if the chunk may go on."""
        if self.seconds is None:
            return
        if self.advanced:
            self.budget, self.advanced, self.began = executed + self.share, False, time.thread_time()
        elif self.worked < self.seconds:
            self.budget = executed + self.share // _LOOKS

    @property
    def worked(self) -> float:
        """Return the seconds of processor time since lanes last had got on when the budget was looked at."""
        return time.thread_time() - self.began

    def waiting(self) -> list[np.ndarray]:
        """Return lanes held back at barriers and warp-wide instructions, as sorted arrays."""
        warp_wide = (
            *self.convergence.held.values(),
            *self.convergence.syncing.values(),
            *self.convergence.warpgroups.held.values(),
        )
        return [*warp_wide, *self.gathering.values(), *self.barriers.waiting]

    def put(self, number: int, lanes: np.ndarray) -> None:
        """Let lanes continue at a block when its turn comes."""
        self.pending.setdefault(number, []).append(lanes)

    def merged(self, parts: list[np.ndarray]) -> Group:
        lanes = parts[0]
        if len(parts) > 1:
            lanes = np.concatenate(parts)
            lanes.sort()
        return self.chunk.everyone if lanes.shape[0] == self.chunk.lanes else Group(self.chunk, lanes)

    def _next(self, current: int, group: Group | None) -> tuple[int, Group]:
        """Return the group at the lowest block or, after a long wait, one that has been waiting."""
        pending = self.pending
        lowest = min(pending)
        if self.grace and group is not None:  # spinning lanes stand aside; the others run in the usual order
            lowest = min((number for number in pending if number not in self.spinning), default=current + 1)
        if group is None or lowest <= current:
            if group is not None:
                self.put(current, group.all_lanes)
            self.grace = 0 if group is None else self.grace
            current, group = lowest, self.merged(pending.pop(lowest))
            if current in self.spinning:  # these stood aside and may look again
                self.waited, self.spinning = 0, frozenset()
                return current, group
            if current not in self.loops or not pending:  # else lanes merely met in the loop in which they wait
                self.waited = 0
                return current, group
        else:
            self.grace = max(0, self.grace - 1)
        self.waited += 1
        if (self.waited <= self.patience or self.grace) and not self.chunk.waits_in_vain:
            return current, group
        self.waited, self.chunk.waits_in_vain = 0, False
        if self.alone and self.standstill.possible:
            standing = {**pending, current: [*pending.get(current, ()), group.all_lanes]}
            self.stuck = self.standstill.reached(standing)
        loop = self.loops.get(current, frozenset((current,)))
        turn = self._starved(group, loop)
        if turn is None:
            return current, group
        self.patience = self.grace = _PATIENCE_SPINNING
        self.spinning = loop.union(self.pending)
        self.latest_turn = turn[0]
        if turn[0] not in self.loops:
            self.chunk.mbarriers.all_wait = 0
        self.put(current, group.all_lanes)
        return turn

    def _starved(self, group: Group, loop: frozenset[int]) -> tuple[int, Group] | None:
        """Take from `pending` lanes that may run before `group`, which spins: those outside its loop or, if there are
        none, others in it, which may have left an inner loop.

        Blocks take turns: lanes that spin in other loops must not keep the one for which all wait from running.
        """
        others = self.pending.keys() - loop or self.pending.keys()
        for number in sorted(others, key=lambda number: (number <= self.latest_turn, number)):
            lanes = self.merged(self.pending[number]).all_lanes
            if self.policy == "pascal":  # lanes of the same warp come first
                free = ~np.isin(self.chunk.warp_of[lanes], self.chunk.warp_of[group.all_lanes])
                lanes, rest = lanes[free], lanes[~free]
            else:
                rest = lanes[:0]
            if lanes.size:
                del self.pending[number]
                if rest.size:
                    self.put(number, rest)
                return number, self.merged([lanes])
        return None

    def _branch(self, block, group: Group, taken: np.ndarray) -> tuple[int, Group]:
        """Split a group at a branch: return where it continues, and put the other lanes aside or let them end."""
        following = block.index + 1
        count = int(np.count_nonzero(taken))
        if count == 0:
            return following, group
        if count == taken.shape[0]:
            for notify in self.chunk.observers.jump:
                notify(block, group)
            return block.target, group
        if group.lanes is None:
            to_target, onward = np.flatnonzero(taken), np.flatnonzero(~taken)
        else:
            to_target, onward = group.lanes[taken], group.lanes[~taken]
        there, here = Group(self.chunk, to_target), Group(self.chunk, onward)
        for notify in self.chunk.observers.diverge:
            notify(block, group, there, here)
        blocks = self.chunk.translation.blocks
        self.advanced = self.advanced or self._leads_on(block)
        if blocks[block.target].only_ends:
            self._exit(there)
        elif blocks[following].only_ends and block.target > following:
            self._exit(here)
            return block.target, there
        else:
            self.put(block.target, to_target)
        return following, here

    def _leads_on(self, block) -> bool:
        if block.index not in self._one_way:
            self._one_way[block.index] = leads_on(self.chunk.translation.blocks, block)
        return self._one_way[block.index]

    def _gathered(self, block, group: Group) -> Group | None:
        """Return the lanes at a barrier, except where others of their warp may still arrive; None if no lane is left.

        Lanes can get ahead of others of their warp that spin, as at the end of a loop around atomicCAS, or by jumping
        straight back to the head of a loop. The compiler makes them reconverge before a barrier for whole warps.
        """
        held = self.gathering.pop(block.index, None)
        if held is not None:
            group = self.merged([held, group.all_lanes])
        if group.whole:
            return group
        aligned = block.last.opcode == "bar" or "aligned" in block.last.modifiers
        if not self.pending or not aligned:
            return group
        lanes, warp = group.all_lanes, self.chunk.warp_of[group.all_lanes]
        partial = (np.bincount(warp, minlength=self.chunk.warps) != self.chunk.warp_sizes)[warp]
        if not partial.any():
            return group
        self.gathering[block.index] = lanes[partial]
        return None if partial.all() else Group(self.chunk, lanes[~partial])

    def _exit(self, group: Group, elsewhere: bool = False) -> None:
        """End the lanes of a group. `elsewhere`: not merely at a guard such as `if (i >= n) return`."""
        self.advanced = True
        if group.lanes is None:
            self.alive[:] = 0
            return
        warp, bits = self.chunk.warp_of[group.lanes], np.uint32(1) << self.chunk.lane_of[group.lanes]
        np.bitwise_and.at(self.alive, warp, ~bits)
        if elsewhere:
            others = self.alive[warp] != 0
            np.bitwise_or.at(self.ended_elsewhere, warp[others], bits[others])

    def _idle(self) -> bool:
        """Let lanes go that waited for ended lanes, as nothing else can run. Raises if some would wait forever."""
        if self.convergence.wake() or self.barriers.wake():
            return True
        if self.gathering:  # the others did not arrive
            number = min(self.gathering)
            lanes = self.gathering.pop(number)
            self.barriers.arrive(self.chunk.translation.blocks[number], Group(self.chunk, lanes))
            return True
        self.convergence.check_none_left()
        self.barriers.check_none_left()
        return False

    def where(self, block, group: Group) -> dict:
        return self.chunk.where_block(block, 0 if group.lanes is None else int(group.lanes[0]))
