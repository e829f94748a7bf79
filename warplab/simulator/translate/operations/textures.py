"""Textures and surfaces: tex, tld4, txq; suld, sust, suq."""

from dataclasses import dataclass
from typing import Any

from warplab.simulator.ptx.program import Indexed, Instruction, Operand, Register, items_of
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter, Site

_GEOMETRIES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 2, "a2d": 3, "cube": 3, "acube": 4}  # and their coordinates
_RESULTS = ("u32", "s32", "f32", "f16")
_COMPONENTS = ("r", "g", "b", "a")
_LEVELS = {"base": 0, "level": 1, "grad": 2}  # operands that choose a level of detail
_CACHE = frozenset(("ca", "cg", "cs", "cv", "wb", "wt"))
_OUTSIDE = ("trap", "clamp", "zero")
_QUERIES = {
    "txq": ("width", "height", "depth", "array_size", "num_mipmap_levels", "num_samples", "normalized_coords"),
    "suq": ("width", "height", "depth", "array_size"),
}


def _site(w: BlockWriter, op: str, space: str, dtype: str, count: int, **more: Any) -> str:
    sites, now = w.translator.sites, w.now
    sites.append(TexelSite(len(sites), op, space, dtype, count, 0, now.where, now.text, **more))
    return f"S{len(sites) - 1}"


def _object(w: BlockWriter, operand: Operand) -> tuple[str, tuple[Operand, ...]]:
    """Return the handle and the coordinates of `[a, {x, y}]`."""
    if not isinstance(operand, Indexed) or not isinstance(operand.base.base, Register) or operand.base.offset:
        raise w.unsupported("a texture or surface that is not named by a handle (cudaTextureObject_t)")
    return w.array(operand.base.base, "u8"), operand.coordinates


def _bits(w: BlockWriter, operands: tuple[Operand, ...], dtype: str) -> str:
    return f"[{', '.join(w.array(operand, dtype) for operand in operands)}]"


def _coordinates(w: BlockWriter, operands: tuple[Operand, ...], geometry: str, dtype: str) -> str:
    """Return the coordinates, of which PTX pads some. A layer comes first, as an integer whose bits are of `dtype`."""
    operands = operands[: _GEOMETRIES[geometry]]
    if len(operands) != _GEOMETRIES[geometry]:
        raise w.unsupported()
    layered = geometry.startswith("a")
    first = [f"{w.array(operands[0], 'u4')}.view('{dtype}')"] if layered else []
    rest = [w.array(operand, dtype) for operand in operands[layered:]]
    return f"[{', '.join((*first, *rest))}]"


def _fetch(w: BlockWriter, i: Instruction) -> None:
    modifiers = list(i.modifiers)
    level = _LEVELS[modifiers.pop(0)] if modifiers[0] in _LEVELS else 0
    geometry, vector, result, coordinate = modifiers
    if vector != "v4" or result not in _RESULTS or coordinate not in ("s32", "f32"):
        raise w.unsupported()
    _serve(w, i, "fetch", geometry, result, DTYPES[coordinate], level)


def _gather(w: BlockWriter, i: Instruction) -> None:
    component, geometry, vector, result, coordinate = i.modifiers
    if vector != "v4" or geometry not in ("2d", "a2d") or result not in _RESULTS[:3] or coordinate != "f32":
        raise w.unsupported()
    _serve(w, i, "gather", geometry, result, "f4", 0, component=_COMPONENTS.index(component))


def _serve(
    w: BlockWriter, i: Instruction, method: str, geometry: str, result: str, coordinate: str, level: int, **more: Any
) -> None:
    destination, *rest = i.operands
    resident = rest.pop(0) if isinstance(rest[0], Register) else None
    where, *others = rest
    if len(others) != level:  # textures have one level here; an offset or a depth to compare with is refused
        raise w.unsupported("an offset or a depth")
    dtype, integer = DTYPES[result], coordinate == "i4"
    site = _site(w, "load", "texture", "u4", 4, geometry=geometry, result=dtype, integer=integer, **more)
    handle, operands = _object(w, where)
    call = f"m.textures.{method}({site}, {handle}, {_coordinates(w, operands, geometry, coordinate)}, L)"
    w.define_each(items_of(destination, 4), call, dtype)
    if resident is not None:
        w.define(resident, w.constant(True, "b1"), "b1")


def _surface(w: BlockWriter, i: Instruction) -> tuple[str, str, int, str]:
    """Return geometry, dtype, elements per lane and boundary mode of a surface access."""
    _, geometry, *modifiers, kind, outside = i.modifiers
    modifiers = [m for m in modifiers if m not in _CACHE]
    count = {"v2": 2, "v4": 4}[modifiers.pop()] if modifiers else 1
    if modifiers or geometry not in list(_GEOMETRIES)[:5] or outside not in _OUTSIDE:
        raise w.unsupported()
    return geometry, DTYPES[kind], count, outside


def _surface_load(w: BlockWriter, i: Instruction) -> None:
    if i.modifiers[0] != "b":
        raise w.unsupported()
    geometry, dtype, count, outside = _surface(w, i)
    destination, where = i.operands
    site = _site(w, "load", "global", dtype, count, geometry=geometry, integer=True, outside=outside)
    handle, operands = _object(w, where)
    call = f"m.surfaces.read({site}, {handle}, {_coordinates(w, operands, geometry, 'i4')}, L)"
    w.define_each(items_of(destination, count), call, dtype)


def _surface_store(w: BlockWriter, i: Instruction) -> None:
    formatted = {"b": False, "p": True}[i.modifiers[0]]
    geometry, dtype, count, outside = _surface(w, i)
    where, source = i.operands
    rules = {"geometry": geometry, "integer": True, "outside": outside, "formatted": formatted}
    # What sust.p stores is as wide as the texels of the surface that it is given.
    site = _site(w, "store", "global", "u1" if formatted else dtype, count, **rules)
    handle, operands = _object(w, where)
    values = _bits(w, items_of(source), dtype)
    w.line(f"m.surfaces.write({site}, {handle}, {_coordinates(w, operands, geometry, 'i4')}, {values}, L)")


def _query(w: BlockWriter, i: Instruction) -> None:
    modifiers = [m for m in i.modifiers if m != "level"]
    what, kind = modifiers
    if what not in _QUERIES[i.opcode] or kind != "b32":
        raise w.unsupported()
    handle = i.operands[1]
    base = getattr(handle, "base", None)
    if not isinstance(base, Register):
        raise w.unsupported("a texture or surface that is not named by a handle (cudaTextureObject_t)")
    site = _site(w, "load", "texture", "u4", 1)
    by = "textures" if i.opcode == "txq" else "surfaces"
    found = w.fresh()
    w.line(f"{found} = m.{by}.query({site}, {what!r}, {w.array(base, 'u8')}, L)")
    w.define(i.operands[0], found, "u4")


TABLE = {
    "tex": _fetch,
    "tld4": _gather,
    "txq": _query,
    "suld": _surface_load,
    "sust": _surface_store,
    "suq": _query,
}


@dataclass(eq=False)
class TexelSite(Site):
    """One instruction, as `run.textures` needs it. `geometry`: "1d", "2d", "3d", "a1d", "a2d" (layered), "cube" or
    "acube", "" for a query. `result`: dtype of a fetched value. `integer`: are the coordinates integers? `component`:
    the channel that is gathered.

    Of surfaces, `outside`: "trap", "clamp" or "zero", what becomes of coordinates outside; `formatted`: is it sust.p?
    """

    geometry: str = ""
    result: str = "f4"
    integer: bool = False
    component: int = 0
    outside: str = "trap"
    formatted: bool = False
