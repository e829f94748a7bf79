"""A launch beyond its instruction limits: an endless loop, a deadlock, or merely much work; what the error says of it.

No program can tell in general whether another one ends. Two signs are used: how far one path went, and whether the
loop there waits for memory, as a spin lock does.
"""

from __future__ import annotations

import math

import numpy as np

from warplab.simulator.errors import InstructionLimit
from warplab.simulator.ptx.program import Immediate, Instruction
from warplab.simulator.translate.basic_blocks import Block

_WAITING = frozenset(("volatile", "relaxed", "acquire", "mmio", "cas", "exch", "try_wait", "test_wait"))
_NEUTRAL = frozenset(("add", "or", "xor"))  # with 0
_RAISE = "If it does end later, raise the limit: simulate(..., path_limit={})."


def error(scheduler, block: Block, group, executed: int, path: int) -> InstructionLimit:
    """The error for a scheduler whose `group` was about to run `block` when a limit was passed.

    `executed`: thread instructions of the chunk; `path`: instructions on its way.
    """
    one_path = path > scheduler.path_budget
    far = f"stopped after {path:,} instructions of one path through it"
    what = f"the kernel does not end: {far}"
    chunk = scheduler.chunk
    advice = ""
    spinning = _waits_for_memory(chunk.translation.blocks, block)
    if spinning and scheduler.policy == "pascal" and _held_up(scheduler, group):
        what = f"the kernel does not end, a deadlock: {far}"
        reason = (
            "With one program counter a warp, lanes that have left the loop wait for those of their warp that are "
            "still in it; these wait for the others, for example for a lock, so that none can go on."
        )
    elif spinning:
        reason = (
            "The loop waits for memory that another thread must change: is a lock never released, or does that thread "
            "wait for this one?"
        )
        blocks = math.prod(chunk.geometry.grid)
        if chunk.blocks < blocks:
            reason += (
                f" The simulator runs {chunk.blocks:,} of the {blocks:,} blocks at a time (option chunk_lanes): they "
                "cannot wait for later ones."
            )
    elif one_path:
        reason = "Does the loop's condition change in the loop? Is a step of 0 added, or does the index overflow?"
        advice = _RAISE.format(10 * scheduler.path_budget)
    else:
        what = (
            f"the launch is too long: stopped after {executed:,} instructions of its threads, {path:,} on one path "
            "through the kernel"
        )
        reason = "No thread came far: there may just be much to do. Or do all threads run an endless loop?"
        advice = "If not, take fewer elements, simulate some blocks only (sample_blocks=64) or raise instruction_limit."
    result = InstructionLimit(what, reason=f"{reason} {advice}".strip(), **scheduler.where(block, group))
    result.one_path, result.advice = one_path, advice
    return result


def _held_up(scheduler, group) -> bool:
    """Do lanes wait for others of their own warp in `group`?"""
    warps = np.unique(scheduler.chunk.warp_of[group.all_lanes])
    parts = [lanes for parts in scheduler.pending.values() for lanes in parts]
    return any(np.isin(scheduler.chunk.warp_of[lanes], warps).any() for lanes in parts)


def _waits_for_memory(blocks: list[Block], block: Block) -> bool:
    """Is there an access in the loop around `block` that is meant to see what other threads write?"""
    before: list[list[int]] = [[] for _ in blocks]
    for one in blocks:
        for number in one.successors():
            before[number].append(one.index)
    following = [one.successors() for one in blocks]
    loop = reached(following, block.index) & reached(before, block.index)
    return any(_looks(blocks[number]) for number in loop)


def waiting_loops(blocks: list[Block]) -> dict[int, frozenset[int]]:
    """The innermost loops that look at what other threads write: for each block of one, all its blocks."""
    loops = sorted(
        (one.index - head, head, one.index) for one in blocks for head in one.successors() if head <= one.index
    )
    result: dict[int, frozenset[int]] = {}
    for block in blocks:
        around = next((range(head, end + 1) for _, head, end in loops if head <= block.index <= end), None)
        if around is not None and _looks(block):
            result.update(dict.fromkeys(around, frozenset(around)))
    return result


def _looks(block: Block) -> bool:
    return any(
        i.opcode in ("ld", "atom", "mbarrier") and (not _WAITING.isdisjoint(i.modifiers) or _changes_nothing(i))
        for i in block.counted
    )


def _changes_nothing(i: Instruction) -> bool:
    """`atomicAdd(flag, 0)` and the like, which only look."""
    value = i.operands[-1] if i.opcode == "atom" and not _NEUTRAL.isdisjoint(i.modifiers) else None
    return isinstance(value, Immediate) and value.value == 0


def reached(following: list, start: int) -> set[int]:
    """Blocks that control comes to after `start`, itself only if it comes back."""
    found: set[int] = set()
    work = list(following[start])
    while work:
        number = work.pop()
        if number not in found:
            found.add(number)
            work += following[number]
    return found
