"""Registers that nothing wrote: fragments that were never filled and are multiplied, added to or stored all the same.

PTX has no undefined values. Where the source leaves a variable unset, an instruction reads a register before any has
written it. The control flow tells which registers may be read so; most kernels have none. Each of these gets a flag, a
register of its own, that says for every lane whether it holds a value: any instruction that writes the register sets
the flag, and a move passes it on. Unwritten registers that are neither moved nor checked here read as zero.
"""

from collections.abc import Callable
from dataclasses import dataclass

from warplab.simulator.ptx.program import Instruction, Operand, Register, Vector, Where, items_of
from warplab.simulator.translate.basic_blocks import BARRIER, Block, destinations, sources
from warplab.simulator.translate.block_writer import BlockWriter

_MOVES = frozenset(("mov", "argument"))
_FILL = "The fragment was never filled: fill_fragment, or a load, before the first product."
_STORE = "The fragment was never filled: fill_fragment, or a product, before it is stored."
_LOAD = "The fragment was never loaded: load_matrix_sync before the product."
_FILL_REGISTERS = "The fragment was never filled: set its registers to 0, or load them, before the first product."
_LOAD_REGISTERS = "The fragment was never loaded: ldmatrix, or loads, before the product."
_START = "The sums were never set: scale-d must be false in the first product (the last argument of wgmma() is 0)."


@dataclass(frozen=True)
class RegisterRead:
    """What an instruction reads from registers, and the likely cause if nothing wrote them."""

    what: str
    reason: str
    where: Where


def flag(register: str) -> str:
    """Return the name of the register that says whether `register` was written."""
    return f"{register} written"


def maybe_unwritten(blocks: list[Block], registers) -> frozenset[str]:
    """Return those of `registers` that may be read before they are written, and those that such values are moved to;
    empty if no checked instruction reads one. Marks their flags as live in the blocks where they are."""
    instructions = [i for block in blocks for i in block.body]
    found = (blocks[0].live_in & frozenset(registers)) - _other_sums(instructions)
    if not found:
        return found
    moves = [i for i in instructions if i.opcode in _MOVES]
    before = None
    while found != before:
        before = found
        found |= {d for i in moves if not found.isdisjoint(sources(i)) for d in destinations(i)}
    for block in blocks:
        if block.end == BARRIER and "red" in block.terminator.modifiers:  # the scheduler writes the result, but no flag
            found -= set(_names(block.terminator.operands[0]))
    if not any(found.intersection(_names(o)) for i in instructions for o, _, _ in _checked(i)):
        return frozenset()
    for block in blocks:
        block.live_out |= {flag(name) for name in block.live_out & found}
    return found


def tracked(emit: Callable[[BlockWriter, Instruction], None]) -> Callable[[BlockWriter, Instruction], None]:
    """Return `emit` with a test before the instruction that its operands were written, and its own results noted."""

    def emit_tracked(w: BlockWriter, i: Instruction) -> None:
        _check(w, i)
        emit(w, i)
        _note(w, i)

    return emit_tracked


def _check(w: BlockWriter, i: Instruction) -> None:
    """Write the test, made before `i` runs, that its operands were written."""
    for operand, what, reason in _checked(i):
        flags = [w.local(flag(name)).name for name in _names(operand) if name in w.translator.maybe_unwritten]
        if flags:
            if i.opcode == "wgmma":
                flags = [f"{flags[0]} | ~{w.array(i.operands[3], 'b1')}"]
            read = w.object(RegisterRead(what, reason, i.where))
            w.line(f"for notify in m.observers.read_registers: notify({read}, ({', '.join(flags)},), L)")


def _note(w: BlockWriter, i: Instruction) -> None:
    """Write the new flags of the registers that `i` has written."""
    for name, origins in _origins(i):
        if name not in w.translator.maybe_unwritten:
            continue
        held, own = [o for o in origins if o in w.translator.maybe_unwritten], Register(flag(name))
        if not origins or len(held) < len(origins):
            w.define(own, w.constant(1, "b1"), "b1")
        elif len(held) == 1:
            origin = Register(flag(held[0]))
            w.define(own, w.array(origin, "b1"), "b1", alias_of=origin)
        else:
            w.define(own, " | ".join(w.local(flag(o)).name for o in held), "b1")


def _checked(i: Instruction) -> list[tuple[Operand, str, str]]:
    """List operands that must hold a value: operand, what it is, and the likely cause if it holds none."""
    name = ".".join((i.opcode, *i.modifiers[: 1 if i.opcode in ("wmma", "wgmma") else 0]))
    if name == "wgmma.mma_async":
        return [(items_of(i.operands[0])[0], f"sum C of `{name}`", _START)]
    if name not in ("mma", "wmma.mma", "wmma.store"):
        return []
    if name == "wmma.store":
        return [(i.operands[1], "the matrix that `wmma.store` stores", _STORE)]
    fill, load = (_FILL, _LOAD) if i.opcode == "wmma" else (_FILL_REGISTERS, _LOAD_REGISTERS)
    parts = ("factor A", load), ("factor B", load), ("sum C", fill)
    return [(o, f"{part} of `{name}`", reason) for o, (part, reason) in zip(i.operands[1:4], parts, strict=False)]


def _other_sums(instructions: list[Instruction]) -> frozenset[str]:
    """Return the sums of wgmma but the first of each, which speaks for them: up to 128, written together."""
    products = [i for i in instructions if i.opcode == "wgmma" and i.modifiers[0] == "mma_async"]
    return frozenset(name for i in products for name in _names(i.operands[0])[1:])


def _names(operand: Operand) -> list[str]:
    return [item.name for item in items_of(operand) if isinstance(item, Register)]


def _origins(i: Instruction) -> list[tuple[str, list[str]]]:
    """Return, for each register that `i` writes, those whose bits it moves there; none if it moves a constant or
    computes. A vector counts as written if any part of it was."""
    if i.opcode == "argument":
        pairs = zip(items_of(i.operands[0]), items_of(i.operands[1]), strict=True)
        return [(d.name, _names(source)) for d, source in pairs if isinstance(d, Register)]
    moved = _names(i.operands[1]) if i.opcode == "mov" else []
    if i.opcode == "mov" and isinstance(i.operands[1], Vector) and len(moved) < len(i.operands[1].items):
        moved = []
    return [(name, moved) for name in destinations(i)]
