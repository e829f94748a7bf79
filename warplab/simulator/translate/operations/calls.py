"""Calls and services of the system. The calls themselves have been inlined by `ptx.inlining`."""

import re

from warplab.simulator.ptx.program import Immediate, Instruction, integer, items_of
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter
from warplab.simulator.translate.operations.memory import space_of


def _nothing(w: BlockWriter, i: Instruction) -> None:
    """Write nothing for what changes nothing that the simulator computes: hints, calls and returns once inlined."""


def _argument(w: BlockWriter, i: Instruction) -> None:
    """Translate moves into and out of the registers that hold the parameters of a call."""
    dtype = DTYPES[i.modifiers[-1]]
    for destination, source in zip(items_of(i.operands[0]), items_of(i.operands[1]), strict=True):
        w.define(destination, w.array(source, dtype), dtype, alias_of=source)


def _printf(w: BlockWriter, i: Instruction) -> None:
    result, text, arguments = i.operands
    call = f"m.system.printf({w.array(text, 'u8')}, {w.array(arguments, 'u8')}, L, {i.where.file!r}, {i.where.line})"
    w.define(result, call, "u4")


def _assert_fail(w: BlockWriter, i: Instruction) -> None:
    expression, file, line, function, _ = i.operands
    values = [w.array(o, dtype) for o, dtype in ((expression, "u8"), (file, "u8"), (line, "u4"), (function, "u8"))]
    w.line(f"m.system.assert_fail({', '.join(values)}, L, ({i.where.file!r}, {i.where.line}))")


def _is_space(w: BlockWriter, i: Instruction) -> None:
    space = space_of(i)
    if space is None:
        raise w.unsupported()
    cluster = "shared::cluster" in i.modifiers
    w.define(i.operands[0], f"m.system.is_space({space!r}, {w.array(i.operands[1], 'u8')}, {cluster}, L)", "b1")


def _invalid(w: BlockWriter, i: Instruction) -> None:
    """Emit where control arrives after a call or jump to nowhere."""
    w.line(f"m.system.invalid({i.modifiers[0]!r}, L, ({i.where.file!r}, {i.where.line}))")


def _enter(w: BlockWriter, i: Instruction) -> None:
    """Make room for a frame on the call stack, where a recursive function begins."""
    following, frame, size, room = i.operands
    sizes = f"{integer(size)}, {integer(room)}"
    call = f"m.system.enter({w.array(frame, 'u8')}, {sizes}, L, ({i.where.file!r}, {i.where.line}))"
    w.define(following, call, "u8")


def _allocate(w: BlockWriter, i: Instruction) -> None:
    size, *alignment = (w.array(o, "u8") for o in i.operands[1:])
    found = w.fresh()
    w.line(f"{found} = m.system.malloc({size}, {alignment[0] if alignment else None}, L, {i.where.line})")
    w.define(i.operands[0], found, "u8")


def _free(w: BlockWriter, i: Instruction) -> None:
    w.line(f"m.system.free({w.array(i.operands[0], 'u8')}, L, ({i.where.file!r}, {i.where.line}))")


def _registers(w: BlockWriter, i: Instruction) -> None:
    """Write nothing for setmaxnreg: a thread's number of registers changes nothing computed here."""
    (amount,) = i.operands
    if i.modifiers[0] not in ("inc", "dec") or i.modifiers[1:] != ("sync", "aligned", "u32"):
        raise w.unsupported()
    if not re.match(r"sm_\d+[af]\b", w.translator.entry.program.target):
        raise w.unsupported("it needs a target that ends in `a`: compile with -arch=sm_90a")
    if not isinstance(amount, Immediate) or not 24 <= amount.value <= 256 or amount.value % 8:
        raise w.unsupported("the number of registers must be a multiple of 8 from 24 to 256")


def _map_rank(w: BlockWriter, i: Instruction) -> None:
    """Write mapa: the address of a shared variable in another block of the cluster."""
    address, rank = i.operands[1:]
    dtype = DTYPES[i.modifiers[-1]]
    given = f"{w.array(address, dtype)}, {w.array(rank, 'u4')}, L, ({i.where.file!r}, {i.where.line})"
    found = w.fresh()
    w.line(f"{found} = m.system.map_rank({given})")
    w.define(i.operands[0], found, dtype)


def _rank(w: BlockWriter, i: Instruction) -> None:
    """Write getctarank: the rank in the cluster of the block that a shared address belongs to."""
    w.define(i.operands[0], f"m.system.rank_of({w.array(i.operands[1], DTYPES[i.modifiers[-1]])}).astype(u4)", "u4")


_HINTS = ("prefetch", "prefetchu", "discard", "applypriority", "griddepcontrol", "pmevent")

TABLE = {
    **dict.fromkeys(("inlined", *_HINTS), _nothing),
    "argument": _argument,
    "assertfail": _assert_fail,
    "brkpt": lambda w, i: w.line(f"m.system.breakpoint(L, ({i.where.file!r}, {i.where.line}))"),
    # How the caches treat an access changes nothing computed here.
    "createpolicy": lambda w, i: w.define(i.operands[0], w.constant(0, "u8"), "u8"),
    "enter": _enter,
    "free": _free,
    "getctarank": _rank,
    "gridhandle": lambda w, i: w.define(i.operands[0], w.constant(1, "u8"), "u8"),
    "invalid": _invalid,
    "isspacep": _is_space,
    "malloc": _allocate,
    "mapa": _map_rank,
    "nanosleep": lambda w, i: w.line(f"m.system.sleep({w.array(i.operands[0], 'u4')})"),
    "setmaxnreg": _registers,
    "vprintf": _printf,
}
