"""Parameters of inlined calls: registers, one for each part that is stored or loaded as a whole, or local memory if an
address is taken or parts overlap."""

from dataclasses import dataclass, replace

from warplab.simulator.ptx import program


@dataclass
class _Access:
    offset: int
    size: int
    is_store: bool


def resolve_params(entry: program.Entry) -> None:
    """Turn the `.param` variables of calls, and their uses, into registers or local variables."""
    variables = {name: v for name, v in entry.variables.items() if v.space == "param"}
    uses: dict[str, list[_Access] | None] = {name: [] for name in variables}  # None: an address is taken
    for instruction in entry.instructions:
        for name in program.symbols(instruction.operands):
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


def _accesses(instruction: program.Instruction) -> list[_Access] | None:
    """Return the parts of a parameter that a load or store by name accesses; None for anything else."""
    if instruction.opcode not in ("ld", "st") or not any(m.startswith("param") for m in instruction.modifiers):
        return None
    is_store = instruction.opcode == "st"
    address, value = instruction.operands if is_store else instruction.operands[::-1]
    if not isinstance(address, program.Address) or not isinstance(address.base, program.Symbol):
        return None
    size = program.TYPE_BYTES[instruction.modifiers[-1]]
    count = len(value.items) if isinstance(value, program.Vector) else 1
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


def _rewritten(instruction: program.Instruction, cells: dict[str, dict[int, int] | None]) -> program.Instruction:
    names = [name for name in program.symbols(instruction.operands) if name in cells]
    if not names:
        return instruction
    if cells[names[0]] is None:
        modifiers = tuple("local" if m.startswith("param") else m for m in instruction.modifiers)
        return replace(instruction, modifiers=modifiers)
    is_store = instruction.opcode == "st"
    address, value = instruction.operands if is_store else instruction.operands[::-1]
    name = program.name_of(program.as_address(address).base)
    parts = [program.Register(f"%{name}+{access.offset}") for access in _accesses(instruction) or ()]
    values = value if isinstance(value, program.Vector) else program.Vector((value,))
    operands = (program.Vector(tuple(parts)), values) if is_store else (values, program.Vector(tuple(parts)))
    return replace(instruction, opcode="argument", modifiers=instruction.modifiers[-1:], operands=operands)
