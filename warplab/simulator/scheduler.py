"""Which lanes run next: groups of lanes at basic blocks, the lowest block first, and barriers where they wait.

The lanes of a chunk that stand at the same block form one group and run it together. Because the lowest block goes
first, lanes that went two ways at a branch meet again at the block where the ways join, as a compiler lays them out.
"""

from __future__ import annotations

import numpy as np

from .blocks import BARRIER, BRANCH, EXIT, GUARD, JUMP, TRAP
from .counters import WARP_SIZE
from .errors import DivergentBarrier, DivergentWarp, InstructionLimit, SimulatorError
from .program import Immediate

FULL_MASK = 0xFFFFFFFF
BANKS = 32  # of shared memory, 4 bytes wide


class Group:
    """Lanes that run together: sorted lane numbers, or None for all lanes of the chunk."""

    __slots__ = ("_active", "_breaks", "_warps", "chunk", "count", "lanes")

    def __init__(self, chunk, lanes: np.ndarray | None) -> None:
        self.chunk, self.lanes = chunk, lanes
        self.count = chunk.lanes if lanes is None else lanes.shape[0]
        self._warps = self._breaks = self._active = None

    @property
    def breaks(self) -> np.ndarray:
        """Places after which the next lane belongs to another warp."""
        if self._breaks is None:
            warps = self.chunk.warp_of if self.lanes is None else self.chunk.warp_of[self.lanes]
            self._breaks = np.flatnonzero(warps[1:] != warps[:-1])
        return self._breaks

    @property
    def warps(self) -> int:
        """Number of warps with a lane in the group."""
        if self._warps is None:
            self._warps = self.chunk.warps if self.lanes is None else self.breaks.shape[0] + 1
        return self._warps

    @property
    def active(self) -> np.ndarray:
        """For each lane, the bits of the lanes of its warp that are in the group; uint32."""
        if self._active is None:
            lane = self.chunk.lane_of if self.lanes is None else self.chunk.lane_of.take(self.lanes)
            starts = np.concatenate([[0], self.breaks + 1])
            masks = np.bitwise_or.reduceat(np.uint32(1) << lane, starts)
            self._active = np.repeat(masks, np.diff(np.append(starts, self.count)))
        return self._active

    def distinct(self, keys: np.ndarray) -> int:
        """Distinct keys in each warp, summed over warps; `keys` has an int64 entry a lane."""
        steps = keys[1:] - keys[:-1]
        breaks = self.breaks
        steps[breaks] = 1
        if steps.shape[0] and steps.min() < 0:  # not in order within a warp
            order = np.zeros(keys.shape[0], np.int64)
            order[breaks + 1] = 1
            keys = np.sort((np.cumsum(order) << 40) + keys)
            steps = keys[1:] - keys[:-1]
        return 1 + int(np.count_nonzero(steps))

    def bank_passes(self, words: np.ndarray, width: int) -> int:
        """Wavefronts of accesses to `width` words from word numbers `words` on, summed over warps.

        Each pass serves one word of each of the 32 banks; lanes that share a word share its pass.
        """
        if width == 1:
            steps = words[1:] - words[:-1]
            steps[self.breaks] = 1
            if (steps == 1).all():  # neighbours take neighbouring words
                return self.warps
        order = np.zeros(words.shape[0], np.int64)
        order[self.breaks + 1] = 1
        warp = np.cumsum(order)
        every = (words[:, None] + np.arange(width)).reshape(-1)
        bank = (np.repeat(warp, width) << 5) | (every & (BANKS - 1))
        keys = np.unique((bank << 32) | (every >> 5))
        return int(np.bincount(keys >> 32, minlength=BANKS * self.warps).reshape(-1, BANKS).max(axis=1).sum())


class Scheduler:
    """Runs one chunk to its end."""

    def __init__(self, chunk, budget: int, path_budget: int) -> None:
        self.chunk = chunk
        self.budget, self.path_budget = budget, path_budget
        self.pending: dict[int, list[np.ndarray]] = {}
        self.waiting: list[tuple[int, np.ndarray, int]] = []  # block to go on at, lanes, block of the barrier
        self.arrived = np.zeros(chunk.blocks, np.int64)
        self.held: dict[int, np.ndarray] = {}  # at a warp-wide instruction, lanes that wait for others of their warp
        # Per warp, bits of the lanes that have not ended.
        self.alive = ((np.uint64(1) << chunk.warp_sizes.astype(np.uint64)) - np.uint64(1)).astype(np.uint32)

    def run(self) -> int:
        """Returns the number of thread instructions executed. Raises SimulatorError."""
        chunk, translation = self.chunk, self.chunk.translation
        blocks, functions, registers = translation.blocks, translation.functions, chunk.registers
        lengths = [len(block.counted) for block in blocks]
        counting, pending = chunk.counting, self.pending
        executed = path = 0
        current, group = 0, chunk.everyone
        while True:
            if pending:
                lowest = min(pending)
                if group is None or lowest <= current:
                    if group is not None:
                        self._put(current, group)
                    current, group = lowest, self._merged(pending.pop(lowest))
            elif group is None:
                if self.held:
                    current, group = self._wake()
                elif self.waiting:
                    self._stuck()
                else:
                    return executed
            block = blocks[current]
            if block.meeting is not None:
                group = self._meet(block, group)
                if group is None:
                    continue
            executed += group.count * lengths[current]
            path += lengths[current]
            if executed > self.budget or path > self.path_budget:
                self._endless(block, group, path)
            if counting is not None:
                counting.block(current, group)
            chunk.group, chunk.clock = group, path
            result = functions[current](chunk, registers, group.lanes)
            end = block.end
            if end in (BRANCH, GUARD):
                current, group = self._branch(block, group, result)
            elif end == JUMP:
                current = block.target
            elif end == EXIT:
                group = self._exit(group)
            elif end == BARRIER:
                current, group = self._barrier(block, group)
            elif end == TRAP:
                raise SimulatorError("the kernel stopped itself (trap)", **self._where(block, group))
            else:
                current += 1

    def _put(self, number: int, group: Group) -> None:
        lanes = self.chunk.all_lanes if group.lanes is None else group.lanes
        self.pending.setdefault(number, []).append(lanes)

    def _merged(self, parts: list[np.ndarray]) -> Group:
        lanes = parts[0]
        if len(parts) > 1:
            lanes = np.concatenate(parts)
            lanes.sort()
        return self.chunk.everyone if lanes.shape[0] == self.chunk.lanes else Group(self.chunk, lanes)

    def _branch(self, block, group: Group, taken: np.ndarray) -> tuple[int, Group]:
        """Where the group goes on; the lanes that go the other way are put aside."""
        following = block.index + 1
        count = int(np.count_nonzero(taken))
        if count == 0:
            return following, group
        if count == taken.shape[0]:
            return block.target, group
        if group.lanes is None:
            there, here = np.flatnonzero(taken), np.flatnonzero(~taken)
        else:
            there, here = group.lanes[taken], group.lanes[~taken]
        there, here = Group(self.chunk, there), Group(self.chunk, here)
        if self.chunk.counting is not None and block.end == BRANCH:
            self.chunk.counting.divergent[block.index] += there.warps + here.warps - group.warps
        self._put(block.target, there)
        return following, here

    def _exit(self, group: Group) -> None:
        if group.lanes is None:
            self.alive[:] = 0
        else:
            np.bitwise_and.at(
                self.alive, self.chunk.warp_of[group.lanes], ~(np.uint32(1) << self.chunk.lane_of[group.lanes])
            )

    # -- warp-wide instructions ----------------------------------------------------------------------------------

    def _meet(self, block, group: Group) -> Group | None:
        """The lanes whose whole mask has arrived; the others are held until the rest comes."""
        chunk, number = self.chunk, block.index
        if number in self.held:
            before = chunk.all_lanes if group.lanes is None else group.lanes
            group = self._merged([before, self.held.pop(number)])
        mask = self._mask(block, group)
        if (
            group.lanes is None
            and chunk.lanes == WARP_SIZE * chunk.warps
            and mask.shape[0] == 1
            and mask[0] == FULL_MASK
        ):
            return group
        lanes = chunk.all_lanes if group.lanes is None else group.lanes
        missing = mask & self.alive[chunk.warp_of[lanes]] & ~group.active
        if not missing.any():
            return group
        complete = missing == 0
        self.held[number] = lanes[~complete]
        return Group(chunk, lanes[complete]) if complete.any() else None

    def _mask(self, block, group: Group) -> np.ndarray:
        """Membership mask of a warp-wide instruction, uint32; all lanes for those without one (.aligned)."""
        operand = block.meeting.operands[-1] if block.meeting.operands else None
        if block.meeting.opcode in ("mma", "wmma", "ldmatrix", "stmatrix") or operand is None:
            return np.array([FULL_MASK], np.uint32)
        if isinstance(operand, Immediate):
            return np.array([operand.value & FULL_MASK], np.uint32)
        values = self.chunk.registers[self.chunk.translation.slots[operand.name]]
        return values if group.lanes is None else self.chunk.at(values, group.lanes)

    def _wake(self) -> tuple[int, Group]:
        """Nothing else can run: lanes of which a warp-wide instruction waits may have ended meanwhile."""
        for number in sorted(self.held):
            lanes = self.held.pop(number)
            block = self.chunk.translation.blocks[number]
            group = self._meet(block, self._merged([lanes]))
            if group is not None:
                return number, group
        self._never_come()

    def _never_come(self) -> None:
        number, lanes = min(self.held.items())
        block, group = self.chunk.translation.blocks[number], self._merged([lanes])
        lane = int(lanes[0])
        missing = int(self._mask(block, group)[0] & self.alive[self.chunk.warp_of[lane]] & ~group.active[0])
        names = ", ".join(str(k) for k in range(WARP_SIZE) if missing >> k & 1)
        raise DivergentWarp(
            f"`{block.meeting.opcode}` waits for lanes of its mask that never come: {names}",
            reason="Every thread that the mask names must reach the same call: compute the mask before the branch, "
            "or move the call out of it.",
            **self.chunk.where_block(block, lane),
        )

    # -- barriers ------------------------------------------------------------------------------------------

    def _barrier(self, block, group: Group) -> tuple[int, Group | None]:
        """All threads of a thread block meet here; blocks that are complete go on."""
        chunk = self.chunk
        if group.lanes is None:
            if chunk.races is not None:
                chunk.races.barrier(None)
            return block.index + 1, group
        self._check_whole_warps(block, group)
        self.arrived += np.bincount(chunk.block_of[group.lanes], minlength=chunk.blocks)
        self.waiting.append((block.index + 1, group.lanes, block.index))
        complete = self.arrived == chunk.threads
        if complete.any():
            still = []
            for following, lanes, barrier in self.waiting:
                ready = complete[chunk.block_of[lanes]]
                if ready.any():
                    self.pending.setdefault(following, []).append(lanes[ready])
                if not ready.all():
                    still.append((following, lanes[~ready], barrier))
            self.waiting = still
            if chunk.races is not None:
                chunk.races.barrier(np.flatnonzero(complete[chunk.block_of]))
            self.arrived[complete] = 0
        return block.index, None

    def _check_whole_warps(self, block, group: Group) -> None:
        chunk = self.chunk
        present = np.bincount(chunk.warp_of[group.lanes], minlength=chunk.warps)
        partial = (present > 0) & (present != chunk.warp_sizes)
        if partial.any():
            if self.held:
                self._never_come()
            warp = int(np.argmax(partial))
            lane = int(group.lanes[np.searchsorted(chunk.warp_of[group.lanes], warp)])
            raise DivergentBarrier(
                f"divergent barrier: only {present[warp]} of the {chunk.warp_sizes[warp]} threads of a warp reach it",
                reason="Every thread of the block must reach the same barrier: move it out of the `if`, the loop or "
                "past the early `return` that some threads take.",
                **chunk.where_block(block, lane),
            )

    def _stuck(self) -> None:
        """Nothing can run and some threads wait at a barrier that the others will never reach."""
        _, lanes, number = self.waiting[0]
        chunk = self.chunk
        arrived = int(self.arrived[chunk.block_of[lanes[0]]])
        raise DivergentBarrier(
            f"divergent barrier: {arrived} of the block's {chunk.threads} threads wait for the others, "
            "which have ended",
            reason="Every thread of the block must reach the barrier: move it out of the `if`, the loop or past the "
            "early `return` that some threads take.",
            **chunk.where_block(chunk.translation.blocks[number], int(lanes[0])),
        )

    def _endless(self, block, group: Group, path: int) -> None:
        raise InstructionLimit(
            f"the kernel does not end: stopped after {path:,} instructions of one path through it",
            reason="Does the loop's condition change in the loop? Is a step of 0 added, or does the index overflow? "
            "For a long run that does end, raise `instruction_limit`.",
            **self._where(block, group),
        )

    def _where(self, block, group: Group) -> dict:
        return self.chunk.where_block(block, 0 if group.lanes is None else int(group.lanes[0]))
