"""Warp-wide instructions, and wgmma: products of warpgroups. The scheduler has made the lanes of the mask, or the 128
threads of each warpgroup, converge; `warp_operations` and `warpgroups` compute."""

from warplab.simulator.ptx.fragments import BITS
from warplab.simulator.ptx.program import Instruction, Vector, integer, items_of
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter
from warplab.simulator.translate.operations.arithmetic import allow
from warplab.simulator.translate.warpgroup_instructions import WarpgroupProduct, register_fragment, warpgroup_product


def _two(w: BlockWriter, i: Instruction, call: str, dtype: str, inputs: int) -> None:
    """Write an instruction with the destinations `d|p`, of which `p` may be missing."""
    d, p = w.fresh(), w.fresh()
    w.line(f"{d}, {p} = {call}")
    w.define(i.operands[0], d, dtype)
    if len(i.operands) == inputs + 2:
        w.define(i.operands[1], p, "b1")


def _shuffle(w: BlockWriter, i: Instruction) -> None:
    mode = i.modifiers[-2]
    a, b, c = i.operands[-4:-1]
    mask, place = w.value(i.operands[-1], "u4"), (i.where.file, i.where.line)
    values = f"{w.array(a, 'u4')}, {w.value(b, 'u4')}, {w.value(c, 'u4')}, {mask}"
    call = f"m.warp.shuffle({mode!r}, {values}, L, {place!r})"
    if mode not in ("up", "down", "bfly", "idx"):
        raise w.unsupported()
    _two(w, i, call, "u4", 4)


def _vote(w: BlockWriter, i: Instruction) -> None:
    kind = next(m for m in i.modifiers if m != "sync")  # CUB writes vote.ballot.sync
    predicate, mask = w.array(i.operands[1], "b1"), w.value(i.operands[2], "u4")
    if kind == "ballot":
        w.define(i.operands[0], f"m.warp.ballot({predicate}, {mask}, L)", "u4")
    elif kind in ("any", "all", "uni"):
        w.define(i.operands[0], f"m.warp.vote({kind!r}, {predicate}, {mask}, L)", "b1")
    else:
        raise w.unsupported()


def _match(w: BlockWriter, i: Instruction) -> None:
    a, mask = w.array(i.operands[-2], DTYPES[i.modifiers[-1]]), w.value(i.operands[-1], "u4")
    if i.modifiers[0] == "any":
        w.define(i.operands[0], f"m.warp.match_any({a}, {mask}, L)", "u4")
    else:
        _two(w, i, f"m.warp.match_all({a}, {mask}, L)", "u4", 2)


def _redux(w: BlockWriter, i: Instruction) -> None:
    _, operation, *options, kind = i.modifiers
    dtype = DTYPES[kind]
    if operation not in ("add", "min", "max", "and", "or", "xor") or dtype not in ("u4", "i4", "f4"):
        raise w.unsupported()
    value = w.array(i.operands[1], dtype)
    if dtype == "f4":  # of sm_100
        operation = {"min": "fmin", "max": "fmax"}[operation] + "_nan" * ("NaN" in options)
        value = f"np.abs({value})" if "abs" in options else value
    allow(w, options, ("abs", "NaN") if dtype == "f4" else ())
    w.define(i.operands[0], f"m.warp.reduce({operation!r}, {value}, {w.value(i.operands[2], 'u4')}, L)", dtype)


_METHODS = {"fence": "fence", "commit_group": "commit"}
_TYPES = ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8", "f32", "s32")


def _wgmma(w: BlockWriter, i: Instruction) -> None:
    what, *rest = i.modifiers
    if tuple(rest[:2]) != ("sync", "aligned"):
        raise w.unsupported()
    if what == "mma_async":
        return _multiply(w, i)
    if len(rest) > 2:
        raise w.unsupported()
    this = w.object(i)
    if what == "wait_group":
        return w.line(f"m.warpgroups.wait({this}, {integer(i.operands[0])}, L)")
    return w.line(f"m.warpgroups.{_METHODS[what]}({this}, L)")


def _multiply(w: BlockWriter, i: Instruction) -> None:
    _, _, _, shape, *rest = i.modifiers
    kinds = [m for m in rest if m in _TYPES]
    allow(w, (m for m in rest if m not in _TYPES), {"satfinite"})
    d, a, b = kinds
    sums, left, _, _, *given = i.operands
    in_registers = isinstance(left, Vector)
    numbers = [integer(operand) for operand in given]
    negated = [_sign(number) for number in numbers[:2]] or [False, False]
    transposed = [bool(number) for number in numbers[2:]]
    # Which of the two are there depends on the type and on where A is.
    expected = 0 if a in ("s8", "u8") else 2 + (2 - in_registers if BITS[a] == 16 else 0)
    if len(numbers) != expected or not {0, 1}.issuperset(numbers[2:]):
        raise w.unsupported(f"it takes {expected} numbers after scale-d")
    transposed = [False] * (2 - len(transposed)) + transposed
    product = warpgroup_product(
        shape, (a, b, d), (transposed[0], transposed[1]), (negated[0], negated[1]), "satfinite" in rest,
        w.now.where, w.now.text,
    )  # fmt: skip
    _require_registers(w, len(items_of(sums)), product.registers, "D")
    if in_registers:
        _require_registers(w, len(items_of(left)), register_fragment(a).row.shape[1] * BITS[a] // 32, "A")
    _emit(w, product, i)


def _emit(w: BlockWriter, product: WarpgroupProduct, i: Instruction) -> None:
    sums, left, right, add, *_ = i.operands
    held = "".join(f"{w.array(item, 'u4')}, " for item in items_of(sums))
    if isinstance(left, Vector):
        first = "(" + "".join(f"{w.array(item, 'u4')}, " for item in items_of(left)) + ")"
        sites = "None"
    else:
        first, sites = w.array(left, "u8"), w.site("load", "shared", "u8", 2, 0)
    second = w.array(right, "u8")
    sites = f"({sites}, {w.site('load', 'shared', 'u8', 2, 0)})"
    names = [w.fresh() for _ in items_of(sums)]
    adds = w.array(add, "b1")
    call = f"m.warpgroups.product({w.object(product)}, ({held}), {sites}, {first}, {second}, {adds}, L)"
    w.line(f"{', '.join(names)}, = {call}")
    for item, name in zip(items_of(sums), names, strict=True):
        w.define(item, name, "u4")


def _sign(number: int) -> bool:
    """Tell whether a scale of 1 or -1 is the latter."""
    if number not in (1, -1):
        raise ValueError(number)
    return number == -1


def _require_registers(w: BlockWriter, found: int, wanted: int, operand: str) -> None:
    if found != wanted:
        raise w.unsupported(f"{found} registers for {operand}, which has {wanted}")


TABLE = {
    "activemask": lambda w, i: w.define(i.operands[0], "m.warp.active(L)", "u4"),
    "elect": lambda w, i: _two(w, i, f"m.warp.elect({w.value(i.operands[-1], 'u4')}, L)", "u4", 1),
    "match": _match,
    "redux": _redux,
    "shfl": _shuffle,
    "vote": _vote,
    "wgmma": _wgmma,
}
