"""The data that PTX text becomes: `Program`, `Entry`, `Instruction` and their operands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Register(NamedTuple):
    name: str


class Immediate(NamedTuple):
    """A literal: an int, or a float given by its bits (`0f3F800000`)."""

    value: int | float


class Symbol(NamedTuple):
    """A variable, parameter, function or label, by name."""

    name: str


class Address(NamedTuple):
    """`[base + offset]`. `base`: a Register, a Symbol, or None for an absolute address."""

    base: Register | Symbol | None
    offset: int


class Vector(NamedTuple):
    """`{a, b, c, d}`"""

    items: tuple[Operand, ...]


class Negated(NamedTuple):
    """`!%p`"""

    register: Register


class Indexed(NamedTuple):
    """`[base, {x, y}]`: coordinates in a tensor map, a texture or a surface."""

    base: Address
    coordinates: tuple[Operand, ...]


Operand = Register | Negated | Immediate | Symbol | Address | Vector | Indexed


# What an instruction expects of an operand. Malformed PTX has others: each raises ValueError then.


def items_of(operand: Operand, count: int | None = None) -> tuple[Operand, ...]:
    """Return the parts of a vector, any other operand alone; so many, if a `count` is given."""
    items = operand.items if isinstance(operand, Vector) else (operand,)
    if count not in (None, len(items)):
        raise ValueError(f"{operand} has {len(items)} parts, not {count}")
    return items


def registers_of(operand: Operand | None) -> Iterator[str]:
    """Yield the names of the registers in an operand."""
    match operand:
        case Register():
            yield operand.name
        case Negated():
            yield operand.register.name
        case Address():
            yield from registers_of(operand.base)
        case Indexed() | Vector():
            parts = operand.items if isinstance(operand, Vector) else (operand.base, *operand.coordinates)
            for part in parts:
                yield from registers_of(part)


def as_address(operand: Operand) -> Address:
    if not isinstance(operand, Address):
        raise ValueError(f"{operand} is no address")
    return operand


def name_of(operand: Operand | None) -> str:
    """Return the name of a register or symbol."""
    if not isinstance(operand, Register | Symbol):
        raise ValueError(f"{operand} has no name")
    return operand.name


def integer(operand: Operand) -> int:
    """Return the value of an integer literal."""
    if not isinstance(operand, Immediate) or isinstance(operand.value, float):
        raise ValueError(f"{operand} is no integer")
    return operand.value


class Where(NamedTuple):
    """A place in the source: file name as in `.file`, line from 1 (0 if the compiler gave none)."""

    file: str
    line: int


TYPE_BYTES = {
    **dict.fromkeys(("b8", "u8", "s8"), 1),
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), 2),
    **dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2"), 4),
    **dict.fromkeys(("b64", "u64", "s64", "f64"), 8),
    **dict.fromkeys(("b128",), 16),
    "pred": 1,
}
NOWHERE = Where("", 0)
_FIRST_CODE = 1 << 24


@dataclass(slots=True)
class Instruction:
    """`@[!]guard opcode.modifiers operands;`"""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None = None
    guard_negated: bool = False
    where: Where = NOWHERE
    text: str = ""
    at: int = field(default=-1, compare=False)  # where its statement begins in `Program.text`


class Param(NamedTuple):
    """A kernel parameter: PTX type (`u64`, `f32`, `b8` for a struct's bytes), bytes, alignment, offset."""

    name: str
    type: str
    size: int
    align: int
    offset: int


class Variable(NamedTuple):
    """A `.shared`, `.local`, `.const` or `.global` variable, or the `.param` of a call.

    `pointers`: offset and symbol of each address in its initial value.
    """

    name: str
    space: str
    size: int
    align: int
    initial: bytes | None
    dynamic: bool
    pointers: tuple[tuple[int, str], ...] = ()


@dataclass(eq=False)
class Entry:
    """A kernel or device function: its parameters, registers (name → PTX type), variables, instructions, labels.

    `returns`: what a device function returns, as parameters. `source_names`: the source's names for variables whose
    symbols do not reveal them.
    """

    name: str
    program: Program
    params: list[Param] = field(default_factory=list)
    returns: list[Param] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    source_names: dict[str, str] = field(default_factory=dict)
    max_threads: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None  # blocks of a cluster that it asks for (__cluster_dims__)
    translated: Any = None  # the `Translation`, made at the first launch

    @functools.cached_property
    def inlined(self) -> Entry:
        """Return the kernel with its calls replaced by the bodies of the functions."""
        return self.program.inline(self)

    @functools.cached_property
    def shared_bytes(self) -> int:
        """Return static shared memory per thread block, bytes."""
        return layout(self.shared_variables())[1]

    def at(self, where: Where) -> dict[str, Any]:
        """Return what errors tell of a place in its source."""
        file, line = where.file or None, where.line or None
        return {"kernel": self.name, "file": file, "line": line, "source": self.program.source_line(where)}

    def shared_variables(self, dynamic: bool = False) -> list[Variable]:
        """Return the static (or dynamic) shared variables that the kernel uses, its own and the module's."""
        every = {**self.program.variables, **self.inlined.variables}
        used = {name for i in self.inlined.instructions for name in symbols(i.operands) if name in every}
        return [v for n, v in every.items() if n in used and v.space == "shared" and v.dynamic == dynamic]


@dataclass(eq=False)
class Program:
    """A PTX module. `inline` puts the bodies of its functions in place of an entry's calls. `sources`: text of the
    source files that its lines refer to, by name. `text`: the PTX without its comments.
    """

    inline: Callable[[Entry], Entry]
    version: str = ""
    target: str = ""
    entries: dict[str, Entry] = field(default_factory=dict)
    functions: dict[str, Entry] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    text: str = field(default="", repr=False)

    def function_address(self, name: str) -> int:
        """Return the value of a pointer to a device function, below any address of data."""
        return _FIRST_CODE + 16 * list(self.functions).index(name)

    def source_line(self, where: Where) -> str | None:
        text = self.sources.get(where.file)
        lines = text.splitlines() if text is not None else []
        return lines[where.line - 1] if 0 < where.line <= len(lines) else None


def layout(variables: list[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """Lay out variables one after another at their alignment. Returns their offsets and the end of the last."""
    offsets, end = {}, start
    for v in variables:
        end = -(-end // v.align) * v.align
        offsets[v.name] = end
        end += v.size
    return offsets, end


def symbols(operands):
    """Yield the names of the variables, parameters, functions and labels in operands."""
    for operand in operands:
        if isinstance(operand, Symbol):
            yield operand.name
        elif isinstance(operand, Address) and isinstance(operand.base, Symbol):
            yield operand.base.name
        elif isinstance(operand, Indexed):
            yield from symbols((operand.base, *operand.coordinates))
        elif isinstance(operand, Vector):
            yield from symbols(operand.items)
