"""What calls and the system's services become; the calls themselves have been inlined by `..calls`."""

from __future__ import annotations

from ..program import Instruction
from ..writer import DTYPES, BlockWriter


def _nothing(w: BlockWriter, i: Instruction) -> None:
    """Instructions without an effect on what the simulator computes: hints, and a call and a return once inlined."""


def _argument(w: BlockWriter, i: Instruction) -> None:
    """Into and out of the registers that hold the parameters of a call."""
    dtype = DTYPES[i.modifiers[-1]]
    for destination, source in zip(i.operands[0].items, i.operands[1].items, strict=True):
        w.define(destination, w.array(source, dtype), dtype, alias_of=source)


def _printf(w: BlockWriter, i: Instruction) -> None:
    result, text, arguments = i.operands
    call = f"m.system.printf({w.array(text, 'u8')}, {w.array(arguments, 'u8')}, L, {i.where.file!r}, {i.where.line})"
    w.define(result, call, "u4")


def _assert_fail(w: BlockWriter, i: Instruction) -> None:
    expression, file, line, function, _ = i.operands
    values = [w.array(o, dtype) for o, dtype in ((expression, "u8"), (file, "u8"), (line, "u4"), (function, "u8"))]
    w.line(f"m.system.assert_fail({', '.join(values)}, L, ({i.where.file!r}, {i.where.line}))")


def _breakpoint(w: BlockWriter, i: Instruction) -> None:
    w.line(f"m.system.breakpoint(L, ({i.where.file!r}, {i.where.line}))")


def _sleep(w: BlockWriter, i: Instruction) -> None:
    w.line(f"m.system.sleep({w.array(i.operands[0], 'u4')})")


def _is_space(w: BlockWriter, i: Instruction) -> None:
    space, _, window = i.modifiers[0].partition("::")
    if space not in ("const", "global", "local", "shared", "param") or window == "cluster":
        raise w.unsupported()
    w.define(i.operands[0], f"m.system.is_space({space!r}, {w.array(i.operands[1], 'u8')})", "b1")


_HINTS = ("prefetch", "prefetchu", "discard", "applypriority", "griddepcontrol", "pmevent")

TABLE = {
    **dict.fromkeys(("inlined", *_HINTS), _nothing),
    "argument": _argument,
    "assertfail": _assert_fail,
    "brkpt": _breakpoint,
    "isspacep": _is_space,
    "nanosleep": _sleep,
    "vprintf": _printf,
}
