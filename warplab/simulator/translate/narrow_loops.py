"""Loops that a few lanes run, as machine code.

For a warp or two, an array operation costs as much as for thousands of lanes, and looking after each block and access
in Python many times more. The blocks of a loop therefore become one function (`machine_writer`, `machine_compiler`)
that does what the scheduler does: it runs the group of lanes at the lowest block, parts groups at branches and merges
them where they meet. It leaves the loop, and returns to the scheduler, for all that it does not know. `run.narrow_runs`
calls it.
"""

from dataclasses import dataclass
from typing import Any

from warplab.simulator.translate import machine_compiler
from warplab.simulator.translate.basic_blocks import BRANCH, FALL, GUARD, JUMP, Block, around, entered, leads_on, loops
from warplab.simulator.translate.block_writer import SCOPE
from warplab.simulator.translate.machine_access import CONSTANTS, NAMES, addresses
from warplab.simulator.translate.machine_writer import UNKNOWN, MachineWriter, left_to_arrays

_MOST_NODES = 250  # blocks, and those behind them
# Microseconds, measured on one core of an x86-64 server in November 2026: only their proportions matter.
_BLOCK, _INSTRUCTION, _ACCESS, _OBSERVED_ACCESS = 1.0, 0.4, 4.0, 45.0
# Why a function returned: another group's turn or the loop's end; a limit; lanes that end parted; an error.
OVER, LIMIT, PARTED, FAILED = range(4)


@dataclass(eq=False)
class NarrowLoop:
    """`nodes`: its blocks and those that it leads to, in order; the first kind is in `inside`.

    `code`: what wrote it, with the registers that the function uses and writes, its variables and memory instructions.
    `heads`: heads of loops whose trips it counts, in order. `steps`, `results`: what Python computes.
    """

    nodes: list[int]
    inside: frozenset[int]
    code: MachineWriter
    heads: list[int]
    steps: list[tuple[Any, list[tuple[str, str]], list[str]]]
    results: list[tuple[Any, int, int]]
    call: Any


class NarrowLoops:
    """The loops of a kernel, found and compiled when they are asked for.

    `visits`: how often few lanes have come to a block, in all launches. `spent`: about how many microseconds this took.
    `declined`: by block, why the loop around it could not be compiled.
    """

    def __init__(self, translator, blocks: list[Block], waiting: dict[int, frozenset[int]]) -> None:
        self._translator, self._blocks, self._waiting = translator, blocks, waiting
        self.visits = [0] * len(blocks)
        self.spent = 0.0
        self.declined: dict[int, str] = {}
        self._costs: dict[bool, list[float]] = {}
        self._found: dict[int, NarrowLoop | None] = {}
        self._known: dict[int, str] = {}  # by block: why it can be part of no loop here, "" if it can

    def at(self, number: int) -> NarrowLoop | None:
        """Return the loop that this block is part of; None if there is none."""
        if number not in self._found:
            translator, loop = self._translator, None
            why = left_to_arrays(translator)
            if why:
                self.declined[number] = why
            else:
                loop = self._loop_around(number)
            self._found.update(dict.fromkeys([number] if loop is None else loop.inside, loop))
        return self._found[number]

    def costs(self, observed: bool) -> list[float]:
        """Return microseconds that each block takes by the arrays' code, roughly. `observed`: its accesses are."""
        if observed not in self._costs:
            access = _OBSERVED_ACCESS if observed else _ACCESS
            site_of = self._translator.site_of
            self._costs[observed] = [
                _BLOCK + sum(access if id(i) in site_of else _INSTRUCTION for i in block.body) for block in self._blocks
            ]
        return self._costs[observed]

    def _loop_around(self, number: int) -> NarrowLoop | None:
        blocks = self._blocks
        every = around(blocks, number)
        inside = {n for n in every if not self._why_not(n)}
        nodes = sorted(inside.union(*(blocks[n].successors() for n in inside)))
        if number not in every:
            return None
        why = self._why_not(number) or ("it is too large" if len(nodes) > _MOST_NODES else "")
        if why:
            self.declined[number] = why
            return None
        try:
            return _compiled(self._translator, blocks, inside, nodes)
        except (*UNKNOWN, machine_compiler.Untranslatable, RuntimeError, OSError) as error:  # the latter from LLVM
            self.declined[number] = str(error) or type(error).__name__
            return None

    def _why_not(self, number: int) -> str:
        """Return why this block can be part of no loop here; "" if it can."""
        if number not in self._known:
            block, why, writer = self._blocks[number], "", MachineWriter(self._translator)
            if block.end not in (FALL, JUMP, BRANCH, GUARD) or block.warp_wide is not None or number in self._waiting:
                why = "lanes wait there for one another (a barrier, a shuffle) or end"
            else:
                try:
                    writer.block(block)
                except UNKNOWN:
                    why = block.body[writer.position].text
            self._known[number] = why
        return self._known[number]


def _compiled(translator, blocks: list[Block], inside: set[int], nodes: list[int]) -> NarrowLoop:
    node = {number: k for k, number in enumerate(nodes)}
    ends = loops(blocks)
    entries = {n: entered(blocks[n], ends) for n in inside}
    heads = sorted((inside & ends.keys()).union(*entries.values()))
    w = MachineWriter(translator)
    w.indent = "        "
    for number in sorted(inside):
        block = blocks[number]
        w.emit(f"{'elif' if w.text else 'if'} cur == {node[number]}:")
        w.indent = "            "
        sites = sum(i.opcode in ("ld", "ldu") for i in block.body)
        begun = entries[number]
        w.emit(f"if call(F_ENTER, S, {node[number]}, {len(block.counted)}, {sites}, {len(begun)}):")
        w.emit("    return 1")
        if begun or number in ends:
            w.emit("if ld8(S + COUNTED):")
            for head in begun:
                k = heads.index(head)
                w.emit(f"    call(F_ENTERED, S, ld8(ld8(S + TRIPS) + {8 * k}), {head})")
            if number in ends:
                w.emit(f"    call(F_ROUND, S, ld8(ld8(S + TRIPS) + {8 * heads.index(number)}))")
        w.block(block)
        if block.end in (BRANCH, GUARD):
            _branch(w, blocks, block, node)
        else:
            target = block.target if block.end == JUMP else number + 1
            w.emit(f"st8(S + CURRENT, {node[target]})")
        w.indent = "        "
    source = "\n".join(
        [
            "def loop(S):",
            "    list = ld8(S + LIST)",
            "    address = ld8(S + ADDRESS)",
            "    registers = ld8(S + REGISTERS)",
            "    stride = ld8(S + STRIDE)",
            "    first = 1",
            "    while 1:",
            "        cur = ld8(S + CURRENT)",
            "        low = ld8(S + LOWEST)",
            "        next = low if low <= cur else cur",
            "        if next >= ld8(S + CEILING) or ld1(ld8(S + INSIDE) + next) == 0:",
            "            return 0",
            "        if first == 0 and (low < ld8(S + NODES) or ld8(S + FOREIGN) != 0):",
            "            if low <= cur:",
            "                call(F_PUT, S, cur, list, ld8(S + COUNT))",
            "                call(F_TAKE, S, low)",
            "                cur = low",
            "                st8(S + CURRENT, cur)",
            "                st8(S + WAITED, 0)",
            "            else:",
            "                waited = ld8(S + WAITED) + 1",
            "                if waited > ld8(S + PATIENCE):",
            "                    return 0",
            "                st8(S + WAITED, waited)",
            "        first = 0",
            *w.text,
        ]
    )
    compiled = machine_compiler.Compiled(machine_compiler.Source(source, CONSTANTS, NAMES), addresses())
    scope = {**SCOPE, **translator.constants}
    steps = []
    for step in w.steps:
        exec(compile(step.source, f"<simulated {translator.entry.name} step>", "exec"), scope)
        steps.append((scope.pop("step"), step.reads, step.writes))
    results = [
        (eval(f"lambda a=None, b=None, c=None: {template.format('a', 'b', 'c')}", scope), bits, out)
        for template, bits, out in w.results
    ]
    return NarrowLoop(nodes, frozenset(inside), w, heads, steps, results, compiled.function("loop"))


def _branch(w: MachineWriter, blocks: list[Block], block: Block, node: dict[int, int]) -> None:
    """Write what the scheduler does at a branch or guard."""
    assert block.condition is not None
    here, target, following = node[block.index], node[block.target], node[block.index + 1]
    predicate = w.place(block.condition.name)
    w.emit(f"taken = call(F_SPLIT, S, {predicate}, {int(block.negated)})")
    w.emit("if taken == 0:")
    w.emit(f"    st8(S + CURRENT, {following})")
    w.emit("elif taken == ld8(S + COUNT):")
    w.emit(f"    if call(F_ALL_TAKEN, S, {here}):")
    w.emit("        return 3")
    w.emit(f"    st8(S + CURRENT, {target})")
    w.emit("else:")
    ends = blocks[block.target].only_ends or (blocks[block.index + 1].only_ends and block.target > block.index + 1)
    if ends:
        w.emit("    return 2")
        return
    if leads_on(blocks, block):
        w.emit("    st8(S + ADVANCED, 1)")
    w.emit(f"    if call(F_PART, S, {target}, taken, {here}):")
    w.emit("        return 3")
    w.emit(f"    st8(S + CURRENT, {following})")
