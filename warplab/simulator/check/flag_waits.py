"""Threads that wait for a flag: whether a kernel gets anywhere, and what its threads look at while it does not.

For kernels of several devices that run at the same time (`run.device_group`). A kernel gets on when it runs code other
than the loops in which it looks at what other threads write (`translate.waiting_loops`), or when such a loop writes. A
block may tell all its threads what one has seen, by a barrier or shared memory: what that leaves as it was is no write.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from warplab.simulator.errors import FlagWait
from warplab.simulator.memory.array_locations import element
from warplab.simulator.memory.device_memory import DeviceMemory
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.observer import Observer
from warplab.simulator.ptx.graphs import reached
from warplab.simulator.translate.basic_blocks import EXIT, TRAP, Block
from warplab.simulator.translate.block_writer import Site
from warplab.simulator.translate.translation import Translation
from warplab.simulator.translate.waiting_loops import fixed_loops, working_blocks

_STRONG = frozenset(("volatile", "relaxed", "release", "mmio"))


@dataclass
class MemoryChanges:
    """How often the kernels of all devices have written to global memory so far."""

    count: int = 0


@dataclass(eq=False)
class _Look:
    """The latest load or atomic operation in a loop."""

    site: Site
    space: str
    address: np.ndarray
    lanes: np.ndarray
    view: np.ndarray
    index: np.ndarray


@dataclass(eq=False)
class Looks:
    """What threads have seen at the places at which they look. `unknown`: not all of these are known.

    `changes`: how often memory had changed then.
    """

    memory: MemoryChanges
    changes: int
    unknown: bool
    seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]]

    def changed(self) -> bool:
        """Return whether there is anything new to see."""
        if self.changes == self.memory.count:
            return False
        if self.unknown:
            return True
        return any((view.take(index) != values).any() for view, index, values in self.seen)


class FlagWaits(Observer):
    """Observes the launches of one device. `worked`: it has got on since this was last set to False.

    `setting`: blocks of code that may set a flag. `endless`: those that no thread leaves, once it has come round.
    `probing`: also find out whether loops change anything from one round to the next, which `stuck` then tells.
    """

    def __init__(self, changes: MemoryChanges, translation: Translation, device: int, names: dict[int, str]) -> None:
        self.changes, self.device, self.names = changes, device, names
        self.translation = translation
        blocks = translation.blocks
        following = [block.successors() for block in blocks]
        ends = {block.index for block in blocks if block.end in (EXIT, TRAP)}
        self.endless = fixed_loops(blocks).union(
            block.index for block in blocks if block.index not in ends and not ends & reached(following, block.index)
        )
        working, outside = working_blocks(blocks), working_blocks(blocks, inside=False)
        # Blocks of loops that look at what others write. What such a loop does beside that is no waiting.
        loops = translation.waiting_loops.items()
        self.loops = {n: loop for n, loop in loops if n not in working or not loop & outside}
        self.setting = frozenset(block.index for block in blocks if block.index not in self.loops and _sets(block))
        self.heads = {min(loop) for loop in self.loops.values()}
        self.worked = True
        self.probing = False
        self.looks: dict[frozenset[int], dict[int, _Look]] = {}  # by loop and site
        self._changes_before: dict[int, int] = {}
        self._state: dict[int, list[tuple[bytes, ...]]] = {}
        self._loop: frozenset[int] | None = None
        self._undecided: tuple[str, np.ndarray, np.ndarray, np.ndarray] | None = None

    def watch(self, chunk) -> "FlagWaits":
        self.chunk = chunk
        self.worked = True
        self.looks.clear()
        self.forget()
        return self

    def forget(self) -> None:
        """Begin a new time of `probing`, or end it."""
        self.probing = False
        self._state.clear()

    # -- events ----------------------------------------------------------------------------------------------------

    def block(self, number: int, group: Group, time: int) -> None:
        self.decide()
        self._loop = self.loops.get(number)
        if self._loop is None:
            if number not in self.endless:
                self.worked = True
            return
        if number in self.heads:
            if self._changes_before.get(number) == self.changes.count:
                self.chunk.waits_in_vain = True
            self._changes_before[number] = self.changes.count
            if self.probing:
                states = self._state.setdefault(number, [])
                states[:] = [*states[-1:], self._registers(number, group)]

    def _registers(self, number: int, group: Group) -> tuple[bytes, ...]:
        """Return what the code from here on may read of these lanes."""
        chunk, slots = self.chunk, self.translation.slots
        values = [chunk.registers[slots[n]] for n in sorted(self.translation.blocks[number].live_in & slots.keys())]
        if group.lanes is not None:
            values = [chunk.at(array, group.lanes) for array in values]
        return group.all_lanes.tobytes(), *(array.tobytes() for array in values)

    def load(self, site, space: str, addresses: Addresses, lanes) -> None:
        if self._loop is not None and space in ("global", "shared"):
            every = self.chunk.all_lanes if lanes is None else lanes
            view, index = self.chunk.access.elements(site, space, addresses)
            look = _Look(site, space, addresses.at(site.offset), every, view, index)
            self.looks.setdefault(self._loop, {})[site.index] = look

    def store(self, site, space: str, addresses: Addresses, lanes, values) -> None:
        if space == "shared" and self._loop is not None and site.count == 1:
            self._changes(site, space, addresses)
        else:
            self.copy_done(site, space, addresses, lanes, values)

    def copy_done(self, site, space: str, addresses: Addresses, lanes, values) -> None:
        if space == "global":
            self.changes.count += 1
        if space != "local":
            self.worked = True

    def atomic(self, site, space: str, addresses: Addresses, lanes, reads: bool) -> None:
        if self._loop is None:
            if space == "global":
                self.changes.count += 1
            return
        if space == "global":
            self.load(site, space, addresses, lanes)
            self._changes(site, space, addresses)

    def _changes(self, site, space: str, addresses: Addresses) -> None:
        self.decide()
        view, index = self.chunk.access.elements(site, space, addresses)
        self._undecided = space, view, index, view.take(index)

    def decide(self) -> None:
        """Note whether the latest store or atomic operation of a loop changed memory."""
        if self._undecided is not None:
            space, view, index, before = self._undecided
            self._undecided = None
            if (view.take(index) != before).any():
                self.changes.count += space == "global"
                self.worked = True

    # -- questions -------------------------------------------------------------------------------------------------

    def only_waits(self, numbers: list[int]) -> bool:
        """Return whether all these blocks of code, where lanes stand, are in loops that wait."""
        return all(number in self.loops or number in self.endless for number in numbers)

    def looking(self, numbers: list[int]) -> Looks:
        """Note what the threads that stand at these blocks of code look at."""
        loops = [self.loops[number] for number in numbers if number in self.loops]
        looks = [self.looks.get(loop, {}).values() for loop in loops]
        inside = [i for loop in loops for k in loop for i in self.translation.blocks[k].body]
        unknown = not all(looks) or any(i.opcode == "mbarrier" for i in inside)  # which waits for no load
        seen = [(look.view, look.index, look.view.take(look.index)) for found in looks for look in found]
        return Looks(self.changes, self.changes.count, unknown, seen)

    def stuck(self, numbers: list[int]) -> bool:
        """Return whether each loop in which lanes stand is seen to repeat itself exactly."""
        return all(n in self.endless or (n in self.loops and self._repeats(self.loops[n])) for n in numbers)

    def _repeats(self, loop: frozenset[int]) -> bool:
        states = self._state.get(min(loop), [])
        texts = [i.text for number in loop for i in self.translation.blocks[number].body]
        clocks = any(name in text for text in texts for name in ("%clock", "%globaltimer"))
        return len(states) == 2 and states[0] == states[1] and not clocks

    def waiting(self, number: int, lanes: np.ndarray, memory: DeviceMemory, kernel: str) -> FlagWait:
        """Say what the first of `lanes`, which stand at block `number` of code, waits for."""
        looks = self.looks.get(self.loops.get(number, frozenset()), {}).values()
        look = next((look for look in looks if np.isin(lanes, look.lanes).any()), next(iter(looks), None))
        lane = int(lanes[0])
        if look is None:
            where = self.chunk.where_block(self.translation.blocks[number], lane)
            found: dict[str, Any] = {}
        else:
            looking = lanes[np.isin(lanes, look.lanes)]
            place = int(np.searchsorted(look.lanes, looking[0])) if looking.size else 0
            lane = int(look.lanes[place])
            address = int(np.broadcast_to(look.address, look.lanes.shape)[place])
            where = self.chunk.where(look.site, lane)
            found = {"array": "shared memory", "index": address, "value": None}
            allocation = memory.find(address) if look.space == "global" else None
            if allocation is not None:
                name = self.names.get(allocation.address) or allocation.name or "an array"
                found = {"array": name, "index": element(allocation, address, look.site.item)}
                found["owner"] = allocation.device
                found["value"] = memory.view(address, look.site.item).view(look.site.dtype)[0].item()
        return FlagWait(self.device, others=lanes.shape[0] - 1, **{**where, "kernel": kernel}, **found)


def _sets(block: Block) -> bool:
    """Tell whether the block may set a flag in global memory."""
    return any(
        (i.opcode in ("atom", "red") or (i.opcode == "st" and not _STRONG.isdisjoint(i.modifiers)))
        and not any(m.startswith("shared") for m in i.modifiers)
        for i in block.counted
    )
