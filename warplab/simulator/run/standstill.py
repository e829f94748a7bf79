"""Deadlocks of a launch that waits for memory: found as soon as the state of all its threads comes round again.

When all lanes stand in loops that only look at memory, and nothing but these loops runs, memory does not change. If the
registers of all lanes then keep coming back, while the loops take turns, they do so for ever: no one need wait for the
instruction limit. Loops that read a clock, wait for an mbarrier or exchange values are left to that limit.

What the error says of a launch beyond its limits: an endless loop, a deadlock, or merely a lot of work. No program can
tell in general whether another one ends. Two signs are used: how far one path went, and whether the loop there waits
for memory, as a spin lock does.
"""

import functools
import math

import numpy as np

from warplab.simulator.errors import InstructionLimit
from warplab.simulator.ptx.program import Immediate, Instruction
from warplab.simulator.translate.basic_blocks import Block
from warplab.simulator.translate.translation import Translation
from warplab.simulator.translate.waiting_loops import waits_for_memory, working_blocks

_BEFORE = 4  # turns of starved lanes after which states are compared
_MOST_STATES = 256
_EVERY = 61  # blocks of code; no multiple of the length of a usual loop
_working = functools.lru_cache(maxsize=64)(lambda translation: working_blocks(translation.blocks))


class Standstill:
    """Of one chunk. `moving`: the blocks of code that are no part of a loop that only looks at memory."""

    def __init__(self, chunk) -> None:
        self.chunk = chunk
        translation: Translation = chunk.translation
        working = _working(translation) if translation.waiting_loops else frozenset()
        looking = {
            number
            for number, loop in translation.waiting_loops.items()
            if not loop & working and not any(_tells(i) for k in loop for i in translation.blocks[k].counted)
        }
        self.moving = frozenset(range(len(translation.blocks))) - looking if looking else frozenset()
        self.possible = bool(looking)
        self.moved = False  # has other code run since the latest look?
        self._looks = self._rounds = 0
        self._seen: dict[int, int] = {}

    def reached_by_all(self, number: int, group) -> bool:
        """Return the same where all lanes that are not held back stand at one block. Asked before it runs."""
        self._rounds += 1
        return self._rounds % _EVERY == 0 and self.reached({number: [group.all_lanes]}, 2)

    def reached(self, standing: dict[int, list[np.ndarray]], times: int = 0) -> bool:
        """Return whether it is certain that no lane ever goes on. `standing`: lanes by block. Asked when lanes that
        spin give others a turn. `times`: how often a state must come, by default until each loop has had a turn."""
        if not self.possible:
            return False
        if self.moved or not self.moving.isdisjoint(standing):
            self.moved, self._looks = False, 0
            self._seen.clear()
            return False
        self._looks += 1
        if self._looks < _BEFORE or len(self._seen) >= _MOST_STATES:
            return False
        state = hash(tuple(self._state(number, parts) for number, parts in sorted(standing.items())))
        self._seen[state] = self._seen.get(state, 0) + 1
        return self._seen[state] >= (times or 8 + 3 * len(standing))

    def _state(self, number: int, parts: list[np.ndarray]) -> tuple[int | bytes, ...]:
        """Return which lanes stand at a block, and what the code from there on may read of them."""
        chunk, translation = self.chunk, self.chunk.translation
        lanes = np.sort(np.concatenate(parts))
        slots = translation.slots
        names = sorted(translation.blocks[number].live_in & slots.keys())
        values = [chunk.at(chunk.registers[slots[name]], lanes) for name in names]
        return number, lanes.tobytes(), *(value.tobytes() for value in values)


def _tells(i: Instruction) -> bool:
    """Tell whether an instruction can bring something new, though no one writes."""
    if i.opcode == "mbarrier" or any(name in i.text for name in ("%clock", "%globaltimer")):
        return True
    return i.opcode == "atom" and "exch" in i.modifiers and not isinstance(i.operands[-1], Immediate)


_ONE_COUNTER = (
    "With one program counter per warp, lanes that have left the loop wait for those of their warp that are still in "
    "it; these wait for the others, for example for a lock, so that none can go on."
)
_WAITS = (
    "The loop waits for memory that another thread must change: is a lock never released, or does that thread wait for "
    "this one?"
)
_RAISE = "If it does end later, raise the limit: simulate(..., path_limit={})."


def limit_error(scheduler, block: Block, group, executed: int, path: int) -> InstructionLimit:
    """Return the error for a scheduler whose `group` was about to run `block` when it passed a limit.

    `executed`: thread instructions of the chunk; `path`: instructions along its path.
    """
    by_time = scheduler.deadline is not None
    one_path = path > scheduler.path_budget and not by_time
    far = f"stopped after {path:,} instructions of one path through it"
    what = f"the kernel does not end: {far}"
    chunk = scheduler.chunk
    options, advice = chunk.options, ""
    seconds = options.max_seconds if by_time else scheduler.seconds and scheduler.worked
    long = f"the launch is too long: stopped after {executed:,} instructions of its threads"
    long += f"{f' in {seconds:.3g} s' if seconds else ''}, {path:,} on one path through the kernel"
    spinning = waits_for_memory(chunk.translation.blocks, block)
    if spinning and by_time:
        what, reason = long, _WAITS
    elif spinning and scheduler.policy == "pascal" and _held_up(scheduler, group):
        what = f"the kernel does not end, a deadlock: {far}"
        reason = _ONE_COUNTER
    elif spinning:
        reason = _WAITS + _later_blocks(chunk)
    elif one_path:
        reason = "Does the loop's condition change in the loop? Is a step of 0 added, or does the index overflow?"
        advice = _RAISE.format(10 * scheduler.path_budget)
    else:
        what = long
        reason = "There may simply be a lot to do. Or do all threads run an endless loop?"
        limit = f"max_seconds={max(600, 10 * (options.max_seconds or 0)):g}"
        if options.instruction_limit is not None and not by_time:
            limit = f"instruction_limit=2**{max(40, (16 * executed).bit_length())}"
        advice = (
            f"If not, take fewer elements or allow more: {limit} (of warplab run --max-seconds)."
            if by_time
            else "If not, take fewer elements, simulate some blocks only (sample_blocks=64) or allow more: "
            f"warplab.simulate(kernel, grid, block, args, {limit})."
        )
    result = InstructionLimit(what, reason=f"{reason} {advice}".strip(), **scheduler.where(block, group))
    result.one_path, result.advice = one_path, advice
    return result


def deadlock(scheduler, block: Block, group, path: int) -> InstructionLimit:
    """Return the error for a scheduler all of whose threads wait for memory that none of them changes."""
    if scheduler.chunk.launch.workspace:
        reason = "Does each thread of the grid come to the grid's barrier (grid.sync()) as often as the others?"
    else:
        reason = _WAITS + _later_blocks(scheduler.chunk)
    if scheduler.policy == "pascal" and _held_up(scheduler, group):
        reason = _ONE_COUNTER
    what = f"the kernel does not end, a deadlock: after {path:,} instructions of one path through it all threads wait"
    result = InstructionLimit(
        f"{what} for memory that none of them changes", reason=reason, **scheduler.where(block, group)
    )
    result.one_path = True
    return result


def _later_blocks(chunk) -> str:
    blocks = math.prod(chunk.geometry.grid)
    if chunk.blocks == blocks:
        return ""
    return (
        f" The simulator runs {chunk.blocks:,} of the {blocks:,} blocks at a time (option chunk_lanes): they cannot "
        "wait for later ones."
    )


def _held_up(scheduler, group) -> bool:
    """Tell whether lanes wait for others of their own warp, which are in `group`."""
    warps = np.unique(scheduler.chunk.warp_of[group.all_lanes])
    parts = [lanes for parts in scheduler.pending.values() for lanes in parts]
    return any(np.isin(scheduler.chunk.warp_of[lanes], warps).any() for lanes in parts)
