"""atom and red; `run.atomics` does the work."""

from warplab.simulator.ptx.program import Immediate, Instruction, Operand, Register, Symbol, items_of
from warplab.simulator.translate.basic_blocks import destinations, sources
from warplab.simulator.translate.block_writer import BlockWriter
from warplab.simulator.translate.operations.arithmetic import allow

# PTX type → dtype of an element, elements per register.
_TYPES = {
    **{f"{letter}{bits}": (f"u{bits // 8}", 1) for letter in "bu" for bits in (16, 32, 64)},
    "s32": ("i4", 1),
    "s64": ("i8", 1),
    "f32": ("f4", 1),
    "f64": ("f8", 1),
    "f16": ("f2", 1),
    "f16x2": ("f2", 2),
    "bf16": ("u2", 1),
    "bf16x2": ("u2", 2),
    "b128": ("V16", 1),
}
_KINDS = {  # operation → types for which PTX has it
    "add": ("u32", "s32", "u64", "s64", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2"),
    **dict.fromkeys(("min", "max"), ("u32", "s32", "u64", "s64", "f16", "f16x2", "bf16", "bf16x2")),
    **dict.fromkeys(("and", "or", "xor"), ("b32", "b64")),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    "exch": ("b32", "b64", "b128"),
    "cas": ("b16", "b32", "b64", "b128"),
}
_ORDER = ("relaxed", "acquire", "release", "acq_rel", "cta", "gpu", "sys", "cluster", "noftz")
_SPACES = {"global": "global", "shared": "shared", "shared::cta": "shared", "shared::cluster": "shared"}


def _atomic(w: BlockWriter, i: Instruction) -> None:
    modifiers, kind = list(i.modifiers), next(m for m in i.modifiers if m in _TYPES)  # also `.v2.f32.add`
    modifiers.remove(kind)
    operation = next((m for m in modifiers if m in _KINDS), None)
    if operation is None or kind not in _KINDS[operation] or (i.opcode == "red" and operation in ("exch", "cas")):
        raise w.unsupported()
    vector = next((int(m[1:]) for m in modifiers if m in ("v2", "v4", "v8")), 0)
    hints = [m for m in modifiers if m.startswith(("L1::", "L2::"))]
    allow(w, modifiers, {operation, *_ORDER, *_SPACES, *hints, f"v{vector}"})
    if vector and kind not in ("f32", "f16", "f16x2", "bf16", "bf16x2"):
        raise w.unsupported()
    space = next((_SPACES[m] for m in modifiers if m in _SPACES), "generic")
    destination, address, *values = i.operands if i.opcode == "atom" else (Symbol("_"), *i.operands)
    wanted_values = 2 if operation == "cas" else 1
    values = values[:wanted_values]  # a cache policy may follow
    if len(values) < wanted_values or {len(items_of(o)) for o in (destination, *values) if o != Symbol("_")} != {
        max(1, vector)
    }:
        raise w.unsupported("other registers than the instruction has elements")
    dtype, packed = _TYPES[kind]
    count = packed * max(1, vector)
    if kind[0] in "fb" and operation in ("add", "min", "max"):
        operation = f"f{operation}.bf16" if kind.startswith("bf16") else f"f{operation}"
    if dtype[0] == "i" and operation == "add":
        dtype = dtype.replace("i", "u")
    wanted = _is_read(w, i, destination)
    base, offset = w.addresses(address, space)
    site = w.site("atomic", space, *(("u8", 2) if dtype == "V16" else (dtype, count)), offset)
    if operation == "add" and dtype == "u4" and values[0] == Immediate(1) and not wanted:
        w.translator.sites[-1].bank_op = "increment"  # ATOMS.POPC.INC: lanes with one address go together
    if operation == "cas":
        operands = f"(({', '.join(w.array(v, dtype) for v in values)}),)"
    elif packed == 2:
        operands = " + ".join(f"m.atomics.halves({w.array(v, 'u4')}, {dtype})" for v in items_of(values[0]))
    else:
        operands = f"({', '.join(w.array(v, dtype) for v in items_of(values[0]))},)"
    found = w.fresh()
    w.line(f"{found} = m.atomics.run({site}, {base}, {operation!r}, {operands}, L, {wanted})")
    if not wanted:
        return
    for k, register in enumerate(items_of(destination)):
        if packed == 2:
            w.define(register, f"m.atomics.packed({found}[{2 * k}], {found}[{2 * k + 1}])", "u4")
        else:
            name = w.fresh()
            w.line(f"{name} = {found}[{k}]")
            w.define(register, name, dtype)


def _is_read(w: BlockWriter, i: Instruction, destination: Operand) -> bool:
    """Tell whether the old value is used. If not, ptxas turns `atom` into `red`, and a sum's order is free."""
    names = {item.name for item in items_of(destination) if isinstance(item, Register)}
    body = w.block.body
    after = next(k for k, other in enumerate(body) if other is i) + 1
    for other in body[after:]:
        if names.intersection(sources(other)):
            return True
        names.difference_update(destinations(other))
    last = w.block.last
    ends = {w.block.condition.name} if w.block.condition is not None else set()
    ends.update(sources(last) if last is not None else ())
    return bool(names & (w.block.live_out | ends))


TABLE = {"atom": _atomic, "red": _atomic}
