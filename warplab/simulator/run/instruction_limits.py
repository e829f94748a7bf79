"""What the error says of a launch beyond its instruction limits: an endless loop, a deadlock, or merely a lot of work.

No program can tell in general whether another one ends. Two signs are used: how far one path went, and whether the
loop there waits for memory, as a spin lock does.
"""

import math

import numpy as np

from warplab.simulator.errors import InstructionLimit
from warplab.simulator.translate.basic_blocks import Block
from warplab.simulator.translate.waiting_loops import waits_for_memory

_ONE_COUNTER = (
    "With one program counter per warp, lanes that have left the loop wait for those of their warp that are still in "
    "it; these wait for the others, for example for a lock, so that none can go on."
)
_WAITS = (
    "The loop waits for memory that another thread must change: is a lock never released, or does that thread wait for "
    "this one?"
)
_RAISE = "If it does end later, raise the limit: simulate(..., path_limit={})."


def error(scheduler, block: Block, group, executed: int, path: int) -> InstructionLimit:
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
