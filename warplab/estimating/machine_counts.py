"""How often each instruction of a kernel's machine code ran in a launch, and on which pipe of an SM.

    machine_counts(profile[0])        # a launch; needs no GPU
    machine_counts(profile[0]).warp_instructions

The simulator runs PTX and counts how often each of its blocks ran. NVIDIA's assembler makes machine code of the same
PTX, which says of each machine instruction which PTX instruction it comes from (`compile.machine_lines`). From both
follows how often each block of the machine code ran (`block_counts`). evidence/machine_code compares the totals with
Nsight Compute and says where they fail.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar

import numpy as np

from warplab.compile import machine_lines
from warplab.compile.disassembler import MachineInstruction
from warplab.estimating import machine_blocks
from warplab.estimating.block_counts import WEIGHTS, BlockCounts, PtxCounts, kind_of, reached, tells
from warplab.estimating.machine_blocks import JUMPS, OUTSIDE, BasicBlock, Edge, opcode, parts_lanes
from warplab.estimating.pipes import PIPES, pipe_of
from warplab.hardware.cards import Card
from warplab.launch import resources
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.profile_queries import no_counts, only_launch
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.count.counters import BlockFlow
from warplab.simulator.ptx.program import Instruction
from warplab.simulator.translate.basic_blocks import Block

__all__ = ["PIPES", "MachineBlock", "MachineCounts", "MachineRow", "machine_counts"]


Key = TypeVar("Key")
_CALLS = re.compile(r"(@!?\S+ )?call\b(?!.*\b(vprintf|malloc|free|__assertfail)\b)")
_NOT_INLINED = (
    "It calls functions that are not inlined (or that call themselves): their instructions are counted for all calls "
    "together, and warps whose lanes come back from a call part by part as if they came back together."
)

_SAME = 0.001  # share of a block's threads that an edge may lack which carries them all
_MEETS = re.compile(r"BSYNC|WARPSYNC|BRA\.DIV|BAR")  # what lanes of a warp wait at for one another


@dataclass(frozen=True)
class MachineRow:
    """One machine instruction.

    `address`: bytes from the kernel's start. `text`: predicate, opcode and operands. `ptx`: the PTX instruction that it
    comes from, `file` and `line` its source line; "" and 0 for none. `pipe`: one of `PIPES`. `block`: index into
    `MachineCounts.blocks`. `warps`, `threads`: how often it was issued in the whole launch, by warp and by thread,
    whether its predicate held or not.
    """

    address: int
    text: str
    opcode: str
    predicate: str
    pipe: str
    ptx: str
    file: str
    line: int
    block: int
    warps: float
    threads: float


@dataclass(frozen=True)
class MachineBlock:
    """A basic block of machine code: `MachineCounts.rows[first:end]`.

    `successors`: blocks that may come next. `warps`, `threads`: how often it ran. `loop`: the block at the head of the
    innermost loop around it, -1 for none. `depth`: how many loops are around it.
    """

    index: int
    first: int
    end: int
    successors: tuple[int, ...]
    warps: float
    threads: float
    loop: int
    depth: int


@dataclass(frozen=True, repr=False)
class MachineCounts:
    """The machine instructions of one launch, with how often they ran.

    `branches`, `divergent_branches`: jumps, once per warp, and those at which lanes of a warp parted.
    `notes`: what to know about them. `by_pipe`: warp instructions of each of `PIPES`. `cubin`: the code itself.
    """

    kernel: str
    arch: int
    rows: tuple[MachineRow, ...]
    blocks: tuple[MachineBlock, ...]
    resources: resources.Resources
    branches: float
    divergent_branches: float
    notes: tuple[str, ...] = ()
    by_pipe: dict[str, float] = field(default_factory=dict)
    cubin: bytes = field(default=b"", repr=False)

    @property
    def warp_instructions(self) -> float:
        """Return instructions issued, once per warp (`smsp__inst_executed.sum`)."""
        return sum(row.warps for row in self.rows)

    @property
    def thread_instructions(self) -> float:
        """Return instructions issued, once per active thread (`smsp__thread_inst_executed.sum`)."""
        return sum(row.threads for row in self.rows)

    @property
    def warp_efficiency(self) -> float | None:
        """Return the share of a warp's 32 lanes that were active, averaged over instructions (0 to 1)."""
        issued = self.warp_instructions
        return self.thread_instructions / issued / WARP_SIZE if issued else None

    def __str__(self) -> str:
        """Return totals, and a line for each instruction with its warp executions."""
        lanes = self.warp_efficiency
        pipes = ", ".join(f"{name} {amount:,.0f}" for name, amount in self.by_pipe.items() if round(amount))
        head = (
            f"{self.kernel} for sm_{self.arch}: {self.warp_instructions:,.0f} machine instructions issued "
            f"(inst_executed)" + ("" if lanes is None else f", {100 * lanes:.1f} % of their lanes active")
        )
        rows = [f"{row.address:04x} {row.warps:>14,.0f}  {row.text}" for row in self.rows]
        return "\n".join([f"{head}. By pipe: {pipes}.", *self.notes, *rows])

    __repr__ = __str__

    @property
    def by_line(self) -> dict[tuple[str, int], float]:
        """Return warp instructions by source line."""
        return _summed(self.rows, lambda row: (row.file, row.line))


def _summed(rows: Iterable[MachineRow], key: Callable[[MachineRow], Key]) -> dict[Key, float]:
    """Sum warp instructions by a key of the rows."""
    found: dict[Key, float] = {}
    for row in rows:
        found[key(row)] = found.get(key(row), 0.0) + row.warps
    return found


def machine_counts(profile: object, card: str | Card = "H100") -> MachineCounts:
    """Return how often each machine instruction of a launch ran, for `card`.

    `profile`: a launch, or a profile of exactly one. Raises ValueError for an unknown card, several launches, and a
    launch without counters or without its PTX; RuntimeError where the assembler refuses the PTX for that card;
    CompilerNotFound where a tool is missing.
    """
    launch = only_launch(profile, "machine_counts")
    arch, note = resources.architecture(card)
    known = launch.machine.get(arch)
    if known is None:
        known = launch.machine[arch] = _counted(launch, arch, note)
    return known


def _counted(launch: LaunchRecord, arch: int, note: str) -> MachineCounts:
    flow = launch.flow
    if flow is None:
        raise no_counts(launch)
    entry = flow.translation.entry
    program = entry.program
    functions = (*program.entries.values(), *program.functions.values())
    positions = [instruction.at for function in functions for instruction in function.instructions]
    assembled, rows, origins = machine_lines.assemble(program.text, positions, entry.name, arch, launch.max_registers)
    found = resources.reported(assembled, arch)
    ptx = PtxCounts(flow)
    blocks, edges = machine_blocks.cut(rows)
    entering = float(prod(launch.grid) * prod(launch.block))
    solved = BlockCounts(rows, origins, blocks, edges, ptx, entering)
    threads = solved.threads
    warps = _Warps(rows, origins, solved, launch)
    around = solved.loops
    made = tuple(_block(block, edges, warps.of[block.index], threads[block.index], around) for block in blocks)
    instructions = {at: inside[0][1] for at, inside in ptx.blocks.items()}
    origins = _with_calls(rows, origins)
    result = []
    for block in blocks:
        for number in range(block.first, block.end):
            row, instruction = rows[number], instructions.get(origins[number])
            result.append(
                MachineRow(
                    row.address,
                    row.text,
                    row.opcode,
                    row.predicate,
                    pipe_of(row.opcode),
                    instruction.text if instruction else "",
                    instruction.where.file if instruction else "",
                    instruction.where.line if instruction else 0,
                    block.index,
                    warps.of_row(block, number),
                    float(threads[block.index]),
                )
            )
    by_pipe = dict.fromkeys(PIPES, 0.0) | _summed(result, lambda row: row.pipe)
    branches, parted = warps.branches()
    notes: tuple[str, ...] = (note,) if note else ()
    if any(one.opcode.startswith("CALL") and _CALLS.match(one.ptx) for one in result):
        notes += (_NOT_INLINED,)
    return MachineCounts(
        launch.kernel, arch, tuple(result), made, found, branches, parted, notes, by_pipe, assembled.cubin
    )


def _with_calls(rows: Sequence[MachineInstruction], origins: Sequence[int]) -> list[int]:
    """Return `origins` in which called code that has none, as slow paths of divisions, has that of its first call."""
    first: dict[str, int] = {}
    for row, at in zip(rows, origins, strict=True):
        if row.called:
            first.setdefault(row.called, at)
    return [first.get(row.inside, -1) if at < 0 else at for row, at in zip(rows, origins, strict=True)]


def _block(block: BasicBlock, edges: Sequence[Edge], warps: float, threads: float, around) -> MachineBlock:
    own = [head for head, inside in around.items() if block.index in inside]
    innermost = min(own, key=lambda head: len(around[head]), default=-1)
    following = tuple(edge.target for edge in edges if edge.source == block.index and edge.target != OUTSIDE)
    return MachineBlock(
        block.index, block.first, block.end, following, float(warps), float(threads), innermost, len(own)
    )


def _calls_and_all(places: Sequence[tuple[Block, Instruction]]) -> list[tuple[int, ...]]:
    """Return the PTX blocks that an instruction has, one by one, and all together: the simulator has a copy of a
    function for each of its calls, the machine code one for all, or some."""
    each: list[tuple[int, ...]] = [(own.index,) for own, _ in places]
    return each if len(each) < 2 else [*each, tuple(own.index for own, _ in places)]


def _in_order(before: Sequence[Sequence[int]]) -> list[int]:
    """Return the blocks, each behind those `before` it."""
    done: dict[int, None] = {}
    for first in range(len(before)):
        work = [first]
        while work:
            missing = [b for b in before[work[-1]] if b not in (OUTSIDE, *done, *work)]
            if missing:
                work.append(missing[0])
            else:
                done.setdefault(work.pop())
    return list(done)


class _Warps:
    """How often warps ran the blocks: threads by how many of them a warp had in the PTX block that a block is from."""

    def __init__(
        self, rows: Sequence[MachineInstruction], origins: Sequence[int], solved: BlockCounts, launch: LaunchRecord
    ) -> None:
        self.rows, self.origins = rows, origins
        self.blocks, self.edges, self.ptx, self.sides = solved.blocks, solved.edges, solved.ptx, solved.sides
        self.threads, self.flows, self.into = solved.threads, solved.flows, solved.into
        self.flow: BlockFlow = self.ptx.flow
        size = prod(launch.block)
        self.start = -(-size // WARP_SIZE) / size  # warps per thread where none has ended
        self.share = self._shares()
        # What stands in no loop a warp runs once at most; code under a condition was voted to be a loop's.
        once = prod(launch.grid) * size * self.start
        following = [[edge.target for edge in self.edges if edge.source == k] for k in range(len(self.blocks))]
        self.of = []
        for k, threads in enumerate(self.threads):
            again = k in solved.calls or k in reached(following[k], following, OUTSIDE)
            warps = float(threads) * self.share[k]
            self.of.append(max(float(threads) / WARP_SIZE, warps if again else min(once, warps)))
        self.together = list(self.of)  # if lanes met again as soon as they could
        self._apart(solved)

    def _apart(self, solved: BlockCounts) -> None:
        """Let lanes that have come apart meet where an instruction says so, a BSYNC mostly: elsewhere warps come to a
        block as often as by all its edges. Behind a BSYNC are the warps of the BSSY before it."""
        opened = self._opened()
        forward: list[list[int]] = [
            [n for n in into if self.edges[n].source not in solved.loops.get(k, ())] for k, into in enumerate(self.into)
        ]
        callers: dict[int, list[int]] = {head: [] for head in solved.calls}
        for block in self.blocks:
            for called in block.calls:
                callers[called].append(block.index)
        before_each = [
            [self.edges[n].source for n in into] + [b for b in callers.get(k, ()) if b not in solved.loops.get(k, ())]
            for k, into in enumerate(forward)
        ]
        for k in _in_order(before_each):
            block, threads = self.blocks[k], float(self.threads[k])
            if k in callers:  # each call is run by warps of its own
                self.of[k] = max(self.of[k], min(threads, sum(self.of[b] for b in callers[k])))
                continue
            if k in solved.loops:
                continue
            come = min(threads, sum(self.edge(n) for n in forward[k]))
            sure = all(self._is_known(n) for n in forward[k])
            before = opened.get(k)
            if before is not None and abs(self.threads[before] - threads) <= _SAME * threads:
                self.of[k] = self.of[before]
            elif any(_MEETS.match(row.opcode) for row in self.rows[block.first : block.end]):
                self.of[k] = min(self.of[k], come) if sure else self.of[k]
            else:
                self.of[k] = come if sure else max(self.of[k], come)

    def _opened(self) -> dict[int, int]:
        """Map blocks that begin with a BSYNC to the one that ends where its BSSY stands; that names what follows."""
        blocks = {self.rows[block.first].label: block.index for block in self.blocks}
        found: dict[int, int] = {}
        for block in self.blocks:
            for row in self.rows[block.first : block.end]:
                after = blocks.get(row.target, 0) if opcode(row) == "BSSY" else 0
                if after and opcode(self.rows[self.blocks[after - 1].first]) == "BSYNC":
                    found[after - 1] = block.index
        return found

    def _shares(self) -> list[float]:
        """Return the warps per thread of each block: voted, else that of where most threads come from or go.

        Where threads meet (BSYNC), that of where they go on together.
        """
        share: list[float | None] = [self._voted(block) for block in self.blocks]
        strict = True
        while missing := [k for k, known in enumerate(share) if known is None]:
            for k in reversed(missing):
                meets = opcode(self.rows[self.blocks[k].first]) == "BSYNC"
                near = [(math.inf if meets else 0.0, edge.target) for edge in self.edges if edge.source == k]
                if not (meets and strict):
                    near += [(float(self.flows[n]) + 1e-9, self.edges[n].source) for n in self.into[k]]
                known = [(flow, self.start if b == OUTSIDE else share[b]) for flow, b in near]
                share[k] = max(((flow, value) for flow, value in known if value is not None), default=(0, None))[1]
            if all(share[k] is None for k in missing):
                if not strict:
                    break
                strict = False
        return [self.start if value is None else value for value in share]

    def _voted(self, block: BasicBlock) -> float | None:
        votes: dict[tuple[int, ...], float] = {}
        ran = self.threads[block.index]
        for number in range(block.first, block.end):
            row, at = self.rows[number], self.origins[number]
            last = number == block.end - 1 and opcode(row) in ("BRA", "EXIT")
            if at < 0 or (row.predicate and not last):
                continue
            places = self.ptx.blocks.get(at, [])
            for own in _calls_and_all(places):
                threads, instruction = sum(self.flow.threads[index] for index in own), places[0][1]
                if threads and tells(row, instruction):
                    weight = WEIGHTS[kind_of(instruction)] + (0.5 if last else 0)
                    alike = abs(threads - ran) <= 0.001 * ran
                    votes[own] = votes.get(own, 0) + weight * (4 if alike else 1)
        if not votes:
            return None
        home = max(votes, key=votes.__getitem__)
        return sum(self.flow.warps[index] for index in home) / sum(self.flow.threads[index] for index in home)

    def _is_known(self, number: int) -> bool:
        """Return whether all threads of a block take an edge, or it is known how many do."""
        edge = self.edges[number]
        if edge.source == OUTSIDE or self.blocks[edge.source].ends not in ("branch", "exit some"):
            return True
        return number in self.sides or self.flows[number] >= (1 - _SAME) * self.threads[edge.source]

    def edge(self, number: int) -> float:
        """Return warps that took an edge, each that parted on both of its edges."""
        edge, threads = self.edges[number], float(self.flows[number])
        if edge.source == OUTSIDE:
            return threads * self.start
        block, come = self.blocks[edge.source], self.threads[edge.source]
        if threads <= 0:
            return 0.0
        if block.ends not in ("branch", "exit some") or threads >= (1 - _SAME) * come:
            return self.of[edge.source]
        taken, warps = self.sides.get(number, (0.0, 0.0))
        share = warps / taken if taken else self.share[edge.source]
        parts = self.of[edge.source] / (self.together[edge.source] or 1)
        return min(self.of[edge.source], threads * share * parts, threads)

    def of_row(self, block: BasicBlock, number: int) -> float:
        """Return warps that executed a row. Those that meet at a BSYNC execute it part by part, as they come."""
        if number == block.first and opcode(self.rows[number]) in ("BSYNC", "WARPSYNC"):
            return max(self.of[block.index], sum(self.edge(n) for n in self.into[block.index]))
        return self.of[block.index]

    def branches(self) -> tuple[float, float]:
        """Count jumps, once per warp, and those at which a warp parted.

        ncu counts unconditional jumps, too, and those for warps that have come apart (BRA.DIV), which are not taken.
        """
        total = parted = 0.0
        for block in self.blocks:
            last = self.rows[block.end - 1]
            if opcode(last) not in JUMPS:
                continue
            total += self.of[block.index]
            if parts_lanes(last):
                ways = [self.edge(k) for k, edge in enumerate(self.edges) if edge.source == block.index]
                parted += max(0.0, sum(ways) - self.of[block.index]) if np.all(ways) else 0
        return total, parted
