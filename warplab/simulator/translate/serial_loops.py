"""Loops that a single lane runs, as Python functions on plain numbers.

An array with one entry costs as much as one with hundreds, and the scheduler looks at every block of code. A loop in
which one lane goes round alone therefore becomes one function over all its blocks (`SerialLoop`), with registers as
Python's integers and floats (`serial_operations`). `run.serial_runs` calls it. What the function does not know, such as
the first access to an array or one that may be an error, it leaves to the arrays' code, access by access.

The blocks of a loop form trees: from a *label*, a block that several others lead to, along branches to further labels
or out of the loop. One trip through the function's only `for` loop goes through one tree. Each way through a tree, a
*path*, has a counter, from which follows how often each block ran.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import repeat
from math import ceil, floor, sqrt
from typing import Any, NamedTuple

import numpy as np

from warplab.simulator import numerics
from warplab.simulator.numerics import serial
from warplab.simulator.ptx.program import Instruction
from warplab.simulator.translate.basic_blocks import BRANCH, FALL, GUARD, JUMP, Block
from warplab.simulator.translate.block_writer import DTYPES
from warplab.simulator.translate.serial_operations import TABLE, NotSerial
from warplab.simulator.translate.serial_writer import SerialWriter

MOST_BLOCKS = 200  # of a loop
_DEEPEST = 40  # nested branches: Python allows 100 levels of indentation
_MOST_BY_ARRAYS = 0.25  # of a loop's instructions: with more, plain numbers gain nothing
# What writing an instruction raises for a form that it does not know.
_UNKNOWN = (NotSerial, KeyError, IndexError, AttributeError, ValueError)
Words = tuple[tuple[str, int], ...]  # by space, bytes of a word of race detection; none without


class Path(NamedTuple):
    """A way through a tree: its blocks, and those of them whose branch was taken."""

    blocks: tuple[int, ...]
    taken: tuple[int, ...]


@dataclass(eq=False)
class SerialLoop:
    """`blocks`: its blocks. `labels`: where it can be entered. `paths`: those through its trees.

    `loaded`, `stored`: registers that the function takes and gives back, in the forms `forms_of`. `sites`: the memory
    instructions of each block, in order. `forms`: by site, "u", "f" or "d", as which its values pass. `before`,
    `taken_before`: for each block, the blocks of its tree that run before it, and those whose branch is taken then.
    """

    blocks: frozenset[int]
    labels: frozenset[int]
    loaded: list[str]
    stored: list[str]
    forms_of: dict[str, str]
    paths: list[Path]
    sites: dict[int, list[int]]
    forms: dict[int, str]
    before: dict[int, tuple[int, ...]]
    taken_before: dict[int, tuple[int, ...]]
    longest: int  # most instructions of a path
    most_blocks: int
    most_sites: int
    heads: frozenset[int]  # of the loops inside, which count trips
    write: Callable[[bool, bool, bool, Words], Any]  # of a function
    functions: dict[tuple[bool, bool, bool, Words], Any] = field(default_factory=dict)

    def function(self, counted: bool, traced: bool, read: bool, words: Words):
        """Return the function. `counted`: it marks the sectors that it touches. `traced`: it lists blocks and
        accesses. `read`: it lists the addresses in global memory that it reads. `words`: it tests whose words its
        accesses go to, and lists them."""
        key = counted, traced, read, words
        if key not in self.functions:
            self.functions[key] = self.write(*key)
        return self.functions[key]


class SerialLoops:
    """The serial loops of a kernel, found and written when they are asked for.

    `visits`: how often a single lane has come to a block, in all launches.
    """

    def __init__(self, translator, blocks: list[Block], waiting: dict[int, frozenset[int]]) -> None:
        self._translator, self._blocks = translator, blocks
        self._waiting = waiting
        self.visits: dict[int, int] = {}
        self._found: dict[int, SerialLoop | None] = {}
        self._known: dict[int, bool] = {}  # of blocks

    def at(self, number: int) -> SerialLoop | None:
        """Return the loop that can be entered at this block; None if there is none."""
        if number not in self._found:
            self._found[number] = None
            if not self._translator.maybe_unwritten:
                loop = self._loop_around(number)
                if loop is not None:
                    self._found.update(dict.fromkeys(loop.labels, loop))
        return self._found[number]

    def _loop_around(self, number: int) -> SerialLoop | None:
        after, before = _reached(number, self._following), _reached(number, self._preceding)
        blocks = after & before
        if not blocks or len(blocks) > MOST_BLOCKS or not self._serial(number):
            return None
        try:
            return _Loop(self._translator, self._blocks, blocks).made
        except _UNKNOWN:
            return None

    def _following(self, number: int) -> list[int]:
        return [n for n in self._blocks[number].successors() if self._serial(n)]

    def _preceding(self, number: int) -> list[int]:
        return [b.index for b in self._blocks if number in b.successors() and self._serial(b.index)]

    def _serial(self, number: int) -> bool:
        """Can this block be part of a serial loop?"""
        if number not in self._known:
            block = self._blocks[number]
            good = block.end in (FALL, JUMP, BRANCH, GUARD) and block.warp_wide is None and number not in self._waiting
            self._known[number] = good and _Loop.can(self._translator, self._blocks, number)
        return self._known[number]


def _reached(start: int, following) -> set[int]:
    found: set[int] = set()
    work = following(start)
    while work:
        number = work.pop()
        if number not in found:
            found.add(number)
            work += following(number)
    return found


class _Loop:
    """Makes the `SerialLoop` of some blocks."""

    def __init__(self, translator, blocks: list[Block], inside: set[int]) -> None:
        self.translator, self.blocks, self.inside = translator, blocks, inside
        preceding: Counter[int] = Counter(
            number for block in blocks for number in set(block.successors()) if number in inside
        )
        from_outside = {n for block in blocks if block.index not in inside for n in block.successors()} & inside
        self.labels = from_outside | {n for n in inside if preceding[n] > 1} | {min(inside)}
        self.heads = {n for block in blocks for n in block.successors() if n <= block.index and n in inside}
        ends = {h: max(b.index for b in blocks if h in b.successors()) for h in self.heads}
        self.entries = {
            n: [h for h in blocks[n].successors() if h in self.heads and not h <= n <= ends[h]] for n in inside
        }
        writer = self._write_all(SerialWriter(translator))  # to see how registers are used, and which nest too deep
        writer.settle()
        self.votes, self.joined = writer.votes, writer.joined
        writer = self._write_all(self._writer())
        instructions = sum(len(blocks[n].body) for n in inside)
        if writer.by_array > _MOST_BY_ARRAYS * instructions:
            raise NotSerial
        live = frozenset[str]().union(*(blocks[n].live_in for n in self.labels))
        leave = {n for b in inside for n in blocks[b].successors()} - inside
        live_after = live.union(*(blocks[n].live_in for n in leave))
        loaded = sorted(name for name in live if name in writer.names and name in translator.slots)
        stored = sorted(name for name in writer.written & live_after if name in translator.slots)
        self.made = SerialLoop(
            frozenset(inside),
            frozenset(self.labels),
            loaded,
            stored,
            {name: writer.form_of(name) for name in {*loaded, *stored}},
            self.paths,
            self.sites,
            writer.forms,
            self.before,
            self.taken_before,
            max(sum(len(blocks[n].counted) for n in path.blocks) for path in self.paths),
            max(len(path.blocks) for path in self.paths),
            max(sum(len(self.sites[n]) for n in path.blocks) for path in self.paths),
            frozenset(self.heads),
            self._function,
        )

    @staticmethod
    def can(translator, blocks: list[Block], number: int) -> bool:
        """Can the instructions of a block be written?"""
        try:
            writer = SerialWriter(translator)
            for i in blocks[number].body:
                _instruction(writer, i)
        except _UNKNOWN:
            return False
        return True

    def _writer(self) -> SerialWriter:
        writer = SerialWriter(self.translator)
        writer.votes, writer.joined, writer.settled = self.votes, self.joined, True
        return writer

    def _write_all(self, writer: SerialWriter) -> SerialWriter:
        self.paths: list[Path] = []
        self.sites: dict[int, list[int]] = {}
        self.before: dict[int, tuple[int, ...]] = {}
        self.taken_before: dict[int, tuple[int, ...]] = {}
        done: set[int] = set()
        while len(done) < len(self.labels):  # a tree that is too deep makes further labels
            for label in sorted(self.labels - done):
                done.add(label)
                writer.lines, writer.indent, writer.views = [], "                ", {}
                self._tree(writer, label, label, Path((), ()), 0)
                writer.text[label] = writer.lines
        return writer

    def _tree(self, w: SerialWriter, label: int, number: int, path: Path, depth: int) -> None:
        block = self.blocks[number]
        self.before[number], self.taken_before[number] = path
        path = Path((*path.blocks, number), path.taken)
        if w.traced:
            w.line(f"log({number})")
        if w.counted:
            for head in self.entries[number]:
                w.line(f"enter{head}(<visits {head}>{' + 1' if label == head else ''})")
        w.sites = []
        for i in block.body:
            _instruction(w, i)
        self.sites[number] = w.sites
        if block.end in (BRANCH, GUARD):
            assert block.condition is not None
            condition = w.p(block.condition)
            w.line(f"if {'not ' if block.negated else ''}{condition}:")
            views, indent = dict(w.views), w.indent
            w.indent = indent + "    "
            self._go(w, label, block.target, Path(path.blocks, (*path.taken, number)), depth + 1)
            w.views, w.indent = views, indent
            w.line("else:")
            w.indent = indent + "    "
            self._go(w, label, number + 1, path, depth + 1)
            w.indent = indent
        else:
            self._go(w, label, block.target if block.end == JUMP else number + 1, path, depth)

    def _go(self, w: SerialWriter, label: int, number: int, path: Path, depth: int) -> None:
        if number in self.inside and number not in self.labels:
            if depth < _DEEPEST:
                return self._tree(w, label, number, path, depth)
            self.labels.add(number)
        w.line(f"c{len(self.paths)} += 1")
        self.paths.append(path)
        if number != label:
            w.line(f"b = {number}")
        if number not in self.inside:
            w.line("break")
        return None

    def _function(self, counted: bool, traced: bool, read: bool, words: Words):
        writer = self._writer()
        writer.words = dict(words)
        writer.counted, writer.traced, writer.listing = counted, traced, read
        self._write_all(writer)
        loop = self.made
        sites = sorted(writer.forms)
        text = ["def loop(m, serial, b, trips, F, B, D, Q):"]
        if loop.loaded:
            text.append(f"    {', '.join(writer.names[name] for name in loop.loaded)}, = serial.values")
        unset = [writer.names[name] for name in loop.stored if name not in loop.loaded]
        if unset:
            text.append(f"    {' = '.join(unset)} = None")
        text += [f"    {name} = {expression}" for name, expression in writer.prologue.items()]
        for k in sites:
            text.append(f"    s{k}, n{k}, v{k}, w{k}, t{k}, r{k}, q{k} = serial.place({k})")
        counters = [f"c{n}" for n in range(len(self.paths))]
        text.append(f"    {' = '.join(counters)} = 0")
        text.append("    load, store, log, note = serial.load, serial.store, serial.log, serial.note")
        text.append("    reading, touch, mine = serial.reading, serial.touch, serial.mine")
        entered = sorted({head for heads in self.entries.values() for head in heads}) if counted else []
        text += [f"    enter{head} = serial.entering({head})" for head in entered]
        text.append("    try:")
        text.append("        for _ in repeat(None, trips):")
        labels = sorted(self.labels, key=lambda n: (-self._depth(n), n))
        for place, label in enumerate(labels):
            test = f"if b == {label}:" if place == 0 else f"elif b == {label}:" if place < len(labels) - 1 else "else:"
            text.append(f"            {'if True:' if len(labels) == 1 else test}")
            text += writer.text[label]
        text.append("    finally:")
        text.append(f"        serial.counts = ({', '.join(counters)},)")
        stored = "".join(f"{writer.names[name]}, " for name in loop.stored)
        text.append(f"    serial.values = ({stored})")
        text.append("    return b")
        for head in entered:
            visits = " + ".join(f"c{n}" for n, path in enumerate(self.paths) if path.blocks[0] == head)
            text = [line.replace(f"<visits {head}>", visits) for line in text]
        source = "".join(f"def {name}{rest}\n" for name, rest in writer.arrays.items()) + "\n".join(text) + "\n"
        scope: dict[str, Any] = {"np": np, "repeat": repeat, "floor": floor, "ceil": ceil, "square_root": sqrt}
        scope.update({d: np.dtype(d if d != "b1" else "?") for d in set(DTYPES.values())})
        scope.update({name: getattr(numerics, name) for name in numerics.__all__})
        scope.update({name: getattr(serial, name) for name in serial.__all__})
        scope.update(self.translator.constants)
        entry = self.translator.entry.name
        exec(compile(source, f"<simulated {entry} serial loop {min(self.inside)}>", "exec"), scope)
        return scope["loop"]

    def _depth(self, label: int) -> int:
        """How many loops of this one go around a label: heads at or before it whose end is at or after it."""
        return sum(
            head <= label <= block
            for block in self.inside
            for head in self.blocks[block].successors()
            if head <= block and head in self.inside
        )


def _instruction(w: SerialWriter, i: Instruction) -> None:
    emit = TABLE.get(i.opcode)
    if emit is not None:
        lines, views, counter = len(w.lines), dict(w.views), len(w.sites)
        try:
            return emit(w, i)
        except _UNKNOWN:
            del w.lines[lines:]
            w.views = views
            if len(w.sites) > counter:
                raise NotSerial from None
    w.whole_by_arrays(i)
    return None
