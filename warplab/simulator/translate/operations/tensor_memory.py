"""tcgen05: tensor memory, and products, copies and shifts that one thread issues."""

from collections.abc import Callable

from warplab.simulator.ptx.program import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Vector,
    integer,
    items_of,
)
from warplab.simulator.translate.block_writer import BlockWriter
from warplab.simulator.translate.operations.arithmetic import allow
from warplab.simulator.translate.tensor_memory_instructions import (
    KINDS,
    MOST_SCALE,
    TensorProduct,
    copy_shape,
    transfer,
)

_SHARED = frozenset(("shared::cta", "shared::cluster"))
_GROUPS = {"cta_group::1": 1, "cta_group::2": 2}
_SCALES = {
    **{("mxf8f6f4", q): 1 for q in ("", "scale_vec::1X", "block32")},
    **{(kind, q): 2 for kind in ("mxf4", "mxf4nvf4") for q in ("", "scale_vec::2X", "block32")},
    **{("mxf4nvf4", q): 4 for q in ("scale_vec::4X", "block16")},
}
_NOT_YET = {
    "sp": "products of sparse factors (.sp) are not simulated",
    "ashift": "shifted factors (.ashift) are not simulated",
    "red": "loads that reduce (.red), of sm_103a, are not simulated",
}


def _tcgen05(w: BlockWriter, i: Instruction) -> None:
    what = i.modifiers[0]
    for modifier, why in _NOT_YET.items():
        if modifier in i.modifiers:
            raise w.unsupported(why)
    _check_group(w)
    if "aligned" in i.modifiers and "sync" not in i.modifiers:
        raise w.unsupported()
    _EMIT[what](w, i)


def _check_group(w: BlockWriter) -> None:
    """Refuse a kernel that mixes .cta_group::1 and ::2."""
    used = {m for i in w.translator.entry.instructions if i.opcode == "tcgen05" for m in _GROUPS if m in i.modifiers}
    if len(used) > 1:
        raise w.unsupported("all tcgen05 instructions of a kernel must have the same .cta_group", "Choose one of them.")


def _group(i: Instruction) -> int:
    return next(_GROUPS[m] for m in i.modifiers if m in _GROUPS)


def _address(w: BlockWriter, operand: Operand) -> str:
    """Return an address of tensor memory, uint32: an operand in brackets, or a register that holds one."""
    base, offset = (operand.base, operand.offset) if isinstance(operand, Address) else (operand, 0)
    name = w.array(Immediate(0) if base is None else base, "u4")
    return f"({name} + u4.type({offset & 0xFFFFFFFF}))" if offset else name


def _allocate(w: BlockWriter, i: Instruction) -> None:
    allow(w, i.modifiers[1:], {*_GROUPS, "sync", "aligned", "b32", *_SHARED})
    where, columns = i.operands
    space = "shared" if not _SHARED.isdisjoint(i.modifiers) else "generic"
    base, offset = w.addresses(where, space)
    site = w.site("store", space, "u4", 1, offset)
    w.line(f"m.tensor_memory.allocate({site}, {base}, {w.array(columns, 'u4')}, L)")


def _free(w: BlockWriter, i: Instruction) -> None:
    allow(w, i.modifiers[1:], {*_GROUPS, "sync", "aligned", "b32"})
    address, columns = i.operands
    w.line(f"m.tensor_memory.free({w.object(i)}, {_address(w, address)}, {w.array(columns, 'u4')}, L)")


def _relinquish(w: BlockWriter, i: Instruction) -> None:
    allow(w, i.modifiers[1:], {*_GROUPS, "sync", "aligned"})
    w.line(f"m.tensor_memory.relinquish({w.object(i)}, L)")


def _wait(w: BlockWriter, i: Instruction) -> None:
    allow(w, i.modifiers[1:], {"sync", "aligned"})
    w.line(f"m.tensor_memory.wait({w.object(i)}, {i.modifiers[0] == 'wait::st'}, L)")


def _fence(w: BlockWriter, i: Instruction) -> None:
    allow(w, i.modifiers[1:], ())


def _transfer(w: BlockWriter, i: Instruction) -> None:
    """Write tcgen05.ld and st."""
    loads = i.modifiers[0] == "ld"
    _, _, _, shape, number, *rest = i.modifiers
    packs = "pack::16b" if loads else "unpack::16b"
    allow(w, rest, {packs, "b32"})
    registers, address, *half = i.operands if loads else (i.operands[1], i.operands[0], *i.operands[2:])
    if not loads and shape == "16x32bx2":  # [taddr], immediate, registers
        half, registers = [i.operands[1]], i.operands[2]
    if len(half) != (shape == "16x32bx2"):
        raise w.unsupported()
    moved = transfer(shape, int(number.removeprefix("x")), integer(half[0]) if half else 0, packs in rest)
    items = items_of(registers)
    if len(items) != moved.column.shape[1]:
        raise w.unsupported(f"{len(items)} registers, where it moves {moved.column.shape[1]}")
    given = f"{w.object(i)}, {w.object(moved)}, {_address(w, address)}"
    if not loads:
        values = "".join(f"{w.array(item, 'u4')}, " for item in items)
        return w.line(f"m.tensor_memory.store({given}, ({values}), L)")
    return w.define_each(items, f"m.tensor_memory.load({given}, L)", "u4")


def _source(w: BlockWriter, i: Instruction) -> str:
    """Return the site of an operand in shared memory, for a pair also that of the other block."""
    name = w.site("load", "shared", "u8", 2, 0)
    w.translator.sites[-1].cluster = _group(i) == 2
    return name


def _multiply(w: BlockWriter, i: Instruction) -> None:
    kind = next(m.removeprefix("kind::") for m in i.modifiers if m.startswith("kind::"))
    scaled, known = bool(KINDS[kind].scales), {q for k, q in _SCALES if k == kind and q}
    stationary, uses = "ws" in i.modifiers, ("fill", "use", "lastuse", "discard")
    collector = {f"collector::{x}::{use}" for x in ("b0", "b1", "b2", "b3")[: 4 * stationary] or "a" for use in uses}
    more = ("block_scale", *known) if scaled else ()
    allow(w, i.modifiers[1:], {*_GROUPS, f"kind::{kind}", *collector, *more, *(("ws",) if stationary else ())})
    if scaled != ("block_scale" in i.modifiers):
        raise w.unsupported(".block_scale belongs to the kinds that begin with mx")
    quantity = next((m for m in i.modifiers if m in known), "")
    scales = _SCALES[kind, quantity] if scaled else 0
    group = _group(i)
    d, a, b, descriptor, *rest = i.operands
    if stationary and (scaled or group == 2):
        raise w.unsupported(".ws is of one block, without block scales")
    if stationary and len(rest) > 1:
        raise w.unsupported("the mask of columns that are zero (zero-column-mask-desc) is not simulated")
    factors = [_address(w, rest.pop(0)) for _ in range(2)] if scaled else []
    disabled = [w.array(item, "u4") for item in items_of(rest.pop(0))] if isinstance(rest[0], Vector) else []
    add, *shift = rest
    if len(disabled) not in (0, 4 * group) or (shift and (kind not in ("f16", "tf32") or len(shift) > 1)):
        raise w.unsupported()
    power = integer(shift[0]) if shift else 0
    if not 0 <= power <= MOST_SCALE:
        raise w.unsupported(f"scale-input-d is 0 to {MOST_SCALE}")
    product = TensorProduct(kind, group, scales, power, stationary, i.where, i.text)
    sites = [_source(w, i) for _ in range(2)]
    left = _address(w, a) if isinstance(a, Address) else w.array(a, "u8")
    listed = (f"({''.join(f'{x}, ' for x in every)})" for every in (factors, disabled))
    given = f"{w.object(product)}, ({', '.join(sites)}), {_address(w, d)}, {left}, {w.array(b, 'u8')}"
    adds = w.array(add, "b1")
    w.line(f"m.tensor_memory.product({given}, {w.array(descriptor, 'u4')}, {', '.join(listed)}, {adds}, L)")


def _copy(w: BlockWriter, i: Instruction) -> None:
    _, *rest = i.modifiers
    shape = next(m for m in rest if m[0].isdigit())
    spread = next((m for m in rest if m.startswith("warpx")), "")
    if any(m.startswith("b8x16") for m in rest):
        raise w.unsupported("copies that widen elements (.b8x16) are not simulated")
    allow(w, rest, {*_GROUPS, shape, spread})
    moved = copy_shape(shape, spread)
    address, source = i.operands
    given = f"{_source(w, i)}, {w.object(moved)}, {_group(i)}, {_address(w, address)}, {w.array(source, 'u8')}"
    w.line(f"m.tensor_memory.copy({given}, L)")


def _shift(w: BlockWriter, i: Instruction) -> None:
    allow(w, i.modifiers[1:], {*_GROUPS, "down"})
    w.line(f"m.tensor_memory.shift({w.object(i)}, {_group(i)}, {_address(w, i.operands[0])}, L)")


def _commit(w: BlockWriter, i: Instruction) -> None:
    allow(w, i.modifiers[1:], {*_GROUPS, *_SHARED, "mbarrier::arrive::one", "multicast::cluster", "b64"})
    where, *mask = i.operands
    if len(mask) != ("multicast::cluster" in i.modifiers) or "mbarrier::arrive::one" not in i.modifiers:
        raise w.unsupported()
    # The machine code takes 32 bits of a generic address, too (ptxas 13.0), so ThunderKittens gives a shared one.
    base, offset = w.addresses(where, "shared")
    site = w.site("atomic", "shared", "u8", 1, offset)
    w.line(f"m.tensor_memory.commit({site}, {base}, {w.array(mask[0], 'u2') if mask else 'None'}, L)")


_EMIT: dict[str, Callable[[BlockWriter, Instruction], None]] = {
    "alloc": _allocate,
    "dealloc": _free,
    "relinquish_alloc_permit": _relinquish,
    "ld": _transfer,
    "st": _transfer,
    "wait::ld": _wait,
    "wait::st": _wait,
    "fence::before_thread_sync": _fence,
    "fence::after_thread_sync": _fence,
    "mma": _multiply,
    "cp": _copy,
    "shift": _shift,
    "commit": _commit,
}
TABLE = {"tcgen05": _tcgen05}
