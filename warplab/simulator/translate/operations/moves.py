"""Moves between registers, vectors of them, and address spaces."""

from warplab.simulator.ptx.program import Instruction, Operand, Register, Vector, items_of
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter, item_bytes
from warplab.simulator.translate.operations.memory import space_of


def _move(w: BlockWriter, i: Instruction) -> None:
    kind = i.modifiers[-1]
    destination, source = i.operands
    if isinstance(destination, Vector) or isinstance(source, Vector):
        return _repack(w, destination, source, DTYPES[kind].replace("i", "u").replace("f", "u"))
    dtype = DTYPES[kind]
    if isinstance(source, Register):  # keep the bits and the dtype
        dtype = w.local(source.name).dtype
    w.define(destination, w.array(source, dtype), dtype, alias_of=source)


def _repack(w: BlockWriter, destination: Operand, source: Operand, dtype: str) -> None:
    """Write a mov between a wide register and a vector of narrow ones."""
    if isinstance(destination, Vector):
        n = len(destination.items)
        part = _part(dtype, n)
        parts = w.fresh()
        w.line(f"{parts} = np.ascontiguousarray({w.array(source, dtype)}).view({part}).reshape(-1, {n})")
        for k, item in enumerate(destination.items):
            w.define(item, f"{parts}[:, {k}].copy()", part)
    else:
        part = _part(dtype, len(items_of(source)))
        items = ", ".join(w.array(item, part) for item in items_of(source))
        w.define(destination, f"pack({dtype}, {items})", dtype)


def _part(dtype: str, count: int) -> str:
    """Return the dtype of one of `count` parts. Raises KeyError if there is none."""
    return {(1, 0): "u1", (2, 0): "u2", (4, 0): "u4", (8, 0): "u8"}[divmod(item_bytes(dtype), count)]


def _convert_address(w: BlockWriter, i: Instruction) -> None:
    """Write cvta: shared and local memory have windows in the generic space; global and const addresses are generic."""
    space = space_of(i)
    dtype = {"u32": "u4", "u64": "u8"}[i.modifiers[-1]]
    source = i.operands[1]
    if space == "param" and "to" not in i.modifiers:
        return w.define(i.operands[0], f"m.generic_of_param({w.array(source, dtype)})", dtype)
    if space in ("global", "const", "param"):
        return w.define(i.operands[0], w.array(source, dtype), dtype, alias_of=source)
    if space not in ("shared", "local") or dtype != "u8":  # their windows lie beyond 32 bits
        raise w.unsupported()
    sign = "-" if "to" in i.modifiers else "+"
    return w.define(i.operands[0], f"{w.array(source, dtype)} {sign} m.window_{space}", dtype)


TABLE = {"cvta": _convert_address, "mov": _move}
