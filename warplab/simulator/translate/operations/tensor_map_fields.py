"""tensormap.replace: one field of a tensor map in memory, such as its address, is set (PTX ISA, "tensormap.replace").

`memory.tensor_maps` says where the fields lie. A kernel that gives a map its rank may have made it of zeros.
"""

from __future__ import annotations

from warplab.simulator.memory.tensor_maps import MAGIC, OFFSETS
from warplab.simulator.ptx.program import Instruction, integer
from warplab.simulator.translate.block_writer import BlockWriter
from warplab.simulator.translate.operations.memory import space_of

# Field → dtype here, and what is added to the value that the instruction gives.
_FIELDS = {
    "global_address": ("u8", 0),
    "rank": ("u1", 1),
    "box_dim": ("u2", 0),
    "global_dim": ("u4", -1),
    "global_stride": ("u8", 0),
    "element_stride": ("u1", 0),
    "elemtype": ("u1", 0),
    "interleave_layout": ("u1", 0),
    "swizzle_mode": ("u1", 0),
    "fill_mode": ("u1", 0),
}
_OF_AXES = ("box_dim", "global_dim", "global_stride", "element_stride")
_TYPES = {**{n: n for n in range(8)}, 9: 8, 10: 9}  # .elemtype → CUtensorMapDataType, but for those not modelled


def _replace(w: BlockWriter, i: Instruction) -> None:
    if i.modifiers[:2] != ("replace", "tile") or "b1024" not in i.modifiers:
        raise w.unsupported()
    field = i.modifiers[2]
    dtype, added = _FIELDS[field]
    address, *axis, value = i.operands
    base, offset = w.addresses(address)
    offset += OFFSETS[field] + (int(dtype[1]) * integer(axis[0]) if field in _OF_AXES else 0)
    given = f"{w.array(value, 'u8' if i.modifiers[-1] == 'b64' else 'u4')}"
    if field in ("elemtype", "interleave_layout", "swizzle_mode"):
        number = integer(value)
        if (field == "interleave_layout" and number) or (field == "swizzle_mode" and number > 3):
            raise w.unsupported()
        given = f"{w.array(value, 'u4')} * u4.type(0) + u4.type({_TYPES[number] if field == 'elemtype' else number})"
    if added:
        given = f"{given} {'+' if added > 0 else '-'} u4.type(1)"
    space = space_of(i) or "generic"
    if field == "rank":
        word = int.from_bytes(MAGIC, "little")
        start = w.site("store", space, "u8", 1, offset - OFFSETS["rank"])
        w.line(f"m.store({start}, {base}, u8.type({word}) + u8.type(0) * ({given}), L)")
    w.line(f"m.store({w.site('store', space, dtype, 1, offset)}, {base}, ({given}).astype({dtype}), L)")


TABLE = {"tensormap": _replace}
