"""Which memory instructions of a kernel access the same location, as far as that is known before it runs.

Registers that are written once, by an instruction without side effects, get the number of the value they hold. The same
operation on operands with the same numbers gives the same number; a register plus a constant keeps its number and
records the constant. So an address is recognised that is passed to a function or, without optimisation, recomputed or
kept on the stack (where the latest store in program text counts).

Also plain loads that only test a word before an atomic operation on it, as in `if (x > *most) atomicMax(most, x)`. The
test may see any value that the word has had, since the atomic operation looks again. So it is no race.
"""

from collections import Counter
from collections.abc import Callable

from warplab.simulator.ptx.graphs import reached
from warplab.simulator.ptx.program import (
    Address,
    Entry,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
    as_address,
    items_of,
)
from warplab.simulator.translate.basic_blocks import Block, destinations, sources

_SAME = frozenset(("mov", "cvta"))
_PURE = frozenset(
    ("add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "not", "neg", "cvt", "min", "max", "rem", "div")
)

Value = tuple[int, int]  # number, plus a constant


class ValueNumbering:
    """What the registers of one kernel, with its calls inlined, hold and where its memory instructions go."""

    def __init__(self, entry: Entry) -> None:
        self._written = Counter(name for i in entry.instructions for name in destinations(i))
        self._numbers: dict[object, int] = {}
        self._values: dict[str, Value] = {}
        self._stack: dict[Value, Value] = {}  # what was stored at a location
        self._local = {self._number(Symbol(v.name)) for v in entry.variables.values() if v.space == "local"}
        for instruction in entry.instructions:
            self._follow(instruction)

    def location(self, instruction: Instruction) -> Value | None:
        """Return the number of the location that a memory instruction goes to, plus a constant; None for others."""
        address = next((operand for operand in instruction.operands if isinstance(operand, Address)), None)
        if address is None:
            return None
        number, offset = self._value(address.base)
        return number, offset + address.offset

    def _number(self, what: object) -> int:
        return self._numbers.setdefault(what, len(self._numbers))

    def _value(self, operand: Operand | None) -> Value:
        if isinstance(operand, Register) and operand.name in self._values:
            return self._values[operand.name]
        return self._number(operand), 0

    def _follow(self, i: Instruction) -> None:
        if i.guard is not None:
            return
        if i.opcode == "argument":
            for destination, source in zip(items_of(i.operands[0]), items_of(i.operands[1]), strict=True):
                self._set(destination, self._value(source))
        elif i.opcode in _SAME and not isinstance(i.operands[1], Vector):
            self._set(i.operands[0], self._value(i.operands[1]))
        elif i.opcode == "add" and i.modifiers in (("s64",), ("u64",)) and isinstance(i.operands[2], Immediate):
            number, offset = self._value(i.operands[1])
            self._set(i.operands[0], (number, offset + int(i.operands[2].value)))
        elif i.opcode in _PURE and "cc" not in i.modifiers:
            operands = tuple(self._value(operand) for operand in i.operands[1:])
            self._set(i.operands[0], (self._number((i.opcode, i.modifiers, operands)), 0))
        elif i.opcode == "ld" and "param" in i.modifiers and isinstance(as_address(i.operands[1]).base, Symbol):
            self._set(i.operands[0], (self._number(i.operands[1]), 0))
        elif i.opcode in ("ld", "st") and (place := self.location(i)) is not None and place[0] in self._local:
            if i.opcode == "st":
                self._stack[place] = self._value(i.operands[1])
            elif place in self._stack:
                self._set(i.operands[0], self._stack[place])

    def _set(self, destination: Operand, value: Value) -> None:
        if isinstance(destination, Register) and self._written[destination.name] == 1:
            self._values[destination.name] = value


_ATOMIC = frozenset(("atom", "red"))
_COMPUTES = frozenset(
    ("add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "not", "neg", "cvt", "min", "max", "mov", "setp")
)


def plain_tests(blocks: list[Block], location: Callable[[Instruction], object]) -> frozenset[int]:
    """Return the `id` of each plain load whose value does nothing but decide on branches, and from which the program
    comes to an atomic operation on the same location, none before it. `location`: where an instruction goes."""
    atomics: dict[object, list[int]] = {}  # the numbers of their blocks
    for block in blocks:
        for i in block.counted:
            if i.opcode in _ATOMIC:
                atomics.setdefault(location(i), []).append(block.index)
    if not atomics:
        return frozenset()
    following = [block.successors() for block in blocks]
    users: dict[str, list[Instruction]] = {}
    for block in blocks:
        for i in block.counted:
            for name in sources(i):
                users.setdefault(name, []).append(i)
    found = set()
    for block in blocks:
        for i in block.counted:
            places = atomics.get(location(i), []) if i.opcode == "ld" else []
            before = bool(places) and block.index < min(places)
            if before and _only_decides(i, users) and not reached(following, block.index).isdisjoint(places):
                found.add(id(i))
    return frozenset(found)


def _only_decides(load: Instruction, users: dict[str, list[Instruction]]) -> bool:
    """Tell whether only guards and branches depend on what is loaded."""
    known = set(destinations(load))
    work = list(known)
    while work:
        for user in users.get(work.pop(), ()):
            if user.opcode not in _COMPUTES:
                return False
            more = set(destinations(user)) - known
            known |= more
            work += more
    return True
