"""Deadlocks of a launch that waits for memory: found as soon as the state of all its threads comes round again.

When all lanes stand in loops that only look at memory, and nothing but these loops runs, memory does not change. If the
registers of all lanes then keep coming back, while the loops take turns, they do so for ever: no one need wait for the
instruction limit. Loops that read a clock, wait for an mbarrier or exchange values are left to that limit.
"""

import numpy as np

from warplab.simulator.ptx.program import Immediate, Instruction
from warplab.simulator.translate.translation import Translation
from warplab.simulator.translate.waiting_loops import working_blocks

_BEFORE = 4  # turns of starved lanes after which states are compared
_MOST_STATES = 256
_EVERY = 61  # blocks of code; no multiple of the length of a usual loop


class Standstill:
    """Of one chunk. `moving`: the blocks of code that are no part of a loop that only looks at memory."""

    def __init__(self, chunk) -> None:
        self.chunk = chunk
        translation: Translation = chunk.translation
        working = working_blocks(translation.blocks) if translation.waiting_loops else frozenset()
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
