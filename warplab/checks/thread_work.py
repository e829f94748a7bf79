"""The work of a launch thread by thread, and the most that one thread may do: a kernel that is right but serial fails.

Totals cannot tell a serial kernel from a parallel one. Limits on the busiest thread can, whoever else idles, repeats
the work, or does some to no purpose.
"""

from collections.abc import Mapping

import numpy as np

from warplab.checks.cases import Dimensions
from warplab.checks.kernel_run import KernelRun
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.observer import Lanes, Observer
from warplab.simulator.translate.block_writer import Site

KINDS = {
    "instructions": "instructions",
    "flops": "floating-point operations",
    "bytes_loaded": "bytes loaded from global memory",
    "bytes_written": "bytes written to global memory",
}
# Of all threads together, each counted by itself; the launch's counters take lanes that share an address once.
TOTALS = {
    "thread_bytes_loaded": "bytes loaded by all threads together from global memory",
    "writing_threads": "threads that write to global memory",
}
_ALIKE = 1.5  # times the work of the other threads: a guard or a tail makes that much difference
_AGAIN = 1.5  # stores per byte of the outputs: rounds of a loop that end late make less of a difference
_MAY = "times what each may"
_HOW_OFTEN = "how often each element is loaded, computed and stored"
_STEP = f"{_HOW_OFTEN}, and by how much a loop steps: by all threads of the grid"
_LOOK_AT = "which outputs a thread computes, which it leaves to other threads and blocks, and how often it does each"


class ThreadWork(Observer):
    """Counts for each thread of one launch.

    "instructions": machine instructions, as `ptxas_model` estimates them. "flops": of all precisions, an FMA counts
    two; not those of tensor cores. "bytes_loaded", "bytes_written": of global memory, each thread by itself; atomic
    operations count as written.
    """

    def __init__(self) -> None:
        self._busiest = {kind: (-1, 0) for kind in KINDS}  # most work, and the thread's number in the launch
        self._totals = dict.fromkeys(KINDS, 0)
        self._writing, self._loops = 0, False

    def watch(self, chunk) -> Observer:
        self._work = dict(zip(KINDS, np.zeros((len(KINDS), chunk.lanes), np.int64), strict=True))
        self._per_block = [
            (
                sum(line.instructions for line in lines.values()),
                sum(sum(line.flops.values()) for line in lines.values()),
            )
            for lines in chunk.translation.static_counts
        ]
        self._loops = any(0 <= block.target <= block.index for block in chunk.translation.blocks)
        return super().watch(chunk)

    def end_chunk(self) -> None:
        first = self.chunk.first_block * self.chunk.threads
        for kind, work in self._work.items():
            thread = int(work.argmax())
            self._busiest[kind] = max(self._busiest[kind], (int(work[thread]), first + thread), key=lambda x: x[0])
            self._totals[kind] += int(work.sum())
        self._writing += int(np.count_nonzero(self._work["bytes_written"]))

    def end_launch(self, profile, finished: bool) -> None:
        self.chunk = None  # and with it the launch's memory

    def block(self, number: int, group: Group, time: int) -> None:
        instructions, flops = self._per_block[number]
        self._add("instructions", group.lanes, instructions)
        if flops:
            self._add("flops", group.lanes, flops)

    def load(self, site: Site, space: str, addresses: Addresses, lanes: Lanes) -> None:
        if space == "global":
            self._add("bytes_loaded", lanes, site.width)

    copy_request = load

    def store(self, site: Site, space: str, addresses: Addresses, lanes: Lanes, values) -> None:
        if space == "global":
            self._add("bytes_written", lanes, site.width)

    atomic = store

    def _add(self, kind: str, lanes: Lanes, amount: int) -> None:
        if lanes is None:
            self._work[kind] += amount
        else:
            self._work[kind][lanes] += amount

    def total(self, name: str) -> int:
        """Return one of TOTALS, of the whole launch."""
        return self._writing if name == "writing_threads" else self._totals["bytes_loaded"]

    def _times_stored(self, run: KernelRun) -> float:
        """Return how often the launch stores each byte of its outputs, in the mean."""
        return self._totals["bytes_written"] / max(1, sum(array.nbytes for array in run.case.expected.values()))

    def check(self, run: KernelRun, limits: Mapping[str, float], busiest_line: str = "") -> None:
        """Raise `CheckFailed` at the first kind of work (of `KINDS`) of which a thread did more than allowed.

        `busiest_line`: on the line with most instructions and on float64, for a thread that executes too many.
        """
        for kind, most in limits.items():
            work, number = self._busiest[kind]
            if work <= most:
                continue
            block, thread = divmod(number, run.threads_per_block)
            share = _share(work, self._totals[kind], run.threads, most)
            too_much, look_at = "one thread does too much of the work", _LOOK_AT
            how_often = _STEP if self._loops and run.blocks > 1 else _HOW_OFTEN
            if kind == "instructions":
                how_often += "; what it executes for elements of others"
            if share.endswith(_MAY):
                too_much, look_at = f"{too_much}, and so do the others", how_often
            if (again := self._times_stored(run)) >= _AGAIN and 2 * work <= self._totals[kind]:
                too_much, look_at = f"{too_much}, and outputs are stored several times", how_often
                share = f"{share}\nEach output is stored {again:{',.0f' if again >= 10 else '.2g'}} times on average."
            raise run.failed(
                f"{run.name}: {too_much}.",
                expected=f"per thread at most {most:,.0f} {KINDS[kind]}",
                got=f"{work:,} by thread {_place(thread, run.block)} of block {_place(block, run.grid)}: " + share,
                look_at="\n".join(filter(None, (look_at, busiest_line if kind == "instructions" else ""))),
                kind="limit",
                missed="one thread does too much of the work",
            )


def _share(work: int, total: int, threads: int, most: float) -> str:
    """Return what the busiest thread does of the work of a launch, in words. `most`: what it may do."""
    others = (total - work) / (threads - 1) if threads > 1 else 0
    if threads == 1 or work == total:
        return f"all of it, although the launch has {threads:,} threads" if threads > 1 else "the launch has no other"
    if work > total / 2:
        return f"nearly all of it ({100 * work / total:.0f} %), although the launch has {threads:,} threads"
    if work <= _ALIKE * others:
        alike = f"the other {threads - 1:,} threads do about as much"
        return (
            f"{alike}. Does every thread do all the work?" if work > 2 * most else f"{alike}, {work / most:.2g} {_MAY}"
        )
    return f"{work / (total / threads):,.0f} times what the launch's {threads:,} threads do on average"


def _place(number: int, size: Dimensions) -> str:
    """Return a thread in its block, or a block in its grid, such as "7", or "(7, 0)" if these have two dimensions."""
    if isinstance(size, int) or len(size) == 1:
        return str(number)
    return f"({', '.join(str(int(i)) for i in np.unravel_index(number, size, order='F'))})"
