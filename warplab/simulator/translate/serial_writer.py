"""Writes the blocks of a serial loop, instruction by instruction (`serial_operations`)."""

from __future__ import annotations

from collections import Counter

import numpy as np

from warplab.simulator.memory.lane_access import _FULL
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
from warplab.simulator.translate.block_writer import DTYPES, _fit, item_bytes
from warplab.simulator.translate.serial_array_code import ArrayCode
from warplab.simulator.translate.serial_operations import NotSerial
from warplab.simulator.translate.special_registers import REGISTERS

SMALLEST = repr(2.0**-126)  # of the float32 that .ftz leaves as they are
SITE_BITS = 12  # an access is listed as its base address with the site's number in so many low bits


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
        self.settled = False  # no votes any more: what code is written for must not change meanwhile

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
        if isinstance(operand, Register) and not self.settled:
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
        self.votes, self.settled = votes, True

    def form(self, kind: str, *operands: Operand) -> str:
        """The form in which an instruction moves bits of type `kind`, that of the first register."""
        registers = [o for o in operands if isinstance(o, Register) and o.name != "_"]
        bits = 8 * item_bytes(DTYPES[kind])
        if kind[0] == "f":
            self._vote(operands[0], "f")
        elif kind[0] != "b":
            self._vote(operands[0], "u")
        for other in registers[1:]:
            if self.dtype(other) != "b1" and not self.settled:
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

    def flushed(self, operand: Operand) -> str:
        """An operand as a float32 for .ftz: a zero of its sign where it is subnormal."""
        value = self.f(operand, 4)
        if isinstance(operand, Immediate):
            number = float(value.strip("()"))
            return f"({number * 0.0!r})" if abs(number) < 2.0**-126 else value
        return self._seen(value, "flushed", f"{value} * 0.0 if -{SMALLEST} < {value} < {SMALLEST} else {value}")

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
        """Write a float. An f32 is rounded first. `nan`: the result may be one, or with .ftz too small."""
        self._vote(i.operands[0], "f")
        result = self.fresh()
        if form == "f" and nan and "ftz" in i.modifiers:
            self.line(f"F[0] = {expression}")
            self.line(f"{result} = F[0]")
            self.flush_result(i, result)
            return self.define_flushed(i, result)
        if form == "f":
            self.line(f"F[0] = {expression}")
            self.line(f"{result} = F[0]")
            if nan:
                self.line(f"if {result} != {result}: {result} = NAN")
        else:
            self.line(f"{result} = {expression}")
            if nan:
                self.line(f"if {result} != {result}: {result} = {self.by_arrays(i, form)}")
        return self.define(i.operands[0], form, result)

    def flush_result(self, i: Instruction, result: str) -> None:
        """Write what .ftz and NaN make of a float32 that has been rounded."""
        zero = f"NAN if {result} != {result} else {result} * 0.0"
        if i.opcode in ("add", "sub", "rcp", "sqrt"):
            return self.line(f"if not ({result} >= {SMALLEST} or {result} <= -{SMALLEST}): {result} = {zero}")
        # What is rounded up to the smallest number may be a zero all the same (`numerics.flush_tiny`).
        zero += f" if -{SMALLEST} < {result} < {SMALLEST} else {self.by_arrays(i, 'f')}"
        return self.line(f"if not ({result} > {SMALLEST} or {result} < -{SMALLEST}): {result} = {zero}")

    def define_flushed(self, i: Instruction, result: str) -> None:
        """Write a float32, which is not subnormal if the instruction has .ftz."""
        destination = i.operands[0]
        self.define(destination, "f", result)
        if "ftz" in i.modifiers and isinstance(destination, Register) and self.form_of(destination.name) == "f":
            name = self.name(destination.name)
            self.views[name, "flushed"] = name

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
        writer = ArrayCode(self.translator, i)
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
