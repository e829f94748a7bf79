"""Moves, selections and conversions between types and address spaces."""

from __future__ import annotations

from ..program import Instruction, Register, Vector
from ..translate import DTYPES, BlockWriter, item_bytes
from .arithmetic import allow, flushed


def _select(w: BlockWriter, i: Instruction) -> None:
    dtype = DTYPES[i.modifiers[-1]].replace("i", "u")
    a, b = w.array(i.operands[1], dtype), w.array(i.operands[2], dtype)
    w.define(i.operands[0], f"np.where({w.value(i.operands[3], 'b1')}, {a}, {b})", dtype)


def _move(w: BlockWriter, i: Instruction) -> None:
    kind = i.modifiers[-1]
    destination, source = i.operands
    if isinstance(destination, Vector) or isinstance(source, Vector):
        return _repack(w, destination, source, DTYPES[kind].replace("i", "u").replace("f", "u"))
    dtype = DTYPES[kind]
    if isinstance(source, Register):  # no change of dtype: keep the bits as they are
        dtype = w.local(source.name).dtype
    w.define(destination, w.array(source, dtype), dtype, alias_of=source)


def _repack(w: BlockWriter, destination, source, dtype: str) -> None:
    """mov between a wide register and a vector of narrow ones."""
    if isinstance(destination, Vector):
        n = len(destination.items)
        part = f"u{item_bytes(dtype) // n}"
        parts = w.fresh()
        w.line(f"{parts} = np.ascontiguousarray({w.array(source, dtype)}).view({part}).reshape(-1, {n})")
        for k, item in enumerate(destination.items):
            w.define(item, f"{parts}[:, {k}].copy()", part)
    else:
        part = f"u{item_bytes(dtype) // len(source.items)}"
        items = ", ".join(w.array(item, part) for item in source.items)
        w.define(destination, f"np.stack(np.broadcast_arrays({items}), axis=-1).reshape(-1).view({dtype})", dtype)


def _convert(w: BlockWriter, i: Instruction) -> None:
    *modifiers, to_kind, from_kind = i.modifiers
    to, have = DTYPES[to_kind], DTYPES[from_kind]
    allow(w, modifiers, {"rn", "rz", "rzi", "rni", "rmi", "rpi", "ftz", "sat"})
    value = flushed(w.array(i.operands[1], have), modifiers, have)
    integral = next((m for m in modifiers if m in ("rzi", "rni", "rmi", "rpi")), None)
    if to[0] != "f" and have[0] == "f":
        result = f"float_to_int({value}, {to}, {integral!r})"
    elif to[0] == "f" and have[0] == "f" and integral:
        function = {"rzi": "trunc", "rni": "rint", "rmi": "floor", "rpi": "ceil"}[integral]
        result = f"np.{function}({value}).astype({to}, copy=False)"
    elif "rz" in modifiers or ("sat" in modifiers and to[0] != "f"):
        raise w.unsupported()
    else:
        result = f"{value}.astype({to})"
    if "sat" in modifiers and to[0] == "f":
        result = f"saturate({result})"
    # A register wider than the destination type takes the sign- or zero-extended value; `define` does that.
    w.define(i.operands[0], flushed(result, modifiers, to), to)


def _convert_address(w: BlockWriter, i: Instruction) -> None:
    """cvta: shared and local windows lie at fixed distances in the generic space; global and const are generic."""
    space = next(m for m in i.modifiers if m in ("global", "shared", "local", "const", "param"))
    dtype = DTYPES[i.modifiers[-1]]
    source = i.operands[1]
    if space in ("global", "const", "param"):
        return w.define(i.operands[0], w.array(source, dtype), dtype, alias_of=source)
    sign = "-" if "to" in i.modifiers else "+"
    return w.define(i.operands[0], f"{w.array(source, dtype)} {sign} m.window_{space}", dtype)


TABLE = {"cvt": _convert, "cvta": _convert_address, "mov": _move, "selp": _select}
