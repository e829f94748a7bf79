"""Warp-wide instructions. The scheduler has made the lanes of the mask converge; `warp_operations` computes."""

from warplab.simulator.ptx.program import Instruction
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter
from warplab.simulator.translate.operations.arithmetic import allow


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


TABLE = {
    "activemask": lambda w, i: w.define(i.operands[0], "m.warp.active(L)", "u4"),
    "elect": lambda w, i: _two(w, i, f"m.warp.elect({w.value(i.operands[-1], 'u4')}, L)", "u4", 1),
    "match": _match,
    "redux": _redux,
    "shfl": _shuffle,
    "vote": _vote,
}
