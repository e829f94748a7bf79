"""How many cycles a warp of a launch takes that shares a multiprocessor with few others: what more warps can hide.

A warp issues its instructions in order. The control bits of the machine code say for how many cycles each holds it up,
and which results it waits for; the ports of the registers hold it up, too (`register_reads`). Results of loads and of
slow instructions come after the latencies given here, and those of several loads one after the other, at the rate at
which memory or shared memory can deliver them; stores take their turns, too. Of code that runs in a loop some passes
are followed, so that waits of one pass for another show.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from warplab.compile.control_codes import NONE, SCOREBOARDS
from warplab.estimating.dependence import of_longest_warp
from warplab.estimating.register_reads import Ports, Reads, reads_of
from warplab.estimating.work import CodeBlock, Row, Work

# Assumed: nobody has measured these two here.
READ_OPERANDS = 12  # cycles until a store or load has read its registers
PASSES = 12  # of a loop that are followed; those after the first stand for the others
# Swept on an H100 (sweeps.json: barriers, loops).
BARRIER, BARRIER_WARP = 14, 2  # cycles of a barrier, and more for each warp of the block
BRANCH = 4  # cycles of a jump beyond its stall
PARTING = 22  # cycles for a branch at which a warp's lanes part, which they later end
_GROUPS = re.compile(r"DEPBAR\.LE SB\d, (0x[0-9a-f]+)")

MEMORY, SHARED = 0, 1  # ways that accesses take, one after the other


class Access(NamedTuple):
    """Cycles until an instruction's result can be used, after those for which it occupies a way, MEMORY or SHARED."""

    until: float
    occupied: float = 0.0
    way: int = MEMORY


Latency = Callable[[Row], Access]


@dataclass
class _Warp:
    """Where a warp is: the time, when each scoreboard and each way is free, and when groups of copies are done."""

    time: float = 0.0
    ways: list[float] = field(default_factory=lambda: [0.0, 0.0])
    free: list[float] = field(default_factory=lambda: [0.0] * SCOREBOARDS)
    copies: float = 0.0
    groups: list[float] = field(default_factory=list)
    barrier: float = BARRIER
    ports: Ports = field(default_factory=Ports)

    def run(self, rows: Sequence[Row], latency: Latency) -> float:
        """Issue instructions; return the cycles until the next one can follow."""
        return sum(self.issue(row, reads, latency) for row, reads in zip(rows, reads_of(rows), strict=True))

    def issue(self, row: Row, reads: Reads, latency: Latency) -> float:
        """Issue an instruction that reads so many registers; return the cycles until the next one can follow."""
        start = self.time
        for board in row.boards:
            self.time = max(self.time, self.free[board])
        self.time += self.ports.wait(self.time, reads)
        if row.name == "DEPBAR" and (found := _GROUPS.search(row.text)):
            done = self.groups[: len(self.groups) - int(found[1], 16)]
            self.time = max([self.time, *done])
        done_at = self._done_at(latency(row))
        if row.name == "LDGSTS":
            self.copies = max(self.copies, done_at)
        elif row.name == "LDGDEPBAR":
            self.groups.append(self.copies)
        elif row.name == "BAR":
            self.time += self.barrier
        elif row.name == "BRA":
            self.time += BRANCH
        if row.writes != NONE and row.name != "LDGDEPBAR":
            self.free[row.writes] = max(self.free[row.writes], done_at)
        if row.reads != NONE:
            self.free[row.reads] = max(self.free[row.reads], self.time + READ_OPERANDS)
        self.time += max(1, row.stall)
        return self.time - start

    def _done_at(self, access: Access) -> float:
        """Return when the result of an access that is issued now can be used."""
        if not access.occupied:
            return self.time + access.until
        self.ways[access.way] = max(self.time, self.ways[access.way]) + access.occupied
        return self.ways[access.way] + access.until


def cycles_by_line(work: Work, latency: Latency) -> dict[tuple[str, int], float]:
    """Return the cycles of `cycles` by source line, each instruction's from when the one before it lets it go."""
    warp = _Warp(barrier=BARRIER + BARRIER_WARP * work.warps_per_block)
    found: dict[tuple[str, int], float] = {}
    for block in work.code:
        often = _times(work, block)
        if not often:
            continue
        passes = min(PASSES, math.ceil(often)) if block.loop >= 0 else 1
        for _ in range(passes):
            rows = _rows(work, block)
            for row, reads in zip(rows, reads_of(rows), strict=True):
                place = row.file, row.line
                found[place] = found.get(place, 0.0) + warp.issue(row, reads, latency) * often / passes
    return found


def cycles(work: Work, latency: Latency) -> float:
    """Return cycles from a warp's first instruction to its last. `latency`: what an instruction takes beside its
    stall."""
    warp, at = _Warp(barrier=BARRIER + BARRIER_WARP * work.warps_per_block), 0
    total = PARTING * work.counts.get("divergent_branches", 0.0) / work.warps
    more_often = of_longest_warp(work)
    while at < len(work.code):
        loop = work.code[at].loop
        end = at + 1
        while loop >= 0 and end < len(work.code) and work.code[end].loop == loop:
            end += 1
        those = [k for k in range(at, end) if work.code[k].warps > 0]
        run = [work.code[k] for k in those]
        times = [_times(work, work.code[k]) * more_often[k] for k in those]
        passes = min(PASSES, math.ceil(max(times, default=1))) if loop >= 0 else 1
        took = [[warp.run(_rows(work, block), latency) for block in run] for _ in range(passes)]
        for number, often in enumerate(times):
            first, *others = (one[number] for one in took)
            more = sum(others) / len(others) if others else first
            total += first * min(often, 1) + more * max(often - 1, 0)
        at = end
    return total


def _times(work: Work, block: CodeBlock) -> float:
    """Return how often a warp runs a block, on average. One that asks again and again what other threads have written
    counts once: how long they are waited for is theirs, and the simulator's blocks do not run as a GPU's do."""
    often = block.warps / work.warps
    asks = any(row.name in ("LDG", "LD") and ".STRONG" in row.opcode for row in _rows(work, block))
    return min(often, 1.0) if asks else often


def _rows(work: Work, block: CodeBlock) -> Sequence[Row]:
    return work.rows[block.first : block.end]
