"""What a kernel may do whose threads share its work: `shared_work`, for the argument `shared` of `kernel`.

A kernel that is right but serial is a wrong answer. It may be serial in several ways, and each is caught by a number:
one thread (of the grid, of each block, of each warp) does what others should do, or all threads do all of it: the work
of the busiest thread; the lanes of a warp take turns: the instructions of the warps, and how many lanes are active.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warplab.checks.counter_limits import Limit, Limits, of_size
from warplab.checks.kernel_run import KernelRun
from warplab.simulator.constants import WARP_SIZE

_BUSY = 0.5  # of the lanes that can be active: guards, and the rounds of loops that compilers unroll, idle others


@dataclass(frozen=True)
class SharedWork:
    """The limits of `shared_work`, which depend on the launch."""

    items: Callable[[Any], float] | None
    instructions: Limit
    each: Limit
    barriers: Limit | None
    atomics: Limit | None
    busy: float
    spare: int
    most: Mapping[str, Limit] = field(default_factory=dict)

    def limits(self, run: KernelRun, given: Limits) -> Limits:
        """Return the limits of one launch, without those that `given` already has."""
        items = self.items(run.size) if self.items else _outputs(run)
        share = math.ceil(items / run.threads) + self.spare
        instructions = of_size(self.instructions, run.size) + of_size(self.each, run.size) * share
        warps = run.blocks * math.ceil(run.threads_per_block / WARP_SIZE)
        most: dict[str, Limit] = {"warp_instructions": warps * instructions, "bulk_copies": 0}
        for counter, limit, factor in (("barriers", self.barriers, warps), ("atomics", self.atomics, 1)):
            if limit is not None:
                most[counter] = of_size(limit, run.size) * factor
        per_thread: dict[str, Limit] = {kind: of_size(limit, run.size) * share for kind, limit in self.most.items()}
        # A warp of a partial block has fewer lanes, and in the last round not every thread has an item.
        lanes = min(1.0, items / (warps * WARP_SIZE * share))
        return Limits(
            _without(given.most, most),
            _without(given.least, {"warp_efficiency": self.busy * lanes}),
            per_thread=_without(given.per_thread, per_thread | {"instructions": instructions}),
        )


def shared_work(
    items: Callable[[Any], float] | None = None,
    *,
    instructions: Limit,
    each: Limit = 0,
    barriers: Limit | None = 0,
    atomics: Limit | None = 0,
    busy: float = _BUSY,
    spare: int = 0,
    **most: Limit,
) -> SharedWork:
    """Return the limits of a kernel whose threads share its work, for the argument `shared` of `checks.kernel`.

    `items`: how many pieces of work there are for a size; by default as many as the outputs have elements. They are
    dealt out to the threads of the launch; the share of one thread is items / threads, rounded up.
    `instructions`, `each`: a thread may execute `instructions`, and `each` for each item of its share; a warp may
    execute as many, its lanes together. So 32 lanes that take turns are over the limit, if it is less than 32 times
    what they need.
    `barriers`: block-wide ones that a warp may reach; `atomics`: atomic requests of the whole launch; None for any
    number.
    `busy`: the least warp efficiency, as a part of the one that the launch allows: lanes without an item idle.
    `spare`: items that a thread may take beyond its share, for kernels that deal them out in groups.
    `most`: what a thread may do for each item of its share: kinds of `thread_work.KINDS`, such as `bytes_written=4`.
    Each limit is a number or a function of the size. `limits`, `least` and `per_thread` of `checks.kernel` add to
    these limits, or replace one.
    """
    return SharedWork(items, instructions, each, barriers, atomics, busy, spare, most)


def _outputs(run: KernelRun) -> int:
    """Return the number of elements of the arrays that the kernel writes."""
    return sum(np.size(expected) for expected in run.case.expected.values())


def _without(given: Mapping[str, Limit], limits: dict[str, Limit]) -> dict[str, Limit]:
    return {name: limit for name, limit in limits.items() if name not in given}
