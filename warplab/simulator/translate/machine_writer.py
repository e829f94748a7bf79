"""Writes blocks of code in the language of `machine_compiler`, instruction by instruction (`machine_operations`).

`MachineWriter` writes those of a loop for a few lanes; for all lanes of a chunk, `machine_blocks` builds on it. Between
two accesses to memory each lane runs its instructions alone, in a loop over the lanes of the group. An access is made
by all lanes before the next instruction, as on a GPU: first all addresses are computed, then they are tested and
counted (`machine_access`), then every lane loads or stores. What an instruction does that is not known here is left to
the arrays' code, by a call back to Python (`run.narrow_runs`).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warplab.simulator.errors import UnsupportedInstruction
from warplab.simulator.memory.device_memory import WINDOW_LOCAL, WINDOW_SHARED
from warplab.simulator.ptx.program import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Symbol,
    as_address,
    items_of,
    name_of,
)
from warplab.simulator.translate import machine_compiler
from warplab.simulator.translate.basic_blocks import BRANCH, GUARD, Block, destinations, sources
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter, Local, _fit, item_bytes
from warplab.simulator.translate.machine_access import PLACE_BYTES
from warplab.simulator.translate.machine_operations import TABLE, NoMachineCode
from warplab.simulator.translate.special_registers import REGISTERS

# What writing an instruction raises for a form that it does not know.
UNKNOWN = (NoMachineCode, KeyError, IndexError, AttributeError, ValueError, TypeError)
# Why a function calls back: an access that is not known to be good, an instruction for the arrays, a result of one lane
# that NumPy computes; a block, a good access or a branch of which an observer is told.
ACCESS, INSTRUCTION, RESULT, STEP, SEEN, BRANCHED = range(6)
_OF_CHUNK = re.compile(r"\b(m|L)\b")


def left_to_arrays(translator) -> str:
    """Return why no code of a kernel can be machine code; "" if it can."""
    if not machine_compiler.available():
        return "there is no compiler"
    return "registers are examined" if translator.maybe_unwritten or translator.register_faults else ""


@dataclass
class ArrayStep:
    """An instruction that the arrays' code runs: its function, the registers that it takes and gives."""

    source: str
    reads: list[tuple[str, str]]  # register and dtype
    writes: list[str]


class ArrayCode(BlockWriter):
    """The arrays' code for one instruction that only computes.

    `read`: the registers that it reads; `current`: those that it writes.
    """

    def __init__(self, translator, i: Instruction) -> None:
        super().__init__(translator, Block(0, [i]))
        try:
            self.instruction(i)
        except UnsupportedInstruction:
            raise NoMachineCode from None
        if any(_OF_CHUNK.search(line) for line in self.lines):
            raise NoMachineCode

    def local(self, register: str) -> Local:
        if register not in self.current:
            dtype = self.translator.dtypes.get(register)
            if dtype is None or register in REGISTERS:
                raise NoMachineCode
            name = f"a{len(self.read)}"
            self.read[register] = name
            self.current[register] = Local(name, dtype, register)
        return self.current[register]

    def address_of(self, symbol: str, dtype: str) -> str:
        raise NoMachineCode

    def site(self, op: str, space: str, dtype: str, count: int, offset: int) -> str:
        raise NoMachineCode


@dataclass
class LoopSite:
    """A memory instruction: registers and types of what it loads; of what it stores, also literals."""

    index: int
    dtype: str
    items: list[tuple[str | None, Any]]  # register (None: nowhere, or a literal) and its dtype, or the literal's bits


class MachineWriter:
    """Writes code for blocks of a loop. The emitters in `machine_operations` call its methods."""

    def __init__(self, translator) -> None:
        self.translator = translator
        self.follows_single = any(site.summed for site in translator.sites)
        self.numbers: dict[str, int] = {}  # of the registers that are used
        self.variables: dict[str, int] = {}  # of the module, numbered
        self.sites: dict[int, LoopSite] = {}  # by number
        self.steps: list[ArrayStep] = []
        self.results: list[tuple[str, int, int]] = []  # NumPy expression, bits of operands and of the result
        self.written: set[str] = set()
        self.text: list[str] = []  # of the function
        self.indent = ""
        self.counter = 0
        self.lines: list[str] = []  # of the present loop over lanes
        self.flushes: dict[str, str] = {}  # by variable of that loop: what has its value after .ftz
        # Registers to which .ftz does nothing: of the present block, of its present instruction.
        self.flushed_registers: set[str] = set()
        self.defined_flushed: set[str] = set()
        self.read_here: set[str] = set()
        self.written_here: dict[str, None] = {}

    # -- registers and operands ------------------------------------------------------------------------------------

    def dtype(self, operand: Operand) -> str:
        if not isinstance(operand, Register) or operand.name in REGISTERS:
            raise NoMachineCode
        dtype = self.translator.dtypes.get(operand.name)
        if dtype is None or dtype in ("V16", "f2"):
            raise NoMachineCode
        return dtype

    def number(self, register: str) -> int:
        return self.numbers.setdefault(register, len(self.numbers))

    def fresh(self) -> str:
        self.counter += 1
        return f"y{self.counter}"

    def line(self, text: str) -> None:
        self.lines.append(text)

    def named(self, expression: str) -> str:
        name = self.fresh()
        self.line(f"{name} = {expression}")
        return name

    def flushed(self, value: str) -> str:
        """Return the bits of a float after .ftz."""
        if value not in self.flushes:
            self.flushes[value] = self.named(f"f32flush({value})")
        return self.flushes[value]

    def rarely(self, *lines: str) -> None:
        """Write what is done under the condition that has just been written."""
        self.lines.extend(f"    {line}" for line in lines)

    def register(self, operand: Operand) -> str:
        name = name_of(operand)
        variable = f"x{self.number(name)}"
        if name not in self.written_here:
            self.read_here.add(name)
        if name in self.flushed_registers:
            self.flushes[variable] = variable
        return variable

    def u(self, operand: Operand, bits: int) -> str:
        """Return an operand as an unsigned integer of `bits`."""
        if isinstance(operand, Immediate):
            return str(int(_fit(operand.value, f"u{bits // 8}")))
        if isinstance(operand, Symbol):
            return self.address_of(operand)
        dtype = self.dtype(operand)
        have = 8 * item_bytes(dtype)
        if dtype == "b1" or have < bits:
            raise NoMachineCode
        name = self.register(operand)
        return name if have == bits else f"({name} & {hex((1 << bits) - 1)})"

    def f(self, operand: Operand, bits: int) -> str:
        """Return the bits of a float."""
        if isinstance(operand, Immediate) and not isinstance(operand.value, float):
            raise NoMachineCode
        return self.u(operand, bits)

    def s(self, operand: Operand, bits: int) -> str:
        """Return an operand as a signed integer."""
        if isinstance(operand, Immediate):
            return f"({int(_fit(operand.value, f'i{bits // 8}'))})"
        value = self.u(operand, bits)
        return value if bits == 64 else f"sx{bits}({value})"

    def p(self, operand: Operand) -> str:
        """Return a predicate, 0 or 1."""
        if isinstance(operand, Negated):
            return f"({self.p(operand.register)} ^ 1)"
        if isinstance(operand, Immediate):
            return str(int(bool(operand.value)))
        if self.dtype(operand) != "b1":
            raise NoMachineCode
        return self.register(operand)

    @staticmethod
    def float_bits(value: float) -> int:
        return int(np.float64(value).view(np.uint64))

    @staticmethod
    def window(space: str) -> int:
        return WINDOW_SHARED if space == "shared" else WINDOW_LOCAL

    def address_of(self, symbol: Symbol) -> str:
        translator, name = self.translator, symbol.name
        variable = translator.variables.get(name)
        if variable is None or name in translator.params or name in translator.entry.program.functions:
            raise NoMachineCode
        if variable.space == "shared":
            offset = "ld8(S + DYNAMIC)" if variable.dynamic else translator.shared_offsets[name]
            return f"(ld8(ld8(S + SHARED) + 8 * lane) + {offset})"
        if variable.space == "local":
            return f"(ld8(ld8(S + LOCAL) + 8 * lane) + {translator.local_offsets[name]})"
        return f"ld8(ld8(S + VARIABLES) + {8 * self.variables.setdefault(name, len(self.variables))})"

    def define(self, destination: Operand, expression: str, bits: int, signed: bool | None = None) -> None:
        """Write a register. `expression`: below 2 to the power of `bits`. `signed`: how it is extended for a wider
        register, None if it may not be."""
        if isinstance(destination, Symbol) and destination.name == "_":
            return
        dtype = self.dtype(destination)
        have = 1 if dtype == "b1" else 8 * item_bytes(dtype)
        if have < bits or (have > bits and signed is None):
            raise NoMachineCode
        if have > bits and signed:
            expression = f"sx{bits}({expression})" + ("" if have == 64 else f" & {hex((1 << have) - 1)}")
        name = name_of(destination)
        variable = f"x{self.number(name)}"
        self.line(f"{variable} = {expression}")
        self.written_here[name] = None
        self.flushes.pop(variable, None)
        if self.flushes.get(expression) == expression:
            self.flushes[variable] = variable
            self.defined_flushed.add(name)

    def again(self, template: str, values: list[str], bits: int = 64, out: int = 64) -> str:
        """Return a result that NumPy computes, an expression over {0}, {1}, {2}."""
        result = template, bits, out
        if result not in self.results:
            self.results.append(result)
        operands = ", ".join([*values, "0", "0"][:3])
        return f"call(ld8(S + CALLBACK), {RESULT}, {self.results.index(result)}, {operands})"

    # -- loops over lanes ------------------------------------------------------------------------------------------

    def emit(self, text: str) -> None:
        self.text.append(self.indent + text)

    def finish(self, needed: set[str] | frozenset[str]) -> None:
        """End the present loop over lanes. `needed`: registers that matter afterwards."""
        stored = [name for name in self.written_here if name in needed]
        self.written.update(stored)
        if self.lines and (stored or any("st8" in line for line in self.lines)):
            self.emit("n = ld8(S + COUNT)")
            self.emit("for i in range(n):")
            self.emit("    lane = ld4(list + 4 * i)")
            for name in sorted(self.read_here):
                self.emit(f"    x{self.number(name)} = ld8({self.place(name)} + 8 * lane)")
            for line in self.lines:
                self.emit(f"    {line}")
            for name in stored:
                self.emit(f"    st8({self.place(name)} + 8 * lane, x{self.number(name)})")
        self.lines, self.read_here, self.written_here, self.flushes = [], set(), {}, {}

    def place(self, register: str) -> str:
        return f"registers + {self.number(register)} * stride"

    # -- blocks ----------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Write the body of a block."""
        self.now, self.flushed_registers = block, set()
        for position, i in enumerate(block.body):
            self.position, self.defined_flushed = position, set()
            self.instruction(i)
            self.flushed_registers = self.flushed_registers.difference(destinations(i)) | self.defined_flushed
        self.position = len(block.body)
        self.finish(self.needed())
        if self.follows_single:
            self._single(block)

    def _single(self, block: Block) -> None:
        """Write which registers the arrays' code would hold as a single entry after a block: those that all lanes
        compute from such. `Addresses.atomic_sectors` depends on it."""
        of: dict[str, set[str]] = {}
        for i in block.body:
            inputs = self.own_spaces(i).union(*(of.get(name, {name}) for name in sources(i)))
            of.update(dict.fromkeys(destinations(i), inputs))
        written = [(name, inputs) for name, inputs in sorted(of.items()) if name in block.live_out]
        if not written:
            return
        self.emit("every = 1 if ld8(S + COUNT) == ld8(S + LANES) else 0")
        self.emit("single = ld8(S + SINGLE)")
        spaces = {"shared": "ld8(S + ONE_BLOCK)", "local": "0"}
        known = {name: self.fresh() for name, _ in written}
        for name, inputs in written:
            terms = [spaces.get(of_it) or f"ld1(single + {self.number(of_it)})" for of_it in sorted(inputs)]
            self.emit(f"{known[name]} = {' & '.join(['every', *terms])}")
        for name, variable in known.items():
            self.emit(f"st1(single + {self.number(name)}, {variable})")

    def own_spaces(self, i: Instruction) -> set[str]:
        """Return in which of shared and local memory variables lie that an instruction names."""
        bases = [operand.base if isinstance(operand, Address) else operand for operand in i.operands]
        names = {base.name for base in bases if isinstance(base, Symbol)} - self.translator.params.keys()
        variables = self.translator.variables
        return {variables[name].space for name in names & variables.keys()} & {"shared", "local"}

    def needed(self) -> set[str]:
        """Return registers that matter from the present instruction on."""
        block = self.now
        names = set(block.live_out).union(*(sources(i) for i in block.body[self.position :]))
        if block.end in (BRANCH, GUARD) and block.condition is not None:
            names.add(block.condition.name)
        return names

    def instruction(self, i: Instruction) -> None:
        emit = TABLE.get(i.opcode)
        if emit is not None:
            kept = len(self.lines), set(self.read_here), dict(self.written_here), len(self.text)
            try:
                return emit(self, i)
            except UNKNOWN:
                if len(self.text) > kept[3]:
                    raise NoMachineCode from None
                del self.lines[kept[0] :]
                self.read_here, self.written_here, self.flushes = kept[1], kept[2], {}
        return self.by_arrays(i)

    def by_arrays(self, i: Instruction) -> None:
        """Leave an instruction to the arrays' code, for all lanes at once."""
        code = ArrayCode(self.translator, i)
        writes = [name for name, local in code.current.items() if local.alias_of != name]
        if not writes:
            raise NoMachineCode
        reads = [(name, self.dtype(Register(name))) for name in code.read]
        outputs = []
        for name in writes:
            dtype = self.dtype(Register(name))
            local = code.current[name]
            outputs.append(local.name if dtype == "b1" else f"({local.name}).view(u{item_bytes(dtype)})")
        lines = "".join(f"    {line}\n" for line in code.lines)
        source = f"def step({', '.join(code.read.values())}):\n{lines}    return {', '.join(outputs)},\n"
        self.finish(self.needed())
        self.emit(f"call(ld8(S + CALLBACK), {INSTRUCTION}, {len(self.steps)}, 0, 0, 0)")
        for name in (*code.read, *writes):
            self.number(name)
        self.written.update(writes)
        self.steps.append(ArrayStep(source, reads, writes))

    # -- memory ----------------------------------------------------------------------------------------------------

    def load_parameter(self, i: Instruction, dtype: str) -> None:
        address = as_address(i.operands[1])
        if not isinstance(address.base, Symbol):
            raise NoMachineCode
        offset = self.translator.params[name_of(address.base)].offset + address.offset
        size = item_bytes(dtype)
        for k, item in enumerate(items_of(i.operands[0])):
            value = f"ld{size}(ld8(S + PARAMETERS) + {offset + k * size})"
            self.define(item, value, 8 * size, dtype[0] == "i")

    def start(self, i: Instruction, operand: Operand) -> tuple[Any, str]:
        """Return the site of an access, and the address to which it adds its offset."""
        site = self.translator.site_of.get(id(i))
        if site is None:
            raise NoMachineCode
        base = as_address(operand).base
        if isinstance(base, Register):
            bits = 8 * item_bytes(self.dtype(base))
            if bits < 32:
                raise NoMachineCode
            return site, self.s(base, 32 if site.space in ("shared", "local") else bits)  # as BlockWriter.addresses
        if isinstance(base, Symbol):
            return site, self.address_of(base)
        raise NoMachineCode

    def targets(self, i: Instruction, dtype: str) -> list[tuple[str | None, str]]:
        """Return the registers that a load of `dtype` writes and their types; None for one that is thrown away."""
        named: list[tuple[str | None, str]] = []
        for item in items_of(i.operands[0]):
            nowhere = isinstance(item, Symbol) and item.name == "_"
            own = dtype if nowhere else self.dtype(item)
            if own == "b1" or item_bytes(own) < item_bytes(dtype):
                raise NoMachineCode(i.text)
            named.append((None if nowhere else name_of(item), own))
        return named

    @staticmethod
    def loaded(at: str, dtype: str, own: str) -> str:
        """Return a number of `dtype` in memory as a register of type `own` holds it."""
        size, have = item_bytes(dtype), item_bytes(own)
        if have == size or dtype[0] != "i":
            return f"ld{size}({at})"
        return f"sx{8 * size}(ld{size}({at}))" + ("" if have == 8 else f" & {hex((1 << 8 * have) - 1)}")

    def _access(self, i: Instruction, operand: Operand, dtype: str, items: list[Any], lines: Iterable[str]) -> None:
        """Write an access: its addresses, what decides who makes it, what each lane does at `at`, and the call that
        tells of it when it has been made."""
        site, start = self.start(i, operand)
        place = self.fresh()
        self.line(f"st8(address + 8 * i, {start} + {site.offset})")
        self.sites[site.index] = LoopSite(site.index, dtype, items)
        self.finish(self.needed())
        self.emit(f"{place} = ld8(S + PLACES) + {PLACE_BYTES * site.index}")
        self.emit(f"if call(F_ACCESS, S, {place}):")
        self.emit(f"    if call(ld8(S + CALLBACK), {ACCESS}, {site.index}, 0, 0, 0):")
        self.emit("        return 3")
        self.emit("else:")
        self.emit(f"    away = ld8({place} + P_DATA) - ld8({place} + P_LOW)")
        self.emit("    n = ld8(S + COUNT)")
        self.emit("    for i in range(n):")
        self.emit("        lane = ld4(list + 4 * i)")
        self.emit("        at = away + ld8(address + 8 * i)")
        for line in lines:
            self.emit(f"        {line}")
        self.emit("    if ld8(S + DONE_SEEN):")
        self.emit(f"        if call(ld8(S + CALLBACK), {SEEN}, {site.index}, 1, 0, 0):")
        self.emit("            return 3")

    def load(self, i: Instruction, dtype: str) -> None:
        named, size, lines = self.targets(i, dtype), item_bytes(dtype), list[str]()
        for k, (name, own) in enumerate(named):
            if name is not None:
                self.written.add(name)
                lines.append(f"st8({self.place(name)} + 8 * lane, {self.loaded(f'at + {k * size}', dtype, own)})")
        self._access(i, i.operands[1], dtype, named, lines)

    def store(self, i: Instruction, bits: int) -> None:
        items: list[tuple[str | None, Any]] = []
        values = []
        for item in items_of(i.operands[1]):
            if isinstance(item, Immediate):
                items.append((None, int(_fit(item.value, f"u{bits // 8}"))))
                values.append(str(items[-1][1]))
                continue
            own = self.dtype(item)
            if own == "b1" or 8 * item_bytes(own) < bits:
                raise NoMachineCode
            items.append((name_of(item), own))
            values.append(f"ld8({self.place(name_of(item))} + 8 * lane)")
        lines = [f"st{bits // 8}(at + {k * bits // 8}, {value})" for k, value in enumerate(values)]
        self._access(i, i.operands[0], DTYPES[i.modifiers[-1]], items, lines)
