"""Which observers a launch has. To add one, add a line."""

from collections.abc import Sequence

from warplab.simulator.check.access_checks import Checks
from warplab.simulator.check.operand_layouts import OperandLayouts, has_both
from warplab.simulator.check.proxy_fences import ProxyFences
from warplab.simulator.check.races import Races
from warplab.simulator.check.stale_texels import StaleTexels, may_be_stale
from warplab.simulator.check.unwritten_reads import Noted, UnwrittenReads, reads_local_arrays
from warplab.simulator.count.reuse import ReuseWatch
from warplab.simulator.count.sampling import BlockRange, Tally
from warplab.simulator.count.warp_steps import AccessTrace, StepTrace
from warplab.simulator.memory.device_memory import DeviceMemory
from warplab.simulator.observer import Observer
from warplab.simulator.run.options import Options
from warplab.simulator.translate.translation import Translation


def observers_of(
    options: Options,
    translation: Translation,
    memory: DeviceMemory,
    runs: Sequence[BlockRange],
    threads: int,
    blocks: int,
) -> list[Observer]:
    """Return the observers of a launch of `blocks` blocks of `threads` threads, of which those in `runs` run.

    They receive each event in this order, so an access is checked before any other observer sees it.
    """
    follows_races = (
        options.checks and options.races and 1 < blocks * threads < 2**31
    )  # its records can number that many threads
    trace = options.trace_warps if options.counters else 0
    return [
        *([Checks(memory, not options.used_reads_only, options.unwritten_reads)] if options.checks else []),
        *([OperandLayouts()] if options.checks and has_both(translation) else []),
        *([Races(translation, threads, blocks, options.volatile_orders)] if follows_races else []),
        *([ProxyFences(translation, options.fenced_barriers)] if options.checks and translation.asynchronous else []),
        *([StaleTexels(memory)] if options.checks and may_be_stale(translation) else []),
        *([Tally(translation, runs, blocks), ReuseWatch()] if options.counters else []),
        *([AccessTrace(memory, trace, options.trace_events)] if trace else []),
        *([StepTrace(translation, trace, options.trace_events)] if trace else []),
        *options.observers,
    ]


def unwritten_reads_of(
    options: Options, translation: Translation, noted: Noted, memory: DeviceMemory
) -> list[Observer]:
    """Return the observers that a launch needs when it runs again; all but the first it needs the first time, too."""
    if not options.used_reads_only and not reads_local_arrays(translation):
        return []
    return [Checks(memory, shared_reads=False), UnwrittenReads(noted, memory, options.used_reads_only)]
