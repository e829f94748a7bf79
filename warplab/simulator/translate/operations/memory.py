"""Loads, stores and fences; moves between registers, vectors of them, and address spaces."""

from warplab.simulator.ptx.program import Instruction, Operand, Register, Symbol, Vector, as_address, integer, items_of
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter, item_bytes
from warplab.simulator.translate.operations.arithmetic import allow

_SPACES = ("global", "shared", "local", "const", "param")
_WINDOWS = ("shared::cta", "shared::cluster", "param::entry", "param::func")  # the same, as clusters have one block
_IGNORED = {
    *("weak", "volatile", "relaxed", "acquire", "release", "cta", "gpu", "sys", "cluster", "mmio"),
    *("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "v2", "v4", "v8", *_SPACES, *_WINDOWS),
}

_SCOPES = {"cta": "cta", "cluster": "cluster", "gl": "gpu", "gpu": "gpu", "sys": "sys"}  # of a fence; .gl is membar's


def _memory(w: BlockWriter, i: Instruction) -> tuple[str, str, int]:
    """Return space, dtype and number of elements per lane of a load or store."""
    *modifiers, kind = i.modifiers
    allow(w, (m for m in modifiers if not m.startswith(("L1::", "L2::"))), _IGNORED)
    space = space_of(i) or "generic"
    count = next((int(m[1]) for m in modifiers if m in ("v2", "v4", "v8")), 1)
    return space, DTYPES[kind], count


def space_of(i: Instruction) -> str | None:
    """Return the memory space that an instruction names."""
    names = (m.partition("::")[0] for m in i.modifiers)
    return next((name for name in names if name in _SPACES), None)


def _load(w: BlockWriter, i: Instruction) -> None:
    space, dtype, count = _memory(w, i)
    destination, address = i.operands[0], as_address(i.operands[1])
    if space == "param":
        if not isinstance(address.base, Symbol):  # through a pointer to a parameter
            pointer, (base, offset) = w.fresh(), w.addresses(address)
            w.line(f"{pointer} = m.addresses(m.generic_of_param({base}.base), L)")
            return _load_from(w, i, "const", dtype, count, (pointer, offset))
        offset = w.translator.params[address.base.name].offset + address.offset
        end = max(param.offset + param.size for param in w.translator.params.values())
        if not 0 <= offset <= end - count * item_bytes(dtype):
            raise w.unsupported(f"the kernel's parameters have {end} bytes")
        for k, item in enumerate(items_of(destination, count)):
            w.define(item, f"m.param({offset + k * item_bytes(dtype)}, {dtype})", dtype)
        return
    return _load_from(w, i, space, dtype, count, w.addresses(address, space))


def _load_from(w: BlockWriter, i: Instruction, space: str, dtype: str, count: int, place: tuple[str, int]) -> None:
    destination, (base, offset) = i.operands[0], place
    if dtype == "V16":
        low, high = w.fresh(), w.fresh()
        w.line(f"{low}, {high} = m.load_vector({w.site('load', space, 'u8', 2, offset)}, {base}, L)")
        w.define(destination, f"pack(V16, {low}, {high})", dtype)
        return
    site = w.site("load", space, dtype, count, offset)
    if count == 1:
        w.define(destination, f"m.load({site}, {base}, L)", dtype)
        return
    w.define_each(items_of(destination, count), f"m.load_vector({site}, {base}, L)", dtype)


def _store(w: BlockWriter, i: Instruction) -> None:
    if i.modifiers[0] == "bulk":
        return _store_zeros(w, i)
    space, dtype, count = _memory(w, i)
    address, source = i.operands[:2]
    if space == "param":
        raise w.unsupported()
    base, offset = w.addresses(address, space)
    if dtype == "V16":
        site = w.site("store", space, "u8", 2, offset)
        w.line(f"m.store_vector({site}, {base}, low_and_high({w.array(source, dtype)}), L)")
        return
    site = w.site("store", space, dtype, count, offset)
    if count == 1:
        w.line(f"m.store({site}, {base}, {w.array(source, dtype)}, L)")
    else:
        items = ", ".join(w.array(item, dtype) for item in items_of(source, count))
        w.line(f"m.store_vector({site}, {base}, ({items}), L)")


def _store_zeros(w: BlockWriter, i: Instruction) -> None:
    """Write st.bulk (sm_100): zeros over many bytes of shared memory."""
    allow(w, i.modifiers[1:], {"weak", "shared", "shared::cta"})
    address, size, value = i.operands
    if integer(value):
        raise w.unsupported("zeros alone")
    base, offset = w.addresses(address, space_of(i) or "generic")
    site = w.site("store", space_of(i) or "generic", "u8", 1, offset)
    w.line(f"m.store_zeros({site}, {base}, {w.array(size, 'u8')}, L)")


def _fence(w: BlockWriter, i: Instruction) -> None:
    """Translate a fence: only observers care, as the lanes of a chunk see each other's stores at once."""
    if "proxy" in i.modifiers:
        kind = i.modifiers[1].partition("::")[0]
        w.line(f"m.proxy_fence(L, {kind!r})")
        return
    if "mbarrier_init" in i.modifiers:
        w.line("m.proxy_fence(L, 'mbarrier_init')")
    scope = next((_SCOPES[m] for m in i.modifiers if m in _SCOPES), "")
    w.line(f"m.fence(L, {scope!r})")


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


TABLE = {
    "ld": _load,
    "ldu": _load,
    "st": _store,
    **dict.fromkeys(("membar", "fence"), _fence),
    "cvta": _convert_address,
    "mov": _move,
}
