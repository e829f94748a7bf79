"""Which lanes of a warp ran which source lines, step by step: what timelines are drawn from.

While a launch runs, only the groups of lanes that run a block of code are recorded (`StepTrace.block`). They become the
steps of a warp, source line by source line, when somebody asks for them (`StepTrace.of`). `AccessTrace` keeps which
addresses they touched, access by access: what pictures of accesses are drawn from.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.count.counters import Access, LaunchProfile
from warplab.simulator.memory.device_memory import DeviceMemory
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.observer import NOBODY, Observer
from warplab.simulator.ptx.program import Where
from warplab.simulator.translate.block_writer import Site
from warplab.simulator.translate.translation import Translation


class WarpStep(NamedTuple):
    """Consecutive machine instructions of one source line that lanes of a warp ran.

    `block`, `warp`: linear block index, and the warp's number in the block. Sets of lanes are bit masks, bit k for lane
    k. `active`: lanes that ran. `issued`: lanes to which the instructions were issued, more than the active ones under
    a predicate that replaces a branch. `waiting`: lanes that waited at a barrier or a warp-wide instruction meanwhile.
    `ended`: lanes that had ended or never existed (a last warp may have fewer than 32).
    `instructions`: machine instructions, as `ptxas_model` estimates them. `code`: number of the block of code, which
    decreases where the warp jumps back. `time`: instructions that the launch's first blocks had executed before this
    block of code; it is the same for warps that ran it together.
    """

    block: int
    warp: int
    file: str
    line: int
    active: int
    issued: int
    waiting: int
    ended: int
    instructions: int
    code: int
    time: int


class _Event(NamedTuple):
    """A block of code that a group ran. `lanes`: the traced lanes in the group, None for all. `waiting`: those that
    waited, None for none. `alive`: for each traced warp, the lanes that had not ended, None for all.
    """

    time: int
    code: int
    lanes: np.ndarray | None
    waiting: np.ndarray | None
    alive: np.ndarray | None


def traced_lanes(threads: int, warps: int) -> int:
    """Return how many lanes hold the first `warps` warps of a launch with blocks of `threads` threads. Small blocks are
    traced whole."""
    lanes = warps * WARP_SIZE
    return lanes if threads >= lanes else -(-lanes // threads) * threads


class StepTrace(Observer):
    """The first `warps` warps of a launch, and at most `most` blocks of code that they run.

    `scheduling`: the launch's policy. `complete`: was nothing left out?
    """

    def __init__(self, translation: Translation, warps: int, most: int) -> None:
        self.translation, self.warps, self.most = translation, warps, most
        self.scheduling = ""
        self.complete = True
        self._events: list[_Event] = []

    def watch(self, chunk) -> Observer:
        if chunk.first_block != 0:
            return NOBODY
        self.scheduling = chunk.options.scheduling
        self.threads = chunk.threads
        self.lanes = min(traced_lanes(chunk.threads, self.warps), chunk.lanes)
        self._warp_of, self._lane_of = chunk.warp_of[: self.lanes], chunk.lane_of[: self.lanes]
        self._sizes = chunk.warp_sizes[: int(self._warp_of[-1]) + 1]
        return super().watch(chunk)

    def end_launch(self, profile, finished: bool) -> None:
        profile.steps = self
        self.chunk = None  # and with it the launch's memory

    def block(self, number: int, group: Group, time: int) -> None:
        if len(self._events) >= self.most:
            self.complete = False
            return
        if group.lanes is None:
            self._events.append(_Event(time, number, None, None, None))
            return
        lanes = self._traced(group.lanes)
        if lanes.size:
            waiting = [self._traced(w) for w in self.chunk.scheduler.waiting()]
            alive = self.chunk.scheduler.alive[: self._sizes.shape[0]].copy()
            self._events.append(_Event(time, number, lanes, np.concatenate(waiting) if waiting else None, alive))

    def wants(self, event: str, space: str = "") -> int | None:
        return self.lanes if self.complete else 0

    def _traced(self, lanes: np.ndarray) -> np.ndarray:
        return lanes[: np.searchsorted(lanes, self.lanes)].copy()

    # -- the steps -------------------------------------------------------------------------------------------------

    @property
    def traced(self) -> list[tuple[int, int]]:
        """Return (block, warp) of the traced warps."""
        if not self._events:
            return []
        per_block = -(-self.threads // WARP_SIZE)
        return [divmod(number, per_block) for number in range(self._sizes.shape[0])]

    def of(self, block: int = 0, warp: int = 0) -> list[WarpStep]:
        """Return the steps of a warp in order. Raises ValueError if it was not traced."""
        return [step for (step,) in self.together(block, [warp])]

    def together(self, block: int, warps: Sequence[int]) -> list[tuple[WarpStep, ...]]:
        """Return the steps of several warps of a block in order, each as one `WarpStep` per warp, `active` 0 where a
        warp took no part. Raises ValueError if one was not traced.
        """
        traced = self.traced
        for warp in warps:
            if (block, warp) not in traced:
                known = ", ".join(f"({b}, {w})" for b, w in traced) or "none"
                raise ValueError(f"warp {warp} of block {block} was not traced; traced (block, warp): {known}")
        numbers = [traced.index((block, warp)) for warp in warps]
        latest: list[dict[int, int]] = [{} for _ in warps]  # block of code → lanes that ran it last
        result = []
        for event in self._events:
            lanes = [self._lanes_of(event, number, seen) for number, seen in zip(numbers, latest, strict=True)]
            if any(active for active, *_ in lanes):
                result += [
                    tuple(
                        WarpStep(block, warp, where.file, where.line, *masks, amount, event.code, event.time)
                        for warp, masks in zip(warps, lanes, strict=True)
                    )
                    for where, amount in _lines(self.translation, event.code)
                ]
        return result

    def _lanes_of(self, event: _Event, number: int, latest: dict[int, int]) -> tuple[int, int, int, int]:
        """Return traced warp `number`'s lanes that were active, issued to, waiting and ended. Updates `latest`."""
        every = (1 << int(self._sizes[number])) - 1
        active = every if event.lanes is None else self._mask(event.lanes, number)
        issued = 0
        if active:
            latest[event.code] = active
            head = self.translation.predicated.get(event.code, event.code)  # the block with the condition
            issued = active | latest.get(head, 0)
        waiting = 0 if event.waiting is None else self._mask(event.waiting, number)
        alive = every if event.alive is None else int(event.alive[number])
        return active, issued, waiting, ~alive & 0xFFFFFFFF

    def _mask(self, lanes: np.ndarray, number: int) -> int:
        own = self._lane_of[lanes[self._warp_of[lanes] == number]]
        return int(np.bitwise_or.reduce(np.uint32(1) << own)) if own.size else 0


@functools.lru_cache(maxsize=1024)
def _lines(translation: Translation, code: int) -> list[tuple[Where, int]]:
    """Return the source lines of a block of code in order, each with its machine instructions."""
    runs: list[tuple[Where, int]] = []
    for instruction in translation.blocks[code].counted:
        amount = translation.amounts[id(instruction)]
        if amount and runs and runs[-1][0] == instruction.where:
            runs[-1] = instruction.where, runs[-1][1] + amount
        elif amount:
            runs.append((instruction.where, amount))
    return runs


class AccessTrace(Observer):
    """The first `most` accesses of the first `warps` warps of a launch."""

    def __init__(self, memory: DeviceMemory, warps: int, most: int) -> None:
        self.memory, self.warps, self.most = memory, warps, most
        self.accesses: list[Access] = []

    def watch(self, chunk) -> Observer:
        if chunk.first_block:
            return NOBODY
        lanes = np.arange(min(traced_lanes(chunk.threads, self.warps), chunk.lanes))
        self._traced = lanes, lanes // chunk.threads, lanes % chunk.threads
        return super().watch(chunk)

    def end_launch(self, profile: LaunchProfile, finished: bool) -> None:
        profile.accesses = self.accesses

    def wants(self, event: str, space: str = "") -> int | None:
        return self._traced[0].size if len(self.accesses) < self.most else 0

    def load(self, site: Site, space: str, addresses: Addresses, lanes: np.ndarray | None, _=None) -> None:
        if len(self.accesses) >= self.most:
            return
        chunk = self.chunk
        if lanes is None:
            lanes, block, thread = self._traced
        else:
            lanes = lanes[: np.searchsorted(lanes, traced_lanes(chunk.threads, self.warps))]
            block, thread = lanes // chunk.threads, lanes % chunk.threads
        if not lanes.size:
            return
        first = Addresses(addresses.base[: lanes.size]).at(site.offset)  # or the one of all lanes
        address = first.copy() if first.shape == lanes.shape else np.repeat(first, lanes.size)
        start, name = 0, None
        if space == "global":
            allocation = self.memory.find(int(address[0]))
            if allocation is not None:
                start, name = allocation.address, allocation.name
        elif space == "shared":
            base, _ = chunk.own_memory(space, lanes)
            address = address - base
        where = site.where
        self.accesses.append(
            Access(site.op, space, where.file, where.line, site.width, block, thread, address, name, start)
        )

    copy_request = store = atomic = load
