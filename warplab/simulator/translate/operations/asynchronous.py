"""Asynchronous copies (cp.async, cp.async.bulk) and the barriers that wait for them (mbarrier)."""

from __future__ import annotations

from warplab.simulator.ptx.program import Address, Immediate, Instruction, Register
from warplab.simulator.translate.block_writer import BlockWriter
from warplab.simulator.translate.operations.arithmetic import allow

_SHARED = ("shared", "shared::cta", "shared::cluster")
_HINTS = ("L1::", "L2::")
_ORDER = ("relaxed", "acquire", "release", "cta", "cluster", "gpu", "sys")


def _copy(w: BlockWriter, i: Instruction) -> None:
    if i.modifiers[0] != "async":
        raise w.unsupported()
    what = i.modifiers[1]
    forms = {"commit_group": _commit, "wait_group": _wait, "wait_all": _wait, "mbarrier": _arrive_after_copies}
    forms["bulk"] = _bulk
    forms.get(what, _copy_async)(w, i)


def _copy_async(w: BlockWriter, i: Instruction) -> None:
    """cp.async.ca and .cg: 4, 8 or 16 bytes from global to shared memory."""
    _, cache, *modifiers = i.modifiers
    if cache not in ("ca", "cg"):
        raise w.unsupported()
    allow(w, (m for m in modifiers if not m.startswith(_HINTS)), {*_SHARED, "global"})
    target, source, nbytes, *rest = i.operands
    dtype, count = {4: ("u4", 1), 8: ("u8", 1), 16: ("u8", 2)}[nbytes.value]
    size = "None"
    hinted = any(m == "L2::cache_hint" for m in modifiers)
    if len(rest) > hinted:  # the size of the source, or a predicate that ignores it
        size = rest[0]
        if isinstance(size, Register) and w.translator.dtypes[size.name] == "b1":
            size = f"np.where({w.value(size, 'b1')}, u4.type(0), u4.type({nbytes.value}))"
        else:
            size = w.array(size, "u4")
    origin, offset = w.addresses(source)
    load = w.site("load", "global", dtype, count, offset)
    destination, offset = w.addresses(target)
    store = w.site("store", "shared", dtype, count, offset)
    writer = w.translator.sites[-1]
    writer.counter, writer.past_l1 = "copy", cache == "cg"
    w.line(f"m.copies.copy({load}, {store}, {origin}, {destination}, {size}, L)")


def _commit(w: BlockWriter, i: Instruction) -> None:
    w.line("m.copies.commit(L)")


def _wait(w: BlockWriter, i: Instruction) -> None:
    most = i.operands[0].value if i.modifiers[1] == "wait_group" else None
    w.line(f"m.copies.wait({most}, L)")


def _bulk(w: BlockWriter, i: Instruction) -> None:
    modifiers = i.modifiers[2:]
    if "tensor" in modifiers:
        raise w.unsupported("TMA tensor copies need a GPU of compute capability 9.0; compile and run the kernel on one")
    if modifiers[0] == "prefetch":
        return
    if modifiers[0] == "commit_group":
        return w.line("m.copies.commit_bulk(L)")
    if modifiers[0] == "wait_group":
        return w.line(f"m.copies.wait_bulk({i.operands[0].value}, {'read' in modifiers}, L)")
    to, come, *rest = modifiers
    if "multicast::cluster" in rest or "cp_mask" in rest:
        raise w.unsupported()
    allow(w, (m for m in rest if not m.startswith(_HINTS)), {"mbarrier::complete_tx::bytes", "bulk_group"})
    target, source, size, *more = i.operands
    spaces = ["shared" if space in _SHARED else space for space in (to, come)]
    if sorted(spaces) != ["global", "shared"]:
        raise w.unsupported("only between global and shared memory")
    origin, offset = w.addresses(source)
    load = w.site("load", spaces[1], "u8", 2, offset)
    destination, offset = w.addresses(target)
    store = w.site("store", spaces[0], "u8", 2, offset)
    mbarrier = "None"
    if spaces[0] == "shared":
        mbarrier = "({}, {})".format(*_mbarrier_site(w, more[0]))
    w.line(f"m.copies.bulk({load}, {store}, {origin}, {destination}, {w.array(size, 'u4')}, {mbarrier}, L)")


def _mbarrier_site(w: BlockWriter, address: Address, space: str = "shared", op: str = "atomic") -> tuple[str, str]:
    base, offset = w.addresses(address)
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
    state = w.array(state, "u4" if parity else "u8")
    w.define(result, f"m.mbarriers.test({site}, {base}, {state}, {parity}, L)", "b1")


_MBARRIER = {
    "init": (_initialise, ()),
    "inval": (_invalidate, ()),
    **dict.fromkeys(("arrive", "arrive_drop"), (_arrive, ("expect_tx", "noComplete"))),
    **dict.fromkeys(("expect_tx", "complete_tx"), (_expect, ())),
    **dict.fromkeys(("test_wait", "try_wait"), (_test, ("parity",))),
}
TABLE = {"cp": _copy, "mbarrier": _mbarrier}
