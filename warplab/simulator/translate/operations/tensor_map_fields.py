"""Tensor maps that a kernel makes: tensormap.replace sets one field of a map in memory, such as its address,
tensormap.cp_fenceproxy copies a map from shared to global memory, where TMA then sees it (PTX ISA).

`memory.tensor_maps` says where the fields lie. A kernel that gives a map its rank may have made it of zeros.
"""

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.memory.tensor_maps import MAGIC, MAP_BYTES, OFFSETS
from warplab.simulator.ptx.program import Instruction, Register, integer
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


def _copy(w: BlockWriter, i: Instruction) -> None:
    """Copy a map by a whole warp: each lane one word."""
    *operands, size = i.operands
    spaces = ["global", "shared::cta"]
    if list(i.modifiers[1:3]) != spaces or i.modifiers[-2:] != ("sync", "aligned") or integer(size) != MAP_BYTES:
        raise w.unsupported()
    word = w.fresh()
    w.line(f"{word} = {w.array(Register('%laneid'), 'u4')}.astype(u8) * u8.type({MAP_BYTES // WARP_SIZE})")
    places = []
    for operand, op, space in zip(operands, ("store", "load"), ("global", "shared"), strict=True):
        base, offset = w.addresses(operand, space)
        places.append(w.fresh())
        w.line(f"{places[-1]} = m.addresses({base}.base + {word}, L)")
        places.append(w.site(op, space, "u4", 1, offset))
    to, store, source, load = places
    w.line(f"m.store({store}, {to}, m.load({load}, {source}, L), L)")
    w.line("m.fence(L, 'gpu')")
    w.line("m.proxy_fence(L, 'tensormap')")


def _replace(w: BlockWriter, i: Instruction) -> None:
    if i.modifiers[:2] != ("replace", "tile") or "b1024" not in i.modifiers:
        raise w.unsupported()
    field = i.modifiers[2]
    dtype, added = _FIELDS[field]
    address, *axis, value = i.operands
    space = space_of(i) or "generic"
    base, offset = w.addresses(address, space)
    offset += OFFSETS[field] + (int(dtype[1]) * integer(axis[0]) if field in _OF_AXES else 0)
    given = f"{w.array(value, 'u8' if i.modifiers[-1] == 'b64' else 'u4')}"
    if field in ("elemtype", "interleave_layout", "swizzle_mode"):
        number = integer(value)
        if (field == "interleave_layout" and number) or (field == "swizzle_mode" and number > 3):
            raise w.unsupported()
        given = f"{w.array(value, 'u4')} * u4.type(0) + u4.type({_TYPES[number] if field == 'elemtype' else number})"
    if added:
        given = f"{given} {'+' if added > 0 else '-'} u4.type(1)"
    if field in ("rank", "global_address"):  # a map made of zeros becomes one; fields that stay zero are not given
        word = int.from_bytes(MAGIC, "little")
        start = w.site("store", space, "u8", 1, offset - OFFSETS[field])
        w.line(f"m.store({start}, {base}, u8.type({word}) + u8.type(0) * ({given}), L)")
    w.line(f"m.store({w.site('store', space, dtype, 1, offset)}, {base}, ({given}).astype({dtype}), L)")


TABLE = {"tensormap": lambda w, i: (_copy if i.modifiers[0] == "cp_fenceproxy" else _replace)(w, i)}
