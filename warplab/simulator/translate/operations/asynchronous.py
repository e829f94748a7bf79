"""Asynchronous copies (cp.async, cp.async.bulk) and the barriers that wait for them (mbarrier)."""

from warplab.simulator.ptx.program import Immediate, Indexed, Instruction, Operand, Register, integer, items_of
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter
from warplab.simulator.translate.operations import atomics, memory
from warplab.simulator.translate.operations.arithmetic import allow

_SHARED = ("shared", "shared::cta", "shared::cluster")
_BULK = ("mbarrier::complete_tx::bytes", "bulk_group", "multicast::cluster")
_TENSOR = ("tile", "im2col", "im2col_no_offs", "cta_group::1", "cta_group::2")
_REDUCTIONS = {  # operation → types in global memory
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64"),
    **dict.fromkeys(("min", "max"), ("u32", "s32", "u64", "s64", "f16", "bf16")),
    **dict.fromkeys(("and", "or", "xor"), ("b32", "b64")),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
}
_REDUCING = {*_REDUCTIONS, "noftz", *(kind for kinds in _REDUCTIONS.values() for kind in kinds)}
_HINTS = ("L1::", "L2::")
_ORDER = ("relaxed", "acquire", "release", "cta", "cluster", "gpu", "sys")


def _copy(w: BlockWriter, i: Instruction) -> None:
    if i.modifiers[:2] == ("reduce", "async"):
        return _bulk(w, i)
    if i.modifiers[0] != "async":
        raise w.unsupported()
    what = i.modifiers[1]
    forms = {"commit_group": _commit, "wait_group": _wait, "wait_all": _wait, "mbarrier": _arrive_after_copies}
    forms["bulk"] = _bulk
    return forms.get(what, _copy_async)(w, i)


def _copy_async(w: BlockWriter, i: Instruction) -> None:
    """Write cp.async.ca and .cg: 4, 8 or 16 bytes from global to shared memory."""
    _, cache, *modifiers = i.modifiers
    if cache not in ("ca", "cg"):
        raise w.unsupported()
    allow(w, (m for m in modifiers if not m.startswith(_HINTS)), {*_SHARED, "global"})
    target, source, nbytes, *rest = i.operands
    dtype, count = {4: ("u4", 1), 8: ("u8", 1), 16: ("u8", 2)}[integer(nbytes)]
    size = "None"
    hinted = any(m == "L2::cache_hint" for m in modifiers)
    if len(rest) > hinted:  # the size of the source, or a predicate that ignores it
        given = rest[0]
        if isinstance(given, Register) and w.translator.dtypes[given.name] == "b1":
            size = f"np.where({w.value(given, 'b1')}, u4.type(0), u4.type({integer(nbytes)}))"
        else:
            size = w.array(given, "u4")
    origin, offset = w.addresses(source)
    load = w.site("load", "global", dtype, count, offset)
    destination, offset = w.addresses(target, "shared")
    store = w.site("store", "shared", dtype, count, offset)
    writer = w.translator.sites[-1]
    writer.counter, writer.past_l1 = "copy", cache == "cg"
    w.line(f"m.copies.copy({load}, {store}, {origin}, {destination}, {size}, L)")


def _commit(w: BlockWriter, i: Instruction) -> None:
    w.line("m.copies.commit(L)")


def _wait(w: BlockWriter, i: Instruction) -> None:
    most = integer(i.operands[0]) if i.modifiers[1] == "wait_group" else None
    w.line(f"m.copies.wait({most}, L)")


def _bulk(w: BlockWriter, i: Instruction) -> None:
    operation, modifiers = "None", i.modifiers[2:]
    if i.modifiers[0] == "reduce":
        modifiers = i.modifiers[3:]
        operation = repr(_reduction(w, modifiers))
    if modifiers[0] == "prefetch":
        return None
    if modifiers[0] == "commit_group":
        return w.line("m.copies.commit_bulk(L)")
    if modifiers[0] == "wait_group":
        return w.line(f"m.copies.wait_bulk({integer(i.operands[0])}, {'read' in modifiers}, L)")
    tensor = modifiers[0] == "tensor"
    words = modifiers[2 if tensor else 0 :]
    to, come = (m for m in words if m in ("global", *_SHARED))  # CUTLASS writes .cta_group::2 before them
    rest = [m for m in words if m not in ("global", *_SHARED)]
    if "cp_mask" in rest:
        raise w.unsupported()
    allow(
        w,
        (m for m in rest if not m.startswith(_HINTS)),
        {*_BULK, *(_TENSOR if tensor else ()), *(_REDUCING if operation != "None" else ())},
    )
    spaces = ["shared" if space in _SHARED else space for space in (to, come)]
    if not {"global", "shared"}.issuperset(spaces):
        raise w.unsupported()
    if "global" not in spaces and (tensor or spaces != ["shared", "shared"] or "bulk_group" in rest):
        raise w.unsupported()
    if (spaces[0] == "global") != ("bulk_group" in rest):
        raise w.unsupported()
    return (_tensor if tensor else _linear)(w, i, spaces, rest, operation)


def _linear(w: BlockWriter, i: Instruction, spaces: list[str], rest: list[str], operation: str) -> None:
    """Write cp.async.bulk: bytes in a row."""
    target, source, size, *more = i.operands
    origin, offset = w.addresses(source, spaces[1])
    load = w.site("load", spaces[1], "u8", 2, offset)
    destination, offset = w.addresses(target, spaces[0])
    store = w.site("store" if operation == "None" else "atomic", spaces[0], "u8", 2, offset)
    mbarrier = mask = "None"
    if spaces[0] == "shared":
        mbarrier = "({}, {})".format(*_mbarrier_site(w, more[0]))
        mask = w.array(more[1], "u2") if "multicast::cluster" in rest else mask
    given = f"{load}, {store}, {origin}, {destination}, {w.array(size, 'u4')}, {mbarrier}, {mask}, {operation}"
    w.line(f"m.copies.bulk({given}, L)")


def _tensor(w: BlockWriter, i: Instruction, spaces: list[str], rest: list[str], operation: str) -> None:
    """Write cp.async.bulk.tensor: the box of a tensor map."""
    axes, im2col = i.modifiers[i.modifiers.index("tensor") + 1], not {"im2col", "im2col_no_offs"}.isdisjoint(rest)
    loads = spaces[0] == "shared"
    target, source, *more = i.operands
    place, box = (source, target) if loads else (target, source)
    if not isinstance(place, Indexed) or axes != f"{len(place.coordinates)}d":
        raise w.unsupported("as many coordinates as it has axes")
    at = "".join(f"{w.array(coordinate, 'i4')}, " for coordinate in place.coordinates)
    base, offset = w.addresses(place.base)
    maps = f"{base}.at({offset})"
    ours, offset = w.addresses(box, "shared")
    in_shared = w.site("store" if loads else "load", "shared", "u8", 2, offset)
    in_global = w.site("load" if loads else "store" if operation == "None" else "atomic", "global", "u8", 2, 0)
    if not loads:
        w.line(f"m.tensors.store({in_shared}, {in_global}, {maps}, ({at}), {ours}, {operation}, {im2col}, L)")
        return
    mbarrier = "({}, {})".format(*_mbarrier_site(w, more.pop(0)))
    further = "".join(f"{w.array(o, 'u2')}, " for o in items_of(more.pop(0))) if "im2col" in rest else ""
    mask = w.array(more[0], "u2") if "multicast::cluster" in rest else "None"
    pairs = "cta_group::2" in rest
    given = f"{in_global}, {in_shared}, {maps}, ({at}), ({further}), {ours}, {mbarrier}, {mask}, {im2col}, {pairs}"
    w.line(f"m.tensors.load({given}, L)")


def _store(w: BlockWriter, i: Instruction) -> None:
    """Write st.async and red.async: registers to the cluster's shared memory; an mbarrier there hears of the bytes."""
    *modifiers, kind = i.modifiers
    operation = next((m for m in modifiers if m in _REDUCTIONS), None)
    allowed = {"async", *_ORDER, *_SHARED, "mbarrier::complete_tx::bytes", "weak", "v2", "v4", operation}
    allow(w, modifiers, allowed)
    if (operation is None) == (i.opcode == "red") or "mbarrier::complete_tx::bytes" not in modifiers:
        raise w.unsupported()
    target, value, mbarrier = i.operands
    items, dtype = items_of(value), DTYPES[kind]
    base, offset = w.addresses(target, "shared")
    site = w.site("store" if operation is None else "atomic", "shared", dtype, len(items), offset)
    values = "".join(f"{w.array(item, dtype)}, " for item in items)
    barrier = "({}, {})".format(*_mbarrier_site(w, mbarrier))
    given = None if operation is None else (operation, kind)
    w.line(f"m.copies.store({site}, {base}, ({values}), {barrier}, {given!r}, L)")


def _launch_control(w: BlockWriter, i: Instruction) -> None:
    """Write clusterlaunchcontrol (sm_100): a block asks to do the work of one that has not begun, in its place.

    Here all blocks of a grid have begun, so none is ever cancelled, which the answer says: 16 bytes of zeros."""
    if i.modifiers[:2] == ("try_cancel", "async"):
        allow(w, i.modifiers[2:], {"b128", *_SHARED, "mbarrier::complete_tx::bytes", "multicast::cluster::all"})
        target, mbarrier = i.operands
        base, offset = w.addresses(target, "shared")
        site = w.site("store", "shared", "u8", 2, offset)
        barrier = "({}, {})".format(*_mbarrier_site(w, mbarrier))
        everywhere = "multicast::cluster::all" in i.modifiers
        for reaching in w.translator.sites[-2:]:
            reaching.cluster |= everywhere
        return w.line(f"m.copies.answer({site}, {base}, {barrier}, {everywhere}, L)")
    if i.modifiers[0] != "query_cancel" or i.modifiers[-1] != "b128":
        raise w.unsupported()
    answer = w.fresh()
    w.line(f"{answer} = low_and_high({w.array(i.operands[1], 'V16')})[0]")
    if i.modifiers[1] == "is_canceled":
        return w.define(i.operands[0], f"({answer} & u8.type(1)) != 0", "b1")
    if not i.modifiers[1].startswith("get_first_ctaid"):
        raise w.unsupported()
    for item in items_of(i.operands[0]):  # of a block that was not cancelled, PTX leaves them undefined
        w.define(item, f"({answer} & u8.type(0)).astype(u4)", "u4")
    return None


def _reduction(w: BlockWriter, modifiers: tuple[str, ...]) -> tuple[str, str]:
    """Return the operation of a cp.reduce, and the type of its elements, "" for that of the tensor map."""
    operation = next(m for m in modifiers if m in _REDUCTIONS)
    kind = "" if modifiers[0] == "tensor" else modifiers[-1]
    if kind and kind not in _REDUCTIONS[operation]:
        raise w.unsupported()
    return operation, kind


def _mbarrier_site(w: BlockWriter, address: Operand, space: str = "shared", op: str = "atomic") -> tuple[str, str]:
    base, offset = w.addresses(address, space)
    return w.site(op, space, "u8", 1, offset), base


def _space(i: Instruction) -> str:
    return "shared" if any(m in _SHARED for m in i.modifiers) else "generic"


def _arrive_after_copies(w: BlockWriter, i: Instruction) -> None:
    allow(w, i.modifiers, {"async", "mbarrier", "arrive", "noinc", "b64", *_SHARED})
    site, base = _mbarrier_site(w, i.operands[0], _space(i))
    w.line(f"m.mbarriers.arrive_after_copies({site}, {base}, {'noinc' in i.modifiers}, L)")


def _mbarrier(w: BlockWriter, i: Instruction) -> None:
    what = i.modifiers[0]
    if what == "pending_count":
        w.define(i.operands[0], f"m.mbarriers.pending_count({w.array(i.operands[1], 'u8')})", "u4")
        return
    emit, options = _MBARRIER[what]
    allow(w, i.modifiers[1:], {*options, *_ORDER, *_SHARED, "b64"})
    emit(w, i)


def _initialise(w: BlockWriter, i: Instruction) -> None:
    address, count = i.operands
    site, base = _mbarrier_site(w, address, _space(i), "store")
    w.line(f"m.mbarriers.initialise({site}, {base}, {w.array(count, 'u4')}, L)")


def _invalidate(w: BlockWriter, i: Instruction) -> None:
    site, base = _mbarrier_site(w, i.operands[0], _space(i))
    w.line(f"m.mbarriers.invalidate({site}, {base}, L)")


def _arrive(w: BlockWriter, i: Instruction) -> None:
    state, address, *rest = i.operands
    site, base = _mbarrier_site(w, address, _space(i))
    amount = w.array(rest[0] if rest else Immediate(1), "u4")
    one = w.array(Immediate(1), "u4")
    count, expected = (one, amount) if "expect_tx" in i.modifiers else (amount, "None")
    name, drop = w.fresh(), i.modifiers[0] == "arrive_drop"
    w.line(f"{name} = m.mbarriers.arrive({site}, {base}, {count}, {expected}, {drop}, L)")
    w.define(state, name, "u8")


def _expect(w: BlockWriter, i: Instruction) -> None:
    address, amount = i.operands
    site, base = _mbarrier_site(w, address, _space(i))
    sign = 1 if i.modifiers[0] == "expect_tx" else -1
    w.line(f"m.mbarriers.expect({site}, {base}, {w.array(amount, 'u4')}, {sign}, L)")


def _test(w: BlockWriter, i: Instruction) -> None:
    result, address, state = i.operands[:3]  # try_wait may name a time limit
    parity = "parity" in i.modifiers
    site, base = _mbarrier_site(w, address, _space(i))
    phase = w.array(state, "u4" if parity else "u8")
    w.define(result, f"m.mbarriers.test({site}, {base}, {phase}, {parity}, L)", "b1")


_MBARRIER = {
    "init": (_initialise, ()),
    "inval": (_invalidate, ()),
    **dict.fromkeys(("arrive", "arrive_drop"), (_arrive, ("expect_tx", "noComplete"))),
    **dict.fromkeys(("expect_tx", "complete_tx"), (_expect, ())),
    **dict.fromkeys(("test_wait", "try_wait"), (_test, ("parity",))),
}
TABLE = {
    "clusterlaunchcontrol": _launch_control,
    "cp": _copy,
    "mbarrier": _mbarrier,
    "red": lambda w, i: (_store if "async" in i.modifiers else atomics.TABLE["red"])(w, i),
    "st": lambda w, i: (_store if "async" in i.modifiers else memory.TABLE["st"])(w, i),
}
