"""Tensor cores: mma, wmma, ldmatrix, stmatrix, movmatrix. The scheduler has made the 32 lanes of a warp converge."""

from warplab.simulator.ptx.fragments import BITS, Fragment, wmma_fragment
from warplab.simulator.ptx.program import Immediate, Instruction, Operand, items_of
from warplab.simulator.translate import matrix_instructions
from warplab.simulator.translate.block_writer import BlockWriter
from warplab.simulator.translate.operations.arithmetic import allow

_LAYOUTS = ("row", "col")
_SPARSE = ("sp", "sp::ordered_metadata")
_SPACES = {"global": "global", "shared": "shared", "shared::cta": "shared"}


def _space(i: Instruction) -> str:
    return next((_SPACES[m] for m in i.modifiers if m in _SPACES), "generic")


def _registers(w: BlockWriter, operand: Operand, dtype: str) -> str:
    return "(" + "".join(f"{w.array(item, dtype)}, " for item in items_of(operand)) + ")"


def _dtype(kind: str) -> str:
    return "u8" if kind == "f64" else "u4"


def _check_held(w: BlockWriter, operand: Operand, fragment: Fragment, kind: str) -> None:
    """Refuse an operand that has not as many registers as a lane holds of a fragment."""
    held, elements = len(items_of(operand)), fragment.row.shape[1]
    if held != max(1, elements * BITS[kind] // (8 * int(_dtype(kind)[1]))):
        raise w.unsupported(f"{held} registers for a fragment of {elements} elements of .{kind}")


def _product(w: BlockWriter, i: Instruction, product: matrix_instructions.Product) -> None:
    a, b, c, d = product.kinds
    for operand, kind, fragment in zip(
        i.operands, (d, a, b, c), (product.fragments[k] for k in (3, 0, 1, 2)), strict=False
    ):
        _check_held(w, operand, fragment, kind)
    groups = [_registers(w, o, _dtype(kind)) for o, kind in zip(i.operands[1:4], (a, b, c), strict=True)]
    metadata = "" if product.metadata is None else f", {w.array(i.operands[4], 'u4')}"
    call = f"m.matrix.product({w.object(product)}, {', '.join(groups)}, L{metadata})"
    w.define_each(items_of(i.operands[0]), call, _dtype(d))


def _mma(w: BlockWriter, i: Instruction) -> None:
    sparse = i.modifiers[0] in _SPARSE
    sync, aligned, shape, layout_a, layout_b, *rest = i.modifiers[sparse:]
    if (sync, aligned) != ("sync", "aligned"):
        raise w.unsupported()
    if rest[-1] == "popc":
        *rest, operation, _ = rest
        if sparse or (layout_a, layout_b) != ("row", "col") or rest != ["s32", "b1", "b1", "s32"]:
            raise w.unsupported()
        return _product(w, i, matrix_instructions.single_bit_mma(shape, operation, w.now.where, w.now.text))
    *options, d, a, b, c = rest
    allow(w, options, {"satfinite", *(("rn",) if d == "f64" else ())})
    allow(w, (d, c), {"f16", "f32", "f64", "s32"})
    if a != b and (not BITS[a] == BITS[b] <= 8 or (a[0] == "e") != (b[0] == "e")):  # e4m3 and e5m2 mix, s8 and u8 too
        raise w.unsupported()
    kinds, saturate = (a, b, c, d), "satfinite" in options
    if sparse:
        selector = i.operands[5]
        if not isinstance(selector, Immediate) or (layout_a, layout_b) != ("row", "col"):
            raise w.unsupported()
        product = matrix_instructions.sparse_mma(shape, kinds, saturate, int(selector.value), w.now.where, w.now.text)
    else:
        product = matrix_instructions.mma(shape, (layout_a, layout_b), kinds, saturate, w.now.where, w.now.text)
    _product(w, i, product)


def _wmma_mma(w: BlockWriter, i: Instruction) -> None:
    operation = i.modifiers[1] if i.modifiers[2] == "popc" else ""
    _, _, _, layout_a, layout_b, shape, *kinds = i.modifiers[2 * bool(operation) :]
    options = [kind for kind in kinds if kind not in BITS]
    kinds = [kind for kind in kinds if kind in BITS]
    allow(w, options, {"satfinite", "rn"})
    if layout_a not in _LAYOUTS or layout_b not in _LAYOUTS:
        raise w.unsupported()
    # With f16 factors only the types of D and C are written.
    d, a, b, c = kinds if len(kinds) == 4 else (kinds[0], "f16", "f16", kinds[1])
    if BITS[a] < 8 and (layout_a, layout_b) != ("row", "col"):
        raise w.unsupported()
    if operation:
        return _product(w, i, matrix_instructions.single_bit_mma(shape, operation, w.now.where, w.now.text))
    _product(w, i, matrix_instructions.wmma(shape, (a, b, c, d), "satfinite" in options, w.now.where, w.now.text))


def _transfer(w: BlockWriter, i: Instruction, registers: Operand, address: Operand, stride) -> tuple[str, str]:
    """Return the `Transfer` of a wmma.load or wmma.store, and the arguments that both take."""
    operation, operand, _, _, layout, shape, *_, kind = i.modifiers
    if layout not in _LAYOUTS:
        raise w.unsupported()
    space, by_column = _space(i), layout == "col"
    packed = 1
    if BITS[kind] < 8:  # lanes hold whole words of A's rows and B's columns
        if by_column != (operand == "b"):
            raise w.unsupported()
        packed, kind = 32 // BITS[kind], "b32"
        shape = "m8n8k4"
    fragment = wmma_fragment(shape, operand, kind)
    _check_held(w, registers, fragment, kind)
    nbytes, by_tiles, accesses = matrix_instructions.wmma_accesses(fragment, operand, kind, by_column, space)
    base, offset = w.addresses(address, space)
    dtype, count = f"u{min(nbytes, 8)}", max(1, nbytes // 8)
    w.site("load" if operation == "load" else "store", space, dtype, count, offset)
    transfer = matrix_instructions.Transfer(
        w.translator.sites[-1], fragment, by_column, BITS[kind] // 8, by_tiles, accesses, packed
    )
    if stride is None:
        stride = Immediate(packed * (fragment.rows if by_column else fragment.columns))
    return w.object(transfer), f"{base}.base, {w.array(stride, 'u4')}"


def _wmma_load(w: BlockWriter, i: Instruction) -> None:
    destination, address, *stride = i.operands
    transfer, arguments = _transfer(w, i, destination, address, stride[0] if stride else None)
    w.define_each(items_of(destination), f"m.matrix.load({transfer}, {arguments}, L)", _dtype(i.modifiers[-1]))


def _wmma_store(w: BlockWriter, i: Instruction) -> None:
    address, source, *stride = i.operands
    transfer, arguments = _transfer(w, i, source, address, stride[0] if stride else None)
    registers = _registers(w, source, _dtype(i.modifiers[-1]))
    w.line(f"m.matrix.store({transfer}, {arguments}, {registers}, L)")


def _rows(w: BlockWriter, i: Instruction, op: str, registers: Operand, address: Operand) -> tuple[str, str, int, bool]:
    """Return site, base addresses, number of matrices and transposition of an ldmatrix or stmatrix."""
    allow(w, i.modifiers, {"sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "b16", *_SPACES})
    count = next(int(m[1]) for m in i.modifiers if m in ("x1", "x2", "x4"))
    if len(items_of(registers)) != count:
        raise w.unsupported(f"{len(items_of(registers))} registers for {count} matrices")
    # Without a space the address is generic but lies in shared memory.
    space = "shared" if _space(i) == "shared" else "generic"
    base, offset = w.addresses(address, space)
    site = w.site(op, space, "u4", 4, offset)
    return site, f"{base}.base", count, "trans" in i.modifiers


def _ldmatrix(w: BlockWriter, i: Instruction) -> None:
    destination, address = i.operands
    site, base, count, transposed = _rows(w, i, "load", destination, address)
    w.define_each(items_of(destination), f"m.matrix.load_rows({site}, {base}, {count}, {transposed}, L)", "u4")


def _stmatrix(w: BlockWriter, i: Instruction) -> None:
    address, source = i.operands
    site, base, _, transposed = _rows(w, i, "store", source, address)
    w.line(f"m.matrix.store_rows({site}, {base}, {_registers(w, source, 'u4')}, {transposed}, L)")


def _movmatrix(w: BlockWriter, i: Instruction) -> None:
    if i.modifiers != ("sync", "aligned", "m8n8", "trans", "b16"):
        raise w.unsupported()
    w.define(i.operands[0], f"m.matrix.transposed({w.object(i)}, {w.array(i.operands[1], 'u4')}, L)", "u4")


TABLE = {
    "ldmatrix": _ldmatrix,
    "mma": _mma,
    "movmatrix": _movmatrix,
    "stmatrix": _stmatrix,
    "wmma": lambda w, i: {"load": _wmma_load, "store": _wmma_store, "mma": _wmma_mma}[i.modifiers[0]](w, i),
}
