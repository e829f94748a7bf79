"""Basic blocks of machine code, and the edges between them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from warplab.compile.disassembler import MachineInstruction

OUTSIDE = -1  # where threads come from, and where they go when they end

JUMPS = frozenset(("BRA", "JMP", "BRX", "JMX", "BRXU", "JMXU"))
_ENDS = frozenset(("EXIT", "RET", "KILL", "BPT"))
# Taken only by warps that have come apart before an instruction for whole warps, which compilers rule out.
_APART = re.compile(r"\.DIV(\.|$)|\.CONV(\.|$)")
_OWN_CONDITION = re.compile(r"^!?U?P\d\b")


class Edge(NamedTuple):
    """From block `source` to block `target` (OUTSIDE at the ends). `jump`: by a jump, not by falling through."""

    source: int
    target: int
    jump: bool


@dataclass
class BasicBlock:
    """Instructions `rows[first:end]`. `calls`: blocks at which functions begin that it calls. `ends`: how it ends:
    "fall", "jump", "branch" (either), "exit", "exit some" (under a predicate) or "return"."""

    index: int
    first: int
    end: int
    ends: str = "fall"
    calls: list[int] = field(default_factory=list)


def opcode(row: MachineInstruction) -> str:
    """Return the opcode without modifiers."""
    return row.opcode.split(".")[0]


def is_conditional(row: MachineInstruction) -> bool:
    """Return whether a jump or exit has a condition: a predicate in front, or one as its first operand."""
    if row.predicate and row.predicate not in ("@PT", "@UPT"):
        return True
    words = row.text.split(None, 2 if row.predicate else 1)
    return len(words) > 1 and opcode(row) in JUMPS and bool(_OWN_CONDITION.match(words[-1]))


def parts_lanes(row: MachineInstruction) -> bool:
    """Return whether a row is a conditional jump that a warp may take with some of its lanes."""
    return opcode(row) in JUMPS and is_conditional(row) and not _APART.search(row.opcode)


def cut(rows: Sequence[MachineInstruction]) -> tuple[list[BasicBlock], list[Edge]]:
    """Cut a kernel into blocks. Edges from OUTSIDE lead to the kernel's first block alone; functions that it calls
    have none, `BasicBlock.calls` names them."""
    starts = {0}
    at = {name: number for number, row in enumerate(rows) for name in (row.label, row.function) if name}
    for number, row in enumerate(rows):
        if row.label or row.function:
            starts.add(number)
        if opcode(row) in JUMPS or opcode(row) in _ENDS:
            starts.add(number + 1)
    starts.discard(len(rows))
    ordered = sorted(starts)
    blocks = [
        BasicBlock(index, first, end)
        for index, (first, end) in enumerate(zip(ordered, [*ordered[1:], len(rows)], strict=True))
    ]
    of = {block.first: block.index for block in blocks}
    edges = [Edge(OUTSIDE, 0, False)]
    for block in blocks:
        for row in rows[block.first : block.end]:
            if row.called in at:
                block.calls.append(of[at[row.called]])
        row, following = rows[block.end - 1], block.index + 1
        name, conditional = opcode(row), is_conditional(row)
        falls = following < len(blocks)
        if name in _ENDS and not (name == "BPT" and conditional):
            block.ends = "return" if name == "RET" else "exit some" if conditional else "exit"
            if name != "RET":
                edges.append(Edge(block.index, OUTSIDE, True))
            falls = falls and conditional
        elif name in JUMPS and not _APART.search(row.opcode):
            block.ends = "branch" if conditional else "jump"
            if row.target in at:
                edges.append(Edge(block.index, of[at[row.target]], True))
            falls = falls and conditional
        if falls:
            edges.append(Edge(block.index, following, False))
    return blocks, list(dict.fromkeys(edges))


def loops(blocks: Sequence[BasicBlock], edges: Sequence[Edge]) -> dict[int, frozenset[int]]:
    """Return the natural loops: blocks of each, by the block at its head. Edges back to one head make one loop."""
    following: dict[int, list[int]] = {block.index: [] for block in blocks}
    before: dict[int, list[int]] = {block.index: [] for block in blocks}
    for edge in edges:
        if edge.source >= 0 and edge.target >= 0:
            following[edge.source].append(edge.target)
            before[edge.target].append(edge.source)
    for block in blocks:
        for called in block.calls:
            following[block.index].append(called)
            before[called].append(block.index)
    dominated = _dominators(len(blocks), before)
    found: dict[int, set[int]] = {}
    for source, targets in following.items():
        for head in targets:
            if head in dominated[source]:
                inside, work = found.setdefault(head, {head}), [source]
                while work:
                    number = work.pop()
                    if number not in inside:
                        inside.add(number)
                        work += before[number]
    return {head: frozenset(inside) for head, inside in found.items()}


def _dominators(count: int, before: dict[int, list[int]]) -> list[set[int]]:
    """Return, for each block, the blocks that every way to it goes through, itself among them."""
    every = set(range(count))
    result = [{0} if number == 0 else every for number in range(count)]
    changed = True
    while changed:
        changed = False
        for number in range(1, count):
            ways = [result[other] for other in before[number]]
            now = (set.intersection(*ways) if ways else set()) | {number}
            if now != result[number]:
                result[number], changed = now, True
    return result
