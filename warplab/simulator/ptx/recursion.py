"""Recursive functions: which can be active several times in a thread, and what each of their calls must keep.

Such a function has one copy of its code (`inlining` gives every other call a copy of its own). What belongs to one
activation lies on a call stack in the thread's local memory, as on a GPU: the number of the call to return to, the
caller's place on the stack, results and arguments, local arrays, and the registers needed after it has called itself.
"""

from dataclasses import dataclass, field

from warplab.simulator.ptx import program
from warplab.simulator.ptx.graphs import components, reached

STACK = "%stack@"  # the variable at whose place the call stack begins, behind all others in local memory
STACK_BYTES = 1 << 16  # per thread
RETURN_TO, CALLER = 0, 8  # where a frame holds the number of its call, and its caller's place
_ALIGNMENT = 16
_MOST_STEPS = 5_000_000  # of the search for registers to keep; beyond, all are kept

Shape = tuple[list[int], list[int]]


@dataclass
class StackFrame:
    """The layout of one recursive function's frame, in bytes from its start; it grows while the body is placed."""

    saved: dict[str, int] = field(default_factory=dict)  # where each register is kept
    _end: int = 16

    def add(self, nbytes: int, alignment: int = _ALIGNMENT) -> int:
        """Return the place of `nbytes` more bytes."""
        place = -(-self._end // alignment) * alignment
        self._end = place + nbytes
        return place

    def keep(self, register: str, nbytes: int) -> int:
        if register not in self.saved:
            self.saved[register] = self.add(nbytes, nbytes)
        return self.saved[register]

    @property
    def size(self) -> int:
        return -(-self._end // _ALIGNMENT) * _ALIGNMENT


def outgoing(shape: Shape) -> list[int]:
    """Return where a callee of this shape finds its results and arguments in its frame. The last's end comes last."""
    places, frame = [], StackFrame()
    for nbytes in (*shape[0], *shape[1]):
        places.append(frame.add(nbytes))
    return [*places, frame.size]


def shape_of(function: program.Entry) -> Shape:
    """Return bytes of a function's results and arguments."""
    return [p.size for p in function.returns], [p.size for p in function.params]


def call_of(
    caller: program.Entry, instruction: program.Instruction
) -> tuple[program.Register | program.Symbol, list[str], list[str], Shape] | None:
    """Return the target of a call, the variables for its results and arguments, and their shape; None for a call that
    `inlining` refuses."""
    operands = list(instruction.operands)
    results = program.items_of(operands.pop(0)) if operands and isinstance(operands[0], program.Vector) else ()
    target = operands.pop(0) if operands else None
    if not isinstance(target, program.Register | program.Symbol):
        return None
    arguments = program.items_of(operands.pop(0)) if operands and isinstance(operands[0], program.Vector) else ()
    passed: list[program.Operand] = [*results, *arguments]
    if not all(isinstance(item, program.Symbol) and item.name in caller.variables for item in passed):
        return None
    names = [program.name_of(item) for item in results], [program.name_of(item) for item in arguments]
    sizes = [[caller.variables[name].size for name in part] for part in names]
    return target, *names, (sizes[0], sizes[1])


def out_of_line(entry: program.Entry, taken: set[str]) -> set[str]:
    """Return the functions that cannot be inlined into a kernel which calls them: recursive ones, and whatever a
    pointer may call in their place. `taken`: functions whose address is taken."""
    functions = entry.program.functions
    shapes: dict[str, list[str]] = {}  # functions that a pointer can call, by shape
    for name in functions:
        if name in taken:
            shapes.setdefault(str(shape_of(functions[name])), []).append(name)
    graph: dict[str, set[str]] = {}
    by_pointer: list[list[str]] = []
    for caller in (entry, *functions.values()):
        called = graph[caller.name] = set()
        for instruction in caller.instructions:
            found = call_of(caller, instruction) if instruction.opcode == "call" else None
            if found is None:
                continue
            target, shape = found[0], found[-1]
            if isinstance(target, program.Symbol):
                called.update({target.name} & functions.keys())
            else:
                candidates = shapes.get(str(shape), [])
                called.update(candidates)
                by_pointer.append(candidates)
    result = {name for names in components(graph, graph) for name in names if len(names) > 1 or name in graph[name]}
    grown = True
    while grown and result:
        grown = False
        for candidates in by_pointer:
            if result.intersection(candidates) and not result.issuperset(candidates):
                result.update(candidates)
                grown = True
    return result & ({entry.name} | reached(graph, entry.name))


def kept_registers(function: program.Entry, calls: list[int]) -> dict[int, list[str]]:
    """Return, for each of these calls, by number of the instruction: the registers used before and after it."""
    instructions = function.instructions
    used = [{name for part in (*i.operands, i.guard) for name in program.registers_of(part)} for i in instructions]
    if len(calls) * len(instructions) > _MOST_STEPS:
        return {call: list(function.registers) for call in calls}
    forwards: list[list[int]] = [[] for _ in instructions]
    backwards: list[list[int]] = [[] for _ in instructions]
    for number, instruction in enumerate(instructions):
        following = []
        if instruction.opcode == "bra":
            following.append(function.labels.get(program.name_of(instruction.operands[0]), len(instructions)))
        if instruction.opcode not in ("bra", "ret", "exit", "trap") or instruction.guard is not None:
            following.append(number + 1)
        for other in following:
            if other < len(instructions):
                forwards[number].append(other)
                backwards[other].append(number)
    result = {}
    for call in calls:
        after = set().union(*(used[n] for n in reached(forwards, call)))
        before = set().union(*(used[n] for n in reached(backwards, call)))
        result[call] = [name for name in function.registers if name in after and name in before]
    return result
