"""Warp-wide instructions hold lanes back until all lanes that their mask names have arrived.

A shuffle or vote exchanges values, so the lanes must stand at the same instruction. `__syncwarp` (bar.warp.sync) only
orders, and lanes may stand at different ones.

A lane must be in the mask that it passes. Nobody waits for lanes that have ended at a guard such as
`if (i >= n) return`. Lanes that went past the instruction, or ended elsewhere, are an error. With checks off, others
wait for them until they have ended, as on a GPU; CUDA leaves the result undefined. wgmma does the same with the four
warps of a warpgroup.
"""

import numpy as np

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.errors import DivergentWarp
from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.ptx.graphs import reached
from warplab.simulator.ptx.program import Immediate, integer
from warplab.simulator.run.matrix_operations import NEEDS_WHOLE_WARP
from warplab.simulator.run.warpgroups import NEEDS_WARPGROUP
from warplab.simulator.translate.basic_blocks import WARP_SYNC
from warplab.simulator.translate.warpgroup_instructions import THREADS

FULL_MASK = 0xFFFFFFFF
_WITHOUT_MASK = ("mma", "wmma", "ldmatrix", "stmatrix", "movmatrix", "tcgen05")  # .aligned: the whole warp
_WITH_VALUES = ("shfl", "vote", "match", "redux")  # which exchange values

# The kernel of numba.cuda.reduce calls __syncwarp for the whole warp where only two lanes arrive. GPUs tolerate it.
_NUMBA_REDUCE = "gpu_reduce_block_strided"


class WarpConvergence:
    """Lanes of one chunk that are held back at warp-wide instructions."""

    def __init__(self, scheduler) -> None:
        self.scheduler, self.chunk = scheduler, scheduler.chunk
        self.held: dict[int, np.ndarray] = {}  # at the start of a block
        self.syncing: dict[int, np.ndarray] = {}  # at the bar.warp.sync that ends a block
        self.following: dict[int, set[int]] = {}  # for a block, those that can follow it
        self.warpgroups = WarpgroupConvergence(scheduler)
        self.lenient = not self.chunk.checked or _NUMBA_REDUCE in self.chunk.entry.name

    def converge(self, block, group: Group) -> Group | None:
        """Return the lanes whose whole mask has arrived; the others are held until the rest arrives."""
        if block.warp_wide.opcode == "wgmma":
            return self.warpgroups.converge(block, group)
        number = block.index
        if number in self.held:
            group = self.scheduler.merged([group.all_lanes, self.held.pop(number)])
        mask = self._mask(block.warp_wide, group)
        if group.whole and mask.shape[0] == 1 and mask[0] == FULL_MASK:
            return group
        lanes = group.all_lanes
        self._refuse_unnamed(block.warp_wide, lanes, mask)
        self._refuse_ended(block.warp_wide, lanes, mask)
        missing = mask & self.scheduler.alive[self.chunk.warp_of[lanes]] & ~group.active
        if not missing.any():
            return group
        complete = missing == 0
        self.held[number] = lanes[~complete]
        self._refuse_on_pascal()
        self._refuse_passed(number, block.warp_wide, group, missing)
        return Group(self.chunk, lanes[complete]) if complete.any() else None

    def sync(self, block, group: Group) -> tuple[int, Group | None]:
        """Execute bar.warp.sync: lanes go on when every lane of their mask has reached one, this or another."""
        mask = self._mask(block.last, group)
        if group.whole and mask.shape[0] == 1 and mask[0] == FULL_MASK:
            self.chunk.sync_warp(None)
            return block.index + 1, group
        lanes = group.all_lanes
        self._refuse_unnamed(block.last, lanes, mask)
        self._refuse_ended(block.last, lanes, mask)
        if block.index in self.syncing:
            lanes = np.sort(np.concatenate([lanes, self.syncing[block.index]]))
        self.syncing[block.index] = lanes
        self._let_go()
        if self.syncing:
            self._refuse_on_pascal()
        if block.index in self.syncing:
            group = Group(self.chunk, self.syncing[block.index])
            missing = self._mask(block.last, group) & self.scheduler.alive[self.chunk.warp_of[group.lanes]]
            self._refuse_passed(block.index, block.last, group, missing & ~group.active)
        return block.index, None

    def _let_go(self) -> bool:
        chunk, scheduler = self.chunk, self.scheduler
        arrived = np.zeros(chunk.warps, np.uint32)
        for lanes in self.syncing.values():
            np.bitwise_or.at(arrived, chunk.warp_of[lanes], np.uint32(1) << chunk.lane_of[lanes])
        going, masks = [], []
        for number, lanes in list(self.syncing.items()):
            mask = self._mask(chunk.translation.blocks[number].last, Group(chunk, lanes))
            warp = chunk.warp_of[lanes]
            complete = (mask & scheduler.alive[warp] & ~arrived[warp]) == 0
            if complete.any():
                going.append(lanes[complete])
                masks.append(np.broadcast_to(mask & scheduler.alive[warp], lanes.shape)[complete])
                scheduler.put(number + 1, lanes[complete])
                if complete.all():
                    del self.syncing[number]
                else:
                    self.syncing[number] = lanes[~complete]
        if going:
            gone, mask = np.concatenate(going), np.concatenate(masks)
            for one in np.unique(mask):  # lanes of two masks are not ordered
                chunk.sync_warp(np.sort(gone[mask == one]))
        return bool(going)

    def _mask(self, instruction, group: Group) -> np.ndarray:
        """Return the membership masks, uint32: one per lane, or a single one for all."""
        operand = instruction.operands[-1] if instruction.operands else None
        if instruction.opcode in _WITHOUT_MASK or operand is None:
            return np.array([FULL_MASK], np.uint32)
        if isinstance(operand, Immediate):
            return np.array([integer(operand) & FULL_MASK], np.uint32)
        values = self.chunk.registers[self.chunk.translation.slots[operand.name]]
        return values if group.lanes is None else self.chunk.at(values, group.lanes)

    def wake(self) -> bool:
        """Release lanes that waited for lanes that have ended, as nothing else can run. True if there were any."""
        for number in sorted(self.held):
            block = self.chunk.translation.blocks[number]
            group = self.scheduler.merged([self.held.pop(number)])
            missing = self._mask(block.warp_wide, group) & self.scheduler.alive[self.chunk.warp_of[group.all_lanes]]
            if ((missing & ~group.active) == 0).any():
                self.scheduler.put(number, group.all_lanes)
                return True
            self.held[number] = group.all_lanes
        return self._let_go() or self.warpgroups.wake()

    def check_none_left(self) -> None:
        """Raise DivergentWarp if lanes are still held: those they wait for will never arrive."""
        self.warpgroups.check_none_left()
        if not self.held and not self.syncing:
            return
        at_start = bool(self.held)
        number, lanes = min((self.held or self.syncing).items())
        block, group = self.chunk.translation.blocks[number], self.scheduler.merged([lanes])
        instruction = block.warp_wide if at_start else block.last
        lane, alive = int(lanes[0]), self.scheduler.alive
        missing = int(self._mask(instruction, group)[0] & alive[self.chunk.warp_of[lane]] & ~group.active[0])
        raise self._error(instruction, lane, missing)

    def _error(self, instruction, lane: int, missing: int) -> DivergentWarp:
        called, whose = _called(instruction), "its mask"
        reason = (
            "Every thread that the mask names must reach the same call: compute the mask before the branch, "
            "or move the call out of it."
        )
        if instruction.opcode in _WITHOUT_MASK:
            called, whose, reason = instruction.text.split()[0], "its warp", NEEDS_WHOLE_WARP
        if self.scheduler.policy == "pascal":
            reason = (
                "A deadlock: with one program counter per warp, the lanes of the other side of a branch run only after "
                "these."
            )
        what = f"`{called}` waits for lanes of {whose} that never come: {_ranges(missing)}"
        return self.chunk.error(instruction, lane, what, reason, DivergentWarp)

    def _refuse_unnamed(self, instruction, lanes: np.ndarray, mask: np.ndarray) -> None:
        """Raise DivergentWarp if a lane is not in its own mask."""
        if not self.chunk.checked:
            return
        unnamed = np.flatnonzero(mask >> self.chunk.lane_of[lanes].astype(np.uint32) & 1 == 0)
        if unnamed.size:
            lane = int(lanes[unnamed[0]])
            number, given = self.chunk.lane_of[lane], int(mask[unnamed[0] if mask.shape[0] > 1 else 0])
            what = f"lane {number} calls `{_called(instruction)}` with the mask {given:#010x}, which does not name it"
            reason = "A thread must be in the mask that it gives; 0xffffffff names the whole warp."
            raise self.chunk.error(instruction, lane, what, reason, DivergentWarp)

    def _refuse_ended(self, instruction, lanes: np.ndarray, mask: np.ndarray) -> None:
        """Raise DivergentWarp if lanes of a mask took another path and ended there."""
        if self.lenient:
            return
        warp = self.chunk.warp_of[lanes]
        if self.chunk.options.lanes_apart and instruction.opcode in _WITH_VALUES:
            self._refuse_gone(instruction, lanes, mask)
        missing = np.broadcast_to(mask & self.scheduler.ended_elsewhere[warp], lanes.shape)
        if missing.any():
            place = int(np.argmax(missing != 0))
            raise self._error(instruction, int(lanes[place]), int(missing[place]))

    def _refuse_gone(self, instruction, lanes: np.ndarray, mask: np.ndarray) -> None:
        """Raise DivergentWarp if a mask names lanes that have ended, even at a guard."""
        warp = self.chunk.warp_of[lanes]
        exist = ((np.uint64(1) << self.chunk.warp_sizes[warp].astype(np.uint64)) - np.uint64(1)).astype(np.uint32)
        gone = np.broadcast_to(mask & exist & ~self.scheduler.alive[warp], lanes.shape)
        if gone.any():
            place = int(np.argmax(gone != 0))
            what = f"the mask of `{_called(instruction)}` names lanes that have ended: {_ranges(int(gone[place]))}"
            reason = (
                "A mask names the lanes that take part. Compute it before the guard, for example "
                "__ballot_sync(0xffffffff, i < n), or let all lanes come along and leave the guard to the store."
            )
            raise self.chunk.error(instruction, lanes[place], what, reason, DivergentWarp)

    def _refuse_passed(self, number: int, instruction, group: Group, missing: np.ndarray) -> None:
        """Raise DivergentWarp if lanes `missing` at block `number` stand after it and can no longer reach it."""
        if self.lenient:
            return
        passed = np.zeros(self.chunk.warps, np.uint32)
        for other, parts in self.scheduler.pending.items():
            if other in self._after(number) and not self._may_come(other, number, instruction):
                lanes = np.concatenate(parts)
                np.bitwise_or.at(passed, self.chunk.warp_of[lanes], np.uint32(1) << self.chunk.lane_of[lanes])
        missing = missing & passed[self.chunk.warp_of[group.all_lanes]]
        if missing.any():
            place = int(np.argmax(missing != 0))
            raise self._error(instruction, int(group.all_lanes[place]), int(missing[place]))

    def _may_come(self, number: int, wanted: int, instruction) -> bool:
        """Tell whether lanes at block `number` can reach `wanted` or, for a `__syncwarp`, a block that ends in one."""
        ahead = {number, *self._after(number)}
        if instruction.opcode != "bar":
            return wanted in ahead
        return any(self.chunk.translation.blocks[block].end == WARP_SYNC for block in ahead)

    def _after(self, number: int) -> set[int]:
        if number not in self.following:
            blocks = self.chunk.translation.blocks
            self.following[number] = reached([block.successors() for block in blocks], number)
        return self.following[number]

    def _refuse_on_pascal(self) -> None:
        if self.scheduler.policy == "pascal":
            self.check_none_left()


def _called(instruction) -> str:
    return "__syncwarp" if instruction.opcode == "bar" else instruction.opcode


def _ranges(lanes: int) -> str:
    """Return the lanes of a mask in words: "0 to 3, 7"."""
    numbers = [k for k in range(WARP_SIZE) if lanes >> k & 1]
    starts = [k for k in numbers if k - 1 not in numbers]
    ends = [k for k in numbers if k + 1 not in numbers]
    return ", ".join(f"{a} to {b}" if b > a else str(a) for a, b in zip(starts, ends, strict=True))


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
            what = (
                f"`{instruction.text.split()[0].rstrip(';')}` waits for threads of its warpgroup that never come: "
                f"{here} of {THREADS} are there"
            )
            raise self.chunk.error(instruction, lanes[0], what, NEEDS_WARPGROUP, DivergentWarp)
