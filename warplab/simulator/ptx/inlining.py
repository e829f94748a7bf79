"""Calls of device functions: each is replaced by the function's body before the kernel is cut into blocks.

A call passes its arguments and results through `.param` variables of the caller. Inlining turns these into registers,
one for each part that is stored or loaded as a whole, or into local memory if an address is taken or parts overlap.
Names in an inlined body end with `@` and the number of the call. A function cannot be active twice in a thread (PTX of
recursive functions is refused), so all its calls share one copy of its local and shared variables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from warplab.simulator.errors import UnsupportedInstruction, refusing
from warplab.simulator.ptx.program import (
    NOWHERE,
    TYPE_BYTES,
    Address,
    Entry,
    Immediate,
    Indexed,
    Instruction,
    Negated,
    Operand,
    Register,
    Symbol,
    Vector,
    Where,
    as_address,
    items_of,
    name_of,
    symbols,
)

MAX_INSTRUCTIONS = 250_000  # of a kernel with its calls inlined

# Functions that the driver provides: the instruction that replaces each, the types of its result and arguments.
BUILTINS = {
    "vprintf": ("vprintf", "b32", ("b64", "b64")),
    "__assertfail": ("assertfail", None, ("b64", "b64", "b32", "b64", "b64")),
    "malloc": ("malloc", "b64", ("b64",)),
    "__nv_aligned_device_malloc": ("malloc", "b64", ("b64", "b64")),
    "free": ("free", None, ("b64",)),
    "cudaCGGetIntrinsicHandle": ("gridhandle", "b64", ("b32",)),  # of a group: Numba knows only the grid
    "cudaCGSynchronize": ("barrier.grid.sync", "b32", ("b64", "b32")),
}
_REFUSED = {
    "alloca": "memory on the stack of a size known only at run time: use a local array of a fixed size",
    "cudaGetParameterBufferV2": "a kernel started from a kernel (dynamic parallelism)",
    "cudaCGGetIntrinsicHandle": "a barrier for the whole grid (this_grid().sync() of Numba's cuda.cg): end the kernel "
    "there and continue in a second one, which begins when the first has ended",
    "cudaLaunchDeviceV2": "a kernel started from a kernel (dynamic parallelism)",
}


def inline(entry: Entry) -> Entry:
    """Return the kernel without calls. Raises UnsupportedInstruction for recursion and functions without a body."""
    if not any(i.opcode == "call" for i in entry.instructions):
        return entry
    with refusing(f"cannot read the calls in the PTX of kernel {entry.name}"):
        return _Inliner(entry).run()


@dataclass
class _Frame:
    """One inlined call: the function, the new names of what it names, and the functions active around it.

    `where`: the line for instructions without one, as in functions that the compiler adds.
    """

    function: Entry
    suffix: str
    names: dict[str, str]  # of parameters (the caller's variables), labels and variables
    active: tuple[str, ...]
    where: Where = NOWHERE

    def register(self, register: Register) -> Register:
        if self.suffix and register.name in self.function.registers:
            return Register(register.name + self.suffix)
        return register

    def operand(self, operand):
        match operand:
            case Register():
                return self.register(operand)
            case Symbol():
                return Symbol(self.names.get(operand.name, operand.name))
            case Address():
                return Address(operand.base and self.operand(operand.base), operand.offset)
            case Indexed():
                return Indexed(self.operand(operand.base), tuple(map(self.operand, operand.coordinates)))
            case Vector():
                return Vector(tuple(self.operand(item) for item in operand.items))
            case Negated():
                return Negated(self.register(operand.register))
        return operand

    def instruction(self, instruction: Instruction) -> Instruction:
        if not self.names and not self.suffix:
            return instruction
        guard = instruction.guard and self.register(instruction.guard)
        operands = tuple(self.operand(operand) for operand in instruction.operands)
        modifiers = instruction.modifiers
        # A pointer to a function's own parameter points to the local memory that holds it.
        if self.suffix and instruction.opcode in ("cvta", "ld", "isspacep") and _by_pointer(instruction):
            modifiers = tuple("local" if m.startswith("param") else m for m in modifiers)
        return replace(instruction, modifiers=modifiers, operands=operands, guard=guard)


def _by_pointer(instruction: Instruction) -> bool:
    """Does an instruction use a parameter other than by name, as `ld.param` does?"""
    last = instruction.operands[-1]
    return not (isinstance(last, Address) and isinstance(last.base, Symbol))


class _Inliner:
    def __init__(self, entry: Entry) -> None:
        self.entry, self.program = entry, entry.program
        self.result = replace(
            entry, registers=dict(entry.registers), variables=dict(entry.variables), instructions=[], labels={}
        )
        self.numbers = 0

    def run(self) -> Entry:
        self._place(_Frame(self.entry, "", {}, (self.entry.name,)), None)
        _resolve_params(self.result)
        return self.result

    def _emit(self, opcode: str, modifiers=(), operands=(), *, like: Instruction, guard=None, negated=False) -> None:
        self.result.instructions.append(
            Instruction(opcode, tuple(modifiers), tuple(operands), guard, negated, like.where, like.text)
        )

    def _here(self, label: str) -> None:
        self.result.labels[label] = len(self.result.instructions)

    def _label(self) -> str:
        return f"$call@{self._number()}"

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers

    def _place(self, frame: _Frame, end: str | None) -> None:
        """Append a body. `end`: the label that `ret` jumps to, None in the kernel itself."""
        function, instructions = frame.function, self.result.instructions
        labels: dict[int, list[str]] = {}
        for label, number in function.labels.items():
            labels.setdefault(number, []).append(frame.names.get(label, label))
        for number, instruction in enumerate([*function.instructions, None]):
            for label in labels.get(number, ()):
                self._here(label)
            if instruction is None:
                break
            if len(instructions) > MAX_INSTRUCTIONS:
                raise UnsupportedInstruction(
                    f"kernel {self.entry.name} has more than {MAX_INSTRUCTIONS:,} instructions with its calls inlined",
                    reason="Nested calls multiply the code: make fewer functions __noinline__.",
                )
            if not instruction.where.line and frame.where.line:
                instruction = replace(instruction, where=frame.where)
            if instruction.opcode == "call":
                self._call(frame, instruction)
            elif instruction.opcode == "ret" and end is not None:
                last = number == len(function.instructions) - 1 and instruction.guard is None
                guard = instruction.guard and frame.register(instruction.guard)
                target = () if last else (Symbol(end),)
                self._emit(
                    "inlined" if last else "bra",
                    operands=target,
                    like=instruction,
                    guard=guard,
                    negated=instruction.guard_negated,
                )
            else:
                instructions.append(frame.instruction(instruction))

    # -- one call --------------------------------------------------------------------------------------------------

    def _call(self, frame: _Frame, instruction: Instruction) -> None:
        operands = list(frame.instruction(instruction).operands)
        returns = items_of(operands.pop(0)) if isinstance(operands[0], Vector) else ()
        target = operands.pop(0)
        arguments = items_of(operands.pop(0)) if operands and isinstance(operands[0], Vector) else ()
        if not all(isinstance(item, Symbol) for item in (*returns, *arguments)):
            raise self._unsupported(instruction, "an argument that is not a .param variable")
        after = self._label()
        if instruction.guard is not None:
            guard = frame.register(instruction.guard)
            self._emit(
                "bra", (), (Symbol(after),), like=instruction, guard=guard, negated=not instruction.guard_negated
            )
        names = [name_of(item) for item in returns], [name_of(item) for item in arguments]
        if isinstance(target, Register):
            self._through_pointer(frame, instruction, target, names, after)
        else:
            self._emit("inlined", like=instruction)
            self._body(frame, instruction, name_of(target), names, after)
        self._here(after)

    def _body(self, frame: _Frame, instruction: Instruction, name: str, names, after: str) -> None:
        if name in BUILTINS and name not in self.program.functions:
            return self._builtin(instruction, name, names)
        function = self.program.functions.get(name)
        if function is None:
            raise self._unsupported(
                instruction, _REFUSED.get(name, f"function {readable(name)} has no body in this PTX")
            )
        if name in frame.active:
            way = " → ".join(map(readable, (*frame.active[frame.active.index(name) :], name)))
            raise self._unsupported(
                instruction, f"recursion ({way})", "Write the recursion as a loop, with a stack in an array if needed."
            )
        suffix = f"@{self._number()}"
        returned, given = names
        inner = {p.name: own for p, own in zip(function.returns, returned, strict=True)}
        inner |= {p.name: own for p, own in zip(function.params, given, strict=True)}
        inner |= {label: label + suffix for label in function.labels}
        for variable in function.variables.values():
            if variable.space in ("global", "const"):
                self.program.variables.setdefault(variable.name, variable)
                continue
            new = variable.name + (suffix if variable.space == "param" else f"@{name}")
            inner[variable.name] = new
            self.result.variables[new] = variable._replace(name=new)
        self.result.registers.update({r + suffix: kind for r, kind in function.registers.items()})
        return self._place(_Frame(function, suffix, inner, (*frame.active, name), instruction.where), after)

    def _builtin(self, instruction: Instruction, name: str, names) -> None:
        opcode, result, kinds = BUILTINS[name]
        (returned, given), number = names, self._number()
        operands: list[Operand] = []
        for k, (kind, argument) in enumerate(zip(kinds, given, strict=True)):
            operands.append(self._register(f"%{k}@{number}", kind))
            self._emit("ld", ("param", kind), (operands[-1], Address(Symbol(argument), 0)), like=instruction)
        if result is not None:
            operands.insert(0, self._register(f"%result@{number}", result))
        if opcode.startswith("barrier"):
            opcode, *modifiers = opcode.split(".")
            self._emit(opcode, modifiers, like=instruction)
            operands = [Immediate(0)]  # success
        else:
            self._emit(opcode, (), operands, like=instruction)
        for variable in returned:
            self._emit("st", ("param", result), (Address(Symbol(variable), 0), operands[0]), like=instruction)

    def _register(self, name: str, kind: str) -> Register:
        self.result.registers[name] = kind
        return Register(name)

    def _through_pointer(self, frame: _Frame, instruction: Instruction, pointer: Register, names, after: str) -> None:
        """Compare the pointer with each function that it may hold: those of the same shape whose address is taken."""
        variables = self.result.variables
        shape = tuple([variables[n].size for n in part] for part in names)
        taken = _addresses_taken(self.program)
        self._emit("inlined", like=instruction)
        for name, function in self.program.functions.items():
            if name not in taken or shape != tuple(
                [p.size for p in part] for part in (function.returns, function.params)
            ):
                continue
            following = self._label()
            other = self._register(f"%other@{self._number()}", "pred")
            address = Immediate(self.program.function_address(name))
            self._emit("setp", ("ne", "u64"), (other, pointer, address), like=instruction)
            self._emit("bra", (), (Symbol(following),), like=instruction, guard=other)
            done = self._label()
            self._body(frame, instruction, name, names, done)
            self._here(done)
            self._emit("bra", ("uni",), (Symbol(after),), like=instruction)
            self._here(following)
        self._emit("invalid", ("call",), like=instruction)
        self._emit("trap", like=instruction)

    def _unsupported(self, instruction: Instruction, what: str, reason: str = "") -> UnsupportedInstruction:
        where = instruction.where
        return UnsupportedInstruction(
            f"the simulator cannot run this call: {what}",
            reason=reason or "The kernel would run on a GPU. Rewrite this line to run it here.",
            kernel=self.entry.name,
            file=where.file or None,
            line=where.line or None,
            source=self.program.source_line(where),
        )


def readable(name: str) -> str:
    """The C++ name of a function, without its argument types: `_ZN2ns3fibEi` → `ns::fib`."""
    match = re.match(r"_ZN?K?(?=\d)", name)
    parts, at = [], match.end() if match else len(name)
    while length := re.match(r"\d+", name[at:]):
        at += length.end()
        parts.append(name[at : at + int(length[0])])
        at += int(length[0])
    return "::".join(parts) or name


def _addresses_taken(program) -> set[str]:
    """Names of the functions whose address is taken."""
    taken = {symbol for variable in program.variables.values() for _, symbol in variable.pointers}
    for function in (*program.entries.values(), *program.functions.values()):
        for instruction in function.instructions:
            if instruction.opcode == "mov" and isinstance(instruction.operands[-1], Symbol):
                taken.add(instruction.operands[-1].name)
    return taken


# -- parameters of calls -------------------------------------------------------------------------------------------


@dataclass
class _Access:
    offset: int
    size: int
    is_store: bool


def _resolve_params(entry: Entry) -> None:
    """Turn the `.param` variables of calls, and their uses, into registers or local variables."""
    variables = {name: v for name, v in entry.variables.items() if v.space == "param"}
    uses: dict[str, list[_Access] | None] = {name: [] for name in variables}  # None: an address is taken
    for instruction in entry.instructions:
        for name in symbols(instruction.operands):
            if name in uses:
                accesses, before = _accesses(instruction), uses[name]
                uses[name] = None if accesses is None or before is None else before + accesses
    cells = {name: None if found is None else _cells(found) for name, found in uses.items()}
    for name, parts in cells.items():
        if parts is None:
            entry.variables[name] = variables[name]._replace(space="local")
        else:
            del entry.variables[name]
            entry.registers.update({f"%{name}+{offset}": f"b{8 * size}" for offset, size in parts.items()})
    entry.instructions[:] = [_rewritten(i, cells) for i in entry.instructions]


def _accesses(instruction: Instruction) -> list[_Access] | None:
    """The parts of a parameter that a load or store by name accesses; None for anything else."""
    if instruction.opcode not in ("ld", "st") or not any(m.startswith("param") for m in instruction.modifiers):
        return None
    is_store = instruction.opcode == "st"
    address, value = instruction.operands if is_store else instruction.operands[::-1]
    if not isinstance(address, Address) or not isinstance(address.base, Symbol):
        return None
    size = TYPE_BYTES[instruction.modifiers[-1]]
    count = len(value.items) if isinstance(value, Vector) else 1
    return [_Access(address.offset + k * size, size, is_store) for k in range(count)]


def _cells(accesses: list[_Access]) -> dict[int, int] | None:
    """Offset → bytes of the parts that can each live in a register; None if accesses overlap otherwise."""
    sizes: dict[int, int] = {}
    for access in accesses:
        sizes[access.offset] = max(access.size, sizes.get(access.offset, 0))
    if any(access.is_store and access.size < sizes[access.offset] for access in accesses):
        return None
    end = 0
    for offset in sorted(sizes):
        if offset < end:
            return None
        end = offset + sizes[offset]
    return sizes


def _rewritten(instruction: Instruction, cells: dict[str, dict[int, int] | None]) -> Instruction:
    names = [name for name in symbols(instruction.operands) if name in cells]
    if not names:
        return instruction
    if cells[names[0]] is None:
        modifiers = tuple("local" if m.startswith("param") else m for m in instruction.modifiers)
        return replace(instruction, modifiers=modifiers)
    is_store = instruction.opcode == "st"
    address, value = instruction.operands if is_store else instruction.operands[::-1]
    name = name_of(as_address(address).base)
    parts = [Register(f"%{name}+{access.offset}") for access in _accesses(instruction) or ()]
    values = value if isinstance(value, Vector) else Vector((value,))
    operands = (Vector(tuple(parts)), values) if is_store else (values, Vector(tuple(parts)))
    return replace(instruction, opcode="argument", modifiers=instruction.modifiers[-1:], operands=operands)
