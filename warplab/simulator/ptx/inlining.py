"""Calls of device functions: each is replaced by the function's body before the kernel is cut into blocks.

A call passes its arguments and results through `.param` variables of the caller. Inlining turns these into registers,
one for each part that is stored or loaded as a whole, or into local memory if an address is taken or parts overlap.
Names in an inlined body end with `@` and the number of the call. As such a function cannot be active twice in a thread,
all its calls share one copy of its local and shared variables. Recursive functions are not inlined: their code stands
behind the kernel's, and they have a call stack (`recursion`).
"""

import re
from dataclasses import dataclass, replace

from warplab.simulator.errors import UnsupportedInstruction, refusing
from warplab.simulator.ptx import recursion
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
    Variable,
    Vector,
    Where,
    as_address,
    items_of,
    name_of,
    symbols,
)

_FRAME, _NEXT = "%frame@", "%next@"  # where the running function's frame begins on the call stack, and the next one
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
    "cudaLaunchDeviceV2": "a kernel started from a kernel (dynamic parallelism)",
}


def inline(entry: Entry) -> Entry:
    """Return the kernel without calls. Raises UnsupportedInstruction for functions without a body."""
    if not any(i.opcode == "call" for i in entry.instructions):
        return entry
    with refusing(f"cannot read the calls in the PTX of kernel {entry.name}"):
        return _Inliner(entry).run()


@dataclass
class _Frame:
    """One inlined call: the function, the new names of what it names, and the functions active around it.

    `where`: the line for instructions without one, as in functions that the compiler adds. `stack`: the frame that
    holds its local variables, where it is a recursive function or inlined into one.
    """

    function: Entry
    suffix: str
    names: dict[str, str]  # of parameters (the caller's variables), labels and variables
    active: tuple[str, ...]
    where: Where = NOWHERE
    stack: recursion.StackFrame | None = None
    at: int = 0  # number of the instruction that is being placed

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
    """Tell whether an instruction uses a parameter other than by name, as `ld.param` does?"""
    last = instruction.operands[-1]
    return not (isinstance(last, Address) and isinstance(last.base, Symbol))


class _Inliner:
    def __init__(self, entry: Entry) -> None:
        self.entry, self.program = entry, entry.program
        self.result = replace(
            entry, registers=dict(entry.registers), variables=dict(entry.variables), instructions=[], labels={}
        )
        self.numbers = 0
        self.taken = _addresses_taken(self.program)
        self.recursive = recursion.out_of_line(entry, self.taken)
        self.frames: dict[str, recursion.StackFrame] = {}  # of the recursive functions that are called
        self.places: dict[str, tuple[str, int]] = {}  # variables on the stack: the register they are near, distance
        self.sites: dict[str, list[tuple[int, Instruction]]] = {}  # calls of each recursive function
        self.kept: dict[int, list[str]] = {}  # of the function that is being placed
        self.room = 0  # what a call stores beyond its caller's frame

    def run(self) -> Entry:
        names: dict[str, str] = {}
        if self.recursive:
            self._begin_stack()
            names = self._outgoing(self.entry)
        self._place(_Frame(self.entry, "", names, (self.entry.name,)), None)
        if self.frames:
            self._place_recursive()
        resolve_params(self.result)
        return self.result

    def _emit(self, opcode: str, modifiers=(), operands=(), *, like: Instruction, guard=None, negated=False) -> None:
        self.result.instructions.append(
            Instruction(opcode, tuple(modifiers), tuple(operands), guard, negated, like.where, like.text, like.at)
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
                raise self._too_long()
            if not instruction.where.line and frame.where.line:
                instruction = replace(instruction, where=frame.where)
            if instruction.opcode == "call":
                frame.at = number
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
                self._append(frame.instruction(instruction))

    def _append(self, instruction: Instruction) -> None:
        """Append an instruction, in which variables on the call stack become addresses there."""
        names = [name for name in symbols(instruction.operands) if name in self.places] if self.places else []
        if not names:
            self.result.instructions.append(instruction)
            return
        operands: list[Operand] = []
        for operand in instruction.operands:
            if isinstance(operand, Address) and isinstance(operand.base, Symbol) and operand.base.name in self.places:
                near, distance = self.places[operand.base.name]
                operand = Address(Register(near), distance + operand.offset)
            elif isinstance(operand, Symbol) and operand.name in self.places:
                near, distance = self.places[operand.name]
                operand = self._register(f"%place@{self._number()}", "b64")
                self._emit("add", ("s64",), (operand, Register(near), Immediate(distance)), like=instruction)
            operands.append(operand)
        modifiers = tuple("local" if m.startswith("param") else m for m in instruction.modifiers)
        self.result.instructions.append(replace(instruction, modifiers=modifiers, operands=tuple(operands)))

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
        if name in self.recursive:
            return self._call_recursive(frame, instruction, name)
        suffix = f"@{self._number()}"
        returned, given = names
        inner = {p.name: own for p, own in zip(function.returns, returned, strict=True)}
        inner |= {p.name: own for p, own in zip(function.params, given, strict=True)}
        inner |= self._names_of(function, suffix, frame.stack)
        self.result.registers.update({r + suffix: kind for r, kind in function.registers.items()})
        inside = _Frame(function, suffix, inner, (*frame.active, name), instruction.where, frame.stack)
        return self._place(inside, after)

    def _names_of(self, function: Entry, suffix: str, stack: recursion.StackFrame | None) -> dict[str, str]:
        """Return new names of a body's labels and variables; these become the kernel's, or lie on the call stack."""
        inner = {label: label + suffix for label in function.labels}
        for variable in function.variables.values():
            if variable.space in ("global", "const"):
                self.program.variables.setdefault(variable.name, variable)
                continue
            new = variable.name + (suffix if variable.space == "param" else f"@{function.name}")
            inner[variable.name] = new
            if variable.space == "local" and stack is not None:
                inner[variable.name] = new = variable.name + suffix
                self.places[new] = _FRAME, stack.add(variable.size)
            else:
                self.result.variables[new] = variable._replace(name=new)
        if self.recursive:
            inner |= self._outgoing(function)
        return inner

    # -- recursive functions ---------------------------------------------------------------------------------------

    def _begin_stack(self) -> None:
        for name in (_FRAME, _NEXT):
            self._register(name, "b64")
        like = Instruction("mov", (), ())
        self._emit("mov", ("u64",), (Register(_FRAME), Symbol(recursion.STACK)), like=like)
        self._emit("mov", ("u64",), (Register(_NEXT), Register(_FRAME)), like=like)

    def _outgoing(self, caller: Entry) -> dict[str, str]:
        """Return new names of the variables in which a body passes arguments to recursive functions and gets their
        results: they lie in the frame that the callee is going to have."""
        names: dict[str, str] = {}
        for instruction in caller.instructions:
            found = recursion.call_of(caller, instruction) if instruction.opcode == "call" else None
            if found is None:
                continue
            target, results, arguments, shape = found
            if not any(name in self.recursive for name in self._callees(target, shape)):
                continue
            for name, place in zip((*results, *arguments), recursion.outgoing(shape), strict=False):
                names[name] = f"{name}@{self._number()}"
                self.places[names[name]] = _NEXT, place
        return names

    def _callees(self, target: Register | Symbol, shape: recursion.Shape) -> list[str]:
        if isinstance(target, Symbol):
            return [target.name]
        functions = self.program.functions
        return [
            name for name, function in functions.items() if name in self.taken and recursion.shape_of(function) == shape
        ]

    def _call_recursive(self, frame: _Frame, instruction: Instruction, name: str) -> None:
        """Enter a function, whose arguments are stored already, and take up the caller's registers again."""
        self.frames.setdefault(name, recursion.StackFrame())
        self.room = max(self.room, recursion.outgoing(recursion.shape_of(self.program.functions[name]))[-1])
        number = self._number()
        self.sites.setdefault(name, []).append((number, instruction))
        here, following = Register(_FRAME), Register(_NEXT)
        where = self._register("%site@", "b32")
        self._emit("mov", ("u32",), (where, Immediate(number)), like=instruction)
        self._emit("st", ("local", "u32"), (Address(following, recursion.RETURN_TO), where), like=instruction)
        self._emit("st", ("local", "u64"), (Address(following, recursion.CALLER), here), like=instruction)
        own = frame.function.name in self.recursive and frame.stack is not None
        kept = self.kept[frame.at] if own else []
        for register in kept:
            self._keep(frame, register, instruction, restore=False)
        self._emit("mov", ("u64",), (here, following), like=instruction)
        self._emit("bra", ("uni",), (Symbol(f"$enter@{name}"),), like=instruction)
        self._here(f"$back@{number}")
        self._emit("mov", ("u64",), (following, here), like=instruction)
        self._emit("ld", ("local", "u64"), (here, Address(here, recursion.CALLER)), like=instruction)
        for register in kept:
            self._keep(frame, register, instruction, restore=True)
        if len(self.result.instructions) > MAX_INSTRUCTIONS:
            raise self._too_long()

    def _keep(self, frame: _Frame, name: str, like: Instruction, restore: bool) -> None:
        """Store one of the caller's registers in its frame, or load it."""
        assert frame.stack is not None
        kind, register = frame.function.registers[name], frame.register(Register(name))
        nbytes = 4 if kind == "pred" else TYPE_BYTES[kind]
        place = Address(Register(_FRAME), frame.stack.keep(name, nbytes))
        bits = ("local", f"b{8 * nbytes}")
        value = register if kind != "pred" else self._register("%kept@", "b32")
        if restore:
            self._emit("ld", bits, (value, place), like=like)
            if kind == "pred":
                self._emit("setp", ("ne", "u32"), (register, value, Immediate(0)), like=like)
            return
        if kind == "pred":
            self._emit("selp", ("b32",), (value, Immediate(1), Immediate(0), register), like=like)
        self._emit("st", bits, (place, value), like=like)

    def _place_recursive(self) -> None:
        """Append the bodies of the recursive functions that are called, and their returns."""
        self._emit("ret", like=Instruction("ret", (), ()))
        entered: dict[str, int] = {}
        while len(entered) < len(self.frames):
            name = next(name for name in self.frames if name not in entered)
            function, frame = self.program.functions[name], self.frames[name]
            first = function.instructions[0] if function.instructions else Instruction("ret", (), ())
            self._here(f"$enter@{name}")
            entered[name] = len(self.result.instructions)
            self._emit("enter", like=first)
            suffix = f"@{self._number()}"
            self.result.registers.update({r + suffix: kind for r, kind in function.registers.items()})
            inner: dict[str, str] = {}
            for parameter in (*function.returns, *function.params):
                inner[parameter.name] = parameter.name + suffix
                self.places[inner[parameter.name]] = _FRAME, frame.add(parameter.size)
            inner |= self._names_of(function, suffix, frame)
            self.kept = self._kept_at_calls(function)
            self._place(_Frame(function, suffix, inner, (self.entry.name, name), first.where, frame), f"$leave@{name}")
            self._emit("bra", ("uni",), (Symbol(f"$leave@{name}"),), like=first)
        for name, at in entered.items():
            size = Immediate(self.frames[name].size)
            instruction = self.result.instructions[at]
            operands = (Register(_NEXT), Register(_FRAME), size, Immediate(self.room))
            self.result.instructions[at] = replace(instruction, operands=operands)
            self._return(name)
        # Behind all other variables, so that it ends where the thread's local memory does.
        self.result.variables[recursion.STACK] = Variable(
            recursion.STACK, "local", recursion.STACK_BYTES + self.room, 16, None, dynamic=False
        )

    def _kept_at_calls(self, function: Entry) -> dict[int, list[str]]:
        """Return registers of a recursive function to keep at its recursive calls, by number of the call."""
        calls = []
        for number, instruction in enumerate(function.instructions):
            found = recursion.call_of(function, instruction) if instruction.opcode == "call" else None
            if found is not None and any(name in self.recursive for name in self._callees(found[0], found[-1])):
                calls.append(number)
        return recursion.kept_registers(function, calls)

    def _return(self, name: str) -> None:
        """Jump back to whichever call the frame names."""
        self._here(f"$leave@{name}")
        like = Instruction("ret", (), (), text="ret")
        site, is_it = self._register("%site@", "b32"), self._register("%here@", "pred")
        self._emit("ld", ("local", "u32"), (site, Address(Register(_FRAME), recursion.RETURN_TO)), like=like)
        *others, (last, _) = self.sites[name]
        for number, _ in others:
            self._emit("setp", ("eq", "u32"), (is_it, site, Immediate(number)), like=like)
            self._emit("bra", (), (Symbol(f"$back@{number}"),), like=like, guard=is_it)
        self._emit("bra", ("uni",), (Symbol(f"$back@{last}"),), like=like)

    # -- functions of the system, and pointers ---------------------------------------------------------------------

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
        found = recursion.call_of(frame.function, instruction)
        assert found is not None
        self._emit("inlined", like=instruction)
        for name in self._callees(pointer, found[-1]):
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

    def _too_long(self) -> UnsupportedInstruction:
        return UnsupportedInstruction(
            f"kernel {self.entry.name} has more than {MAX_INSTRUCTIONS:,} instructions with its calls inlined",
            reason="Nested calls multiply the code: make fewer functions __noinline__.",
        )

    def _unsupported(self, instruction: Instruction, what: str, reason: str = "") -> UnsupportedInstruction:
        reason = reason or "A GPU may run it. Rewrite this line to run it here."
        what = f"the simulator cannot run this call: {what}"
        return UnsupportedInstruction(what, reason=reason, **self.entry.at(instruction.where))


def readable(name: str) -> str:
    """Return the C++ name of a function, without its argument types: `_ZN2ns3fibEi` → `ns::fib`."""
    match = re.match(r"_ZN?K?(?=\d)", name)
    parts, at = [], match.end() if match else len(name)
    while length := re.match(r"\d+", name[at:]):
        at += length.end()
        parts.append(name[at : at + int(length[0])])
        at += int(length[0])
    return "::".join(parts) or name


def _addresses_taken(program) -> set[str]:
    """Return the names of the functions whose address is taken."""
    taken = {symbol for variable in program.variables.values() for _, symbol in variable.pointers}
    for function in (*program.entries.values(), *program.functions.values()):
        for instruction in function.instructions:
            if instruction.opcode == "mov" and isinstance(instruction.operands[-1], Symbol):
                taken.add(instruction.operands[-1].name)
    return taken


@dataclass
class _Access:
    offset: int
    size: int
    is_store: bool


def resolve_params(entry: Entry) -> None:
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
    """Return the parts of a parameter that a load or store by name accesses; None for anything else."""
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
    """Map offsets to bytes of the parts that can each live in a register; None if accesses overlap otherwise."""
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
