"""Carry chains: add.cc, addc, sub.cc, subc, mad.cc, madc. The carry flag is a register of its own, `%cc`.

`basic_blocks` knows which instructions read and write it.
"""

from collections.abc import Callable

from warplab.simulator.ptx.program import Instruction, Register
from warplab.simulator.translate.basic_blocks import CARRY
from warplab.simulator.translate.block_writer import DTYPES, BlockWriter
from warplab.simulator.translate.operations import half
from warplab.simulator.translate.operations.arithmetic import allow

_FLAG = Register(CARRY)


def _chain(w: BlockWriter, i: Instruction) -> None:
    kind = i.modifiers[-1]
    # Of 16 bits ptxas takes the end of a chain, too, though the PTX ISA does not name it.
    ends = i.opcode in ("addc", "subc") and "cc" not in i.modifiers
    allow(w, (kind,), ("u32", "s32", "u64", "s64", *(("u16", "s16") if ends else ())))
    dtype = DTYPES[kind].replace("i", "u")
    carry_in = f"{w.value(_FLAG, 'b1')}" if i.opcode in ("addc", "subc", "madc") else None
    *inputs, addend = i.operands[1:]
    a = _product(w, i, inputs, kind, dtype) if i.opcode in ("mad", "madc") else w.array(inputs[0], dtype)
    b = w.array(addend, dtype)
    total, flag = w.fresh(), w.fresh()
    function = "borrow" if i.opcode in ("sub", "subc") else "carry"
    w.line(f"{total}, {flag} = {function}({a}, {b}, {carry_in})")
    if "cc" in i.modifiers:
        w.define(_FLAG, flag, "b1")
    w.define(i.operands[0], total, dtype)


def _product(w: BlockWriter, i: Instruction, inputs, kind: str, dtype: str) -> str:
    signed = DTYPES[kind]
    if "hi" in i.modifiers:
        a, b = (w.array(o, signed) for o in inputs)
        return f"mul_hi({a}, {b}).view({dtype})"
    if "lo" not in i.modifiers:
        raise w.unsupported()
    a, b = (w.array(o, dtype) for o in inputs)
    return f"({a} * {b})"


def _or_plain(opcode: str) -> Callable:
    """Return the emitter of an opcode that is part of a chain only with .cc."""
    plain = half.TABLE.get(opcode) or half.arithmetic.TABLE[opcode]

    def emit(w: BlockWriter, i: Instruction) -> None:
        (_chain if "cc" in i.modifiers else plain)(w, i)

    return emit


TABLE = {
    **{opcode: _or_plain(opcode) for opcode in ("add", "sub", "mad")},
    **dict.fromkeys(("addc", "subc", "madc"), _chain),
}
