"""Expands brx.idx, a jump to one of several labels by number, into comparisons and jumps, as compilers do today."""

from warplab.simulator.ptx.program import Entry, Immediate, Instruction, Register, Symbol


def append_jumps(entry: Entry, jump: Instruction, targets: tuple[str, ...]) -> None:
    """Append what replaces a `brx.idx` to the labels `targets`. A number out of range stops the kernel."""
    number = len(entry.instructions)
    chosen, after = Register(f"%chosen{number}"), f"$after{number}"
    entry.registers[chosen.name] = "pred"

    def add(opcode: str, modifiers=(), operands=(), guard=None, negated: bool = False) -> None:
        made = Instruction(opcode, modifiers, operands, guard, negated, jump.where, jump.text, jump.at)
        entry.instructions.append(made)

    if jump.guard is not None:
        add("bra", (), (Symbol(after),), jump.guard, not jump.guard_negated)
    for k, target in enumerate(targets):
        add("setp", ("eq", "u32"), (chosen, jump.operands[0], Immediate(k)))
        add("bra", (), (Symbol(target),), chosen)
    add("invalid", ("jump",))
    add("trap")
    entry.labels[after] = len(entry.instructions)
