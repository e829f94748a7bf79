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

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import repeat
from math import ceil, floor, sqrt
from typing import Any, NamedTuple

import numpy as np

from warplab.simulator import numerics
from warplab.simulator.errors import UnsupportedInstruction
from warplab.simulator.memory.lane_access import _FULL
from warplab.simulator.numerics import serial
from warplab.simulator.ptx.program import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Symbol,
    as_address,
    name_of,
)
from warplab.simulator.translate.basic_blocks import BRANCH, FALL, GUARD, JUMP, Block
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter, Local, _fit, item_bytes
from warplab.simulator.translate.serial_operations import TABLE, NotSerial
from warplab.simulator.translate.special_registers import REGISTERS

MOST_BLOCKS = 200  # of a loop
SITE_BITS = 12  # an access is listed as its base address with the site's number in so many low bits
_DEEPEST = 40  # nested branches: Python allows 100 levels of indentation
_MOST_BY_ARRAYS = 0.25  # of a loop's instructions: with more, plain numbers gain nothing
# What writing an instruction raises for a form that it does not know.
_UNKNOWN = (NotSerial, KeyError, IndexError, AttributeError, ValueError)
_OF_CHUNK = re.compile(r"\b(m|L)\b")


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


class SerialWriter:
    """Writes the blocks of a loop. The emitters in `serial_operations` call its methods.

    A register is a Python variable in one *form*: "u" an unsigned integer with the bits of the register, "f" and "d"
    the value of a float32 or float64, "p" a bool.
    """

    def __init__(self, translator) -> None:
        self.translator = translator
        self.lines: list[str] = []
        self.indent = ""
        self.names: dict[str, str] = {}
        self.written: set[str] = set()
        self.views: dict[tuple[str, str], str] = {}
        self.counter = 0
        self.prologue: dict[str, str] = {}  # variable → expression
        self.variables: dict[str, str] = {}  # of the module → variable
        self.arrays: dict[str, str] = {}  # text of functions on arrays
        self.by_array = 0
        self.forms: dict[int, str] = {}
        self.sites: list[int] = []
        self.counted = self.traced = self.listing = False
        self.words: dict[str, int] = {}
        self.text: dict[int, list[str]] = {}  # by label
        # How registers are used decides on their forms.
        self.votes: Counter[str] = Counter()  # for a float, less those for an integer
        self.joined: dict[str, str] = {}

    # -- forms -----------------------------------------------------------------------------------------------------

    def dtype(self, operand: Operand) -> str:
        if not isinstance(operand, Register) or operand.name in REGISTERS:
            raise NotSerial
        dtype = self.translator.dtypes.get(operand.name)
        if dtype is None or dtype in ("V16", "f2"):
            raise NotSerial
        return dtype

    def _root(self, name: str) -> str:
        while self.joined.get(name, name) != name:
            name = self.joined[name]
        return name

    def _vote(self, operand: Operand, form: str) -> None:
        if isinstance(operand, Register):
            self.votes[operand.name] += 1 if form in "fd" else -1

    def form_of(self, name: str) -> str:
        dtype = self.dtype(Register(name))
        if dtype in ("b1", "f4", "f8"):
            return {"b1": "p", "f4": "f", "f8": "d"}[dtype]
        if dtype[1:] in ("4", "8") and self.votes[self._root(name)] > 0:
            return "f" if dtype[1:] == "4" else "d"
        return "u"

    def settle(self) -> None:
        """Count the votes of registers that are moved into one another together."""
        votes: Counter[str] = Counter()
        for name, n in self.votes.items():
            votes[self._root(name)] += n
        self.votes = votes

    def form(self, kind: str, *operands: Operand) -> str:
        """The form in which an instruction moves bits of type `kind`, that of the first register."""
        registers = [o for o in operands if isinstance(o, Register) and o.name != "_"]
        bits = 8 * item_bytes(DTYPES[kind])
        if kind[0] == "f":
            self._vote(operands[0], "f")
        elif kind[0] != "b":
            self._vote(operands[0], "u")
        for other in registers[1:]:
            if self.dtype(other) != "b1":
                self.joined[self._root(other.name)] = self._root(registers[0].name)
        if registers and 8 * item_bytes(self.dtype(registers[0])) == bits:
            return self.form_of(registers[0].name)
        return {"f32": "f", "f64": "d"}.get(kind, "u")

    # -- reading ---------------------------------------------------------------------------------------------------

    def fresh(self) -> str:
        self.counter += 1
        return f"y{self.counter}"

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def named(self, expression: str) -> str:
        if expression.isidentifier():
            return expression
        name = self.fresh()
        self.line(f"{name} = {expression}")
        return name

    def name(self, register: str) -> str:
        if register not in self.names:
            self.dtype(Register(register))
            self.names[register] = f"x{len(self.names)}"
        return self.names[register]

    def _seen(self, name: str, what: str, expression: str) -> str:
        """The variable that holds what is computed from a register, once until the register changes."""
        key = name, what
        if key not in self.views:
            self.views[key] = self.named(expression)
        return self.views[key]

    def read(self, operand: Operand, form: str, bits: int) -> str:
        if form == "u":
            return self.u(operand, bits)
        return self.p(operand) if form == "p" else self.f(operand, 4 if form == "f" else 8)

    def u(self, operand: Operand, bits: int, small: bool = False) -> str:
        """An operand as an unsigned integer of `bits`. `small`: a literal may be negative."""
        if isinstance(operand, Immediate):
            number = int(_fit(operand.value, f"u{bits // 8}"))
            if small and number >> (bits - 1):
                number -= 1 << bits
            return f"({number})" if number < 0 else str(number)
        if isinstance(operand, Symbol):
            return self.address_of(operand)
        dtype = self.dtype(operand)
        have = 8 * item_bytes(dtype)
        if dtype == "b1" or have < bits:
            raise NotSerial
        self._vote(operand, "u")
        name, form = self.name(name_of(operand)), self.form_of(name_of(operand))
        if form != "u":
            self.views[name, "u"] = name = self._bits_of(name, form)
        return name if have == bits else self._seen(name, f"low {bits}", f"{name} & {hex((1 << bits) - 1)}")

    def _bits_of(self, name: str, form: str) -> str:
        if (name, "u") not in self.views:
            bits = self.fresh()
            floats, integers = ("F", "B") if form == "f" else ("D", "Q")
            self.line(f"{floats}[0] = {name}")
            if form == "f":
                self.line(f"{bits} = {integers}[0] if {name} == {name} else bits_of_nan({name})")
            else:
                self.line(f"{bits} = {integers}[0]")
            self.views[name, "u"] = bits
        return self.views[name, "u"]

    def _of_bits(self, name: str, form: str) -> str:
        value = self.fresh()
        floats, integers = ("F", "B") if form == "f" else ("D", "Q")
        self.line(f"{integers}[0] = {name}")
        self.line(f"{value} = {floats}[0]")
        if form == "f":
            self.line(f"if {value} != {value}: {value} = nan_of_bits({name})")
        return value

    def s(self, operand: Operand, bits: int) -> str:
        """An operand as a signed integer."""
        if isinstance(operand, Immediate):
            return f"({int(_fit(operand.value, f'i{bits // 8}'))})"
        name = self.named(self.u(operand, bits))
        return self._seen(name, f"signed {bits}", f"{name} if {name} < {1 << (bits - 1)} else {name} - {1 << bits}")

    def flipped(self, operand: Operand, bits: int) -> str:
        """An integer whose order among unsigned ones is that of the operand among signed ones."""
        flip = 1 << (bits - 1)
        if isinstance(operand, Immediate):
            return str(int(_fit(operand.value, f"u{bits // 8}")) ^ flip)
        return f"({self.u(operand, bits)} ^ {flip})"

    def f(self, operand: Operand, item: int) -> str:
        """An operand as a float."""
        if isinstance(operand, Immediate):
            value = operand.value
            if isinstance(value, int):  # as `mov.b32 %f1, 0` has it: bits
                value = float(np.array(value & ((1 << 8 * item) - 1), f"u{item}").view(f"f{item}"))
            if value != value:
                raise NotSerial
            return f"({float(value)!r})" if abs(value) != float("inf") else f"({'-' if value < 0 else ''}INF)"
        dtype = self.dtype(operand)
        if item_bytes(dtype) != item or dtype == "b1":
            raise NotSerial
        self._vote(operand, "f")
        name, form = self.name(name_of(operand)), self.form_of(name_of(operand))
        if form != "u":
            return name
        if (name, "f") not in self.views:
            self.views[name, "f"] = self._of_bits(name, "f" if item == 4 else "d")
        return self.views[name, "f"]

    def p(self, operand: Operand) -> str:
        if isinstance(operand, Negated):
            return f"(not {self.p(operand.register)})"
        if isinstance(operand, Immediate):
            return str(bool(operand.value))
        if self.dtype(operand) != "b1":
            raise NotSerial
        return self.name(name_of(operand))

    def address_of(self, symbol: Symbol) -> str:
        """The variable that holds the address of a symbol."""
        translator, name = self.translator, symbol.name
        variable = translator.variables.get(name)
        if variable is None or name in translator.params:
            raise NotSerial
        if variable.space not in ("shared", "local"):  # placed in memory at its first use
            place = self.variables.setdefault(name, f"g_{len(self.variables)}")
            self.prologue[place] = "None"
            self.line(f"if {place} is None: {place} = serial.address(m.variable_address({name!r}))")
            return place
        if variable.space == "local":
            address = f"serial.address(m.local_address({translator.local_offsets[name]}))"
        else:
            offset = "m.static_shared_bytes" if variable.dynamic else translator.shared_offsets[name]
            address = f"serial.address(m.shared_address({offset}))"
        return self._constant(address)

    def parameter(self, address: Address, k: int, dtype: str, form: str) -> str:
        param = self.translator.params[name_of(address.base)]
        offset = param.offset + address.offset + k * item_bytes(dtype)
        if form == "u":
            dtype = dtype.replace("i", "u").replace("f", "u")
        return self._constant(f"scalar_{form}(m.param({offset}, {dtype}))")

    def _constant(self, expression: str) -> str:
        for name, known in self.prologue.items():
            if known == expression:
                return name
        name = f"g{len(self.prologue)}"
        self.prologue[name] = expression
        return name

    # -- writing ---------------------------------------------------------------------------------------------------

    def define(self, destination: Operand, form: str, expression: str) -> None:
        """Write a register. `expression`: in the given form, and for "u" below 2 to the register's bits."""
        if isinstance(destination, Symbol) and destination.name == "_":
            return
        own = self.form_of_destination(destination)
        assert isinstance(destination, Register)
        name = self.name(destination.name)
        if own != form:
            if "p" in (own, form):
                raise NotSerial
            expression = self.named(expression)
            if form == "u":
                expression = self._of_bits(expression, own)
            elif own == "u":
                bits = self._bits_of(expression, form)
                self.views.pop((expression, "u"), None)
                expression = bits
            else:
                raise NotSerial
        self.written.add(destination.name)
        for key in [key for key in self.views if key[0] == name or self.views[key] == name]:
            del self.views[key]
        self.line(f"{name} = {expression}")

    def form_of_destination(self, destination: Operand) -> str:
        self.dtype(destination)
        assert isinstance(destination, Register)
        return self.form_of(destination.name)

    def define_p(self, destination: Operand, expression: str) -> None:
        self.define(destination, "p", expression)

    def define_u(self, destination: Operand, expression: str, bits: int, signed: bool | None = None) -> None:
        """Write an integer of `bits`. `signed`: how it is extended for a wider register, None if it may not be."""
        if isinstance(destination, Symbol) and destination.name == "_":
            return
        dtype = self.dtype(destination)
        self._vote(destination, "u")
        have = 8 * item_bytes(dtype)
        if dtype == "b1" or have < bits or (have > bits and signed is None):
            raise NotSerial
        if have > bits and signed:
            name = self.named(expression)
            expression = f"{name} if {name} < {1 << (bits - 1)} else {name} + {(1 << have) - (1 << bits)}"
        self.define(destination, "u", expression)

    def define_rounded(self, i: Instruction, expression: str, form: str, nan: bool = True) -> None:
        """Write a float. An f32 is rounded first. `nan`: the result may be one."""
        self._vote(i.operands[0], "f")
        result = self.fresh()
        if form == "f":
            self.line(f"F[0] = {expression}")
            self.line(f"{result} = F[0]")
            if nan:
                self.line(f"if {result} != {result}: {result} = NAN")
        else:
            self.line(f"{result} = {expression}")
            if nan:
                self.line(f"if {result} != {result}: {result} = {self.by_arrays(i, form)}")
        self.define(i.operands[0], form, result)

    # -- memory ----------------------------------------------------------------------------------------------------

    def _reach(self, i: Instruction, address: Address, form: str) -> tuple[int, str, str, str, int]:
        """Returns site, base, the variable with the distance from the array's start, the condition under which the
        access is known to be good, and the shift from bytes to elements."""
        site = self.translator.site_of.get(id(i))
        if site is None or site.index >> SITE_BITS:
            raise NotSerial
        base = address.base
        if isinstance(base, Register):
            bits = 8 * item_bytes(self.dtype(base))
            if bits < 32:
                raise NotSerial
            start = self.u(base, bits)
        elif isinstance(base, Symbol):
            start = self.address_of(base)
        else:
            raise NotSerial
        k, distance = site.index, self.fresh()
        self.forms[k] = form
        self.sites.append(k)
        offset = f" + {site.offset}" if site.offset > 0 else f" - {-site.offset}" if site.offset else ""
        self.line(f"{distance} = {start}{offset} - s{k}")
        condition = f"0 <= {distance} <= n{k}"
        if site.width > 1:
            condition += f" and not {distance} & {site.width - 1}"
        return k, start, distance, condition, site.item.bit_length() - 1

    def load(self, i: Instruction, forms: list[str]) -> list[str]:
        """Write a load. Returns the variables with its values, in `forms`."""
        if len(set(forms)) > 1:
            raise NotSerial
        form = forms[0]
        k, start, at, condition, shift = self._reach(i, as_address(i.operands[1]), form)
        site = self.translator.sites[k]
        element = f"{at} >> {shift}" if shift else at
        names = [self.fresh() for _ in range(site.count)]
        if site.count > 1:
            element = self.named(f"({element})")
        places = [f"{element} + {j}" if j else element for j in range(site.count)]
        full = _FULL[site.item]
        written = " == ".join([f"w{k}[{place}]" for place in places] + [str(full)])
        self.line(f"if {condition} and (w{k} is None or {written}){self._owned(k, at)}:")
        for name, place in zip(names, places, strict=True):
            self.line(f"    {name} = v{k}[{place}]")
            if form == "f":
                self.line(f"    if {name} != {name}: {name} = nan_at(v{k}, {place})")
        self._fast(k, start, at)
        self.line(f"else: {', '.join(names)}, s{k}, n{k}, v{k}, w{k}, t{k}, r{k}, q{k} = load({k}, {start})")
        return names

    def store(self, i: Instruction, forms: list[str], values: list[str]) -> None:
        if len(set(forms)) > 1:
            raise NotSerial
        values = [self.named(value) for value in values]
        k, start, at, condition, shift = self._reach(i, as_address(i.operands[0]), forms[0])
        site = self.translator.sites[k]
        element = f"{at} >> {shift}" if shift else at
        if site.count > 1:
            element = self.named(f"({element})")
        if forms[0] == "f":
            condition += "".join(f" and {value} == {value}" for value in values)
        self.line(f"if {condition}{self._owned(k, at)}:")
        full = _FULL[site.item]
        for j, value in enumerate(values):
            place = f"{element} + {j}" if j else element
            self.line(f"    v{k}[{place}] = {value}")
            self.line(f"    if w{k} is not None: w{k}[{place}] = {full}")
        self._fast(k, start, at)
        self.line(f"else: s{k}, n{k}, v{k}, w{k}, t{k}, r{k}, q{k} = store({k}, {start}, ({', '.join(values)},))")

    def _owned(self, k: int, at: str) -> str:
        """The condition under which an access races with none: its words are not those of other threads."""
        site = self.translator.sites[k]
        size = self.words.get(site.space)
        if size is None or site.item < size:
            return ""
        shift = size.bit_length() - 1
        places = [f"({at} >> {shift}) + {j}" if j else f"{at} >> {shift}" for j in range(site.width // size)]
        tests = [f"r{k}[{place}] in mine" for place in places]
        if site.op == "store":
            tests += [f"q{k}[{place}] in mine" for place in places]
        return f" and (r{k} is None or {' and '.join(tests)})"

    def _fast(self, k: int, start: str, at: str) -> None:
        site = self.translator.sites[k]
        if self.counted and site.space in ("global", "generic"):
            marked = f"t{k}[{at} >> 5] = True"
            self.line(f"    {marked}" if site.space == "global" else f"    if t{k} is not None: {marked}")
        if site.space in self.words:
            self.line(f"    if r{k} is not None: touch({start} << {SITE_BITS} | {k})")
        if self.traced:
            self.line(f"    note({start} << {SITE_BITS} | {k})")
        if self.listing and site.op == "load" and site.space in ("global", "generic"):
            self.line(f"    reading({at} + s{k})")

    # -- arrays ----------------------------------------------------------------------------------------------------

    def by_arrays(self, i: Instruction, form: str) -> str:
        """An expression for the only result of an instruction, computed by the arrays' code."""
        call, results = self._array_call(i, form)
        if len(results) != 1:
            raise NotSerial
        return call

    def whole_by_arrays(self, i: Instruction) -> None:
        """Write an instruction that is left to the arrays' code."""
        call, results = self._array_call(i, None)
        self.by_array += 1
        names = [self.fresh() for _ in results]
        if not names:
            raise NotSerial
        self.line(f"{', '.join(names)} = {call}")
        for name, register in zip(names, results, strict=True):
            self.define(Register(register), self.form_of(register), name)

    def _array_call(self, i: Instruction, form: str | None) -> tuple[str, list[str]]:
        writer = _ArrayCode(self.translator, i)
        results = [name for name, local in writer.current.items() if local.alias_of != name]
        inputs = [f"{self.name(register)}" for register in writer.read]
        text = []
        for register, name in writer.read.items():
            form_in, dtype = self.form_of(register), self.dtype(Register(register))
            array = f"np.array([{name}], u{item_bytes(dtype)})" if form_in == "u" else f"array_{form_in}({name})"
            text.append(f"    {name} = {array}.view({dtype})")
        text += [f"    {line}" for line in writer.lines]
        outputs = []
        for register in results:
            to = form or self.form_of(register)
            dtype = {"u": f"u{item_bytes(self.dtype(Register(register)))}", "f": "f4", "d": "f8", "p": "b1"}[to]
            outputs.append(f"scalar_{to}(({writer.current[register].name}).view({dtype}))")
        body = "\n".join(text)
        source = f"({', '.join(writer.read.values())}):\n{body}\n    return {', '.join(outputs)}\n"
        for known, other in self.arrays.items():
            if other == source:
                return f"{known}({', '.join(inputs)})", results
        name = f"X{len(self.arrays)}"
        self.arrays[name] = source
        return f"{name}({', '.join(inputs)})", results


class _ArrayCode(BlockWriter):
    """The arrays' code for one instruction that only computes."""

    def __init__(self, translator, i: Instruction) -> None:
        super().__init__(translator, Block(0, [i]))
        try:
            self.instruction(i)
        except UnsupportedInstruction:
            raise NotSerial from None
        if any(_OF_CHUNK.search(line) for line in self.lines):
            raise NotSerial

    def local(self, register: str) -> Local:
        if register not in self.current:
            dtype = self.translator.dtypes.get(register)
            if dtype is None or register in REGISTERS:
                raise NotSerial
            name = f"a{len(self.read)}"
            self.read[register] = name
            self.current[register] = Local(name, dtype, register)
        return self.current[register]

    def address_of(self, symbol: str, dtype: str) -> str:
        raise NotSerial

    def site(self, op: str, space: str, dtype: str, count: int, offset: int) -> str:
        raise NotSerial


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
        writer.votes, writer.joined = self.votes, self.joined
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
