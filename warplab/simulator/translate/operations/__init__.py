"""What each PTX instruction becomes. To add one, add a row to a table in the file of its kind.

`TABLE` maps an opcode to its emitter, `emit(writer, instruction)`, which writes NumPy code with the methods of
`BlockWriter`: `value` and `array` return an operand, `define` writes a register, `line` adds a statement. For a form
that it does not know, an emitter raises KeyError, IndexError or ValueError, or `writer.unsupported()`.
"""

from warplab.simulator.ptx.program import Instruction
from warplab.simulator.translate.operations import (
    arithmetic,
    asynchronous,
    atomics,
    bits,
    calls,
    carry,
    comparisons,
    conversions,
    half,
    matrix,
    memory,
    tensor_map_fields,
    tensor_memory,
    textures,
    warp,
)

TABLE = {
    **arithmetic.TABLE,
    **half.TABLE,  # this and the next leave other types to `arithmetic`
    **carry.TABLE,
    **bits.TABLE,
    **comparisons.TABLE,
    **conversions.TABLE,
    **memory.TABLE,
    **atomics.TABLE,
    **asynchronous.TABLE,  # leaves other st and red to these two
    **tensor_map_fields.TABLE,
    **textures.TABLE,
    **warp.TABLE,
    **matrix.TABLE,
    **tensor_memory.TABLE,
    **calls.TABLE,
}

# How many operands an opcode takes, at least and at most.
_COUNTS = {
    (0, 0): "brkpt griddepcontrol membar",
    (0, 2): "fence",
    (1, 1): "activemask nanosleep pmevent prefetch prefetchu setmaxnreg",
    (1, 4): "createpolicy",
    (
        2,
        2,
    ): "abs applypriority bfind brev clz clusterlaunchcontrol cnot cos cvta discard ex2 getctarank isspacep ldmatrix"
    " lg2 mov movmatrix neg not popc rcp rsqrt sin sqrt stmatrix suq tanh testp txq",
    (2, 3): "elect ld ldu st suld sust",
    (2, 4): "cvt red tex tld4",
    (3, 3): "add addc and bmsk copysign div mapa mul mul24 or redux rem shl shr sub subc szext xor",
    (3, 4): "match max min set vote",
    (3, 5): "atom setp",
    (4, 4): "bfe dp2a dp4a fma fns mad mad24 madc prmt sad selp shf slct vabsdiff2 vabsdiff4",
    (5, 5): "bfi",
    (5, 6): "shfl",
    (5, 7): "lop3",
}
OPERANDS = {opcode: counts for counts, opcodes in _COUNTS.items() for opcode in opcodes.split()}

# What Nsight Compute's counts of additions, multiplications and FMAs see: no comparison, so no minimum and no maximum.
# One for a division, a root or a function, which the GPU makes of several instructions.
FLOPS = {
    **dict.fromkeys(("add", "sub", "mul", "div", "sqrt", "rsqrt", "rcp"), 1),
    **dict.fromkeys(("ex2", "lg2", "sin", "cos", "tanh"), 1),
    **dict.fromkeys(("fma", "mad"), 2),
}


def flops(instruction: Instruction) -> tuple[str | None, int]:
    """Return floating-point operations per thread: precision ("f16", "f32", "f64") and number."""
    kind = instruction.modifiers[-1] if instruction.modifiers else ""
    amount = FLOPS.get(instruction.opcode, 0)
    if kind in ("f16x2", "bf16x2"):
        return "f16", 2 * amount
    if kind == "f32x2":
        return "f32", 2 * amount
    kind = "f32" if "f32" in instruction.modifiers else "f16" if kind == "bf16" else kind  # add.f32.bf16 adds float32
    return (kind, amount) if amount and kind in ("f16", "f32", "f64") else (None, 0)


# Kinds of instruction for a launch's mix, by opcode; arithmetic is divided by type.
KINDS = {
    **dict.fromkeys(("ld", "ldu", "ldmatrix"), "load"),
    **dict.fromkeys(("st", "stmatrix"), "store"),
    **dict.fromkeys(("atom", "red"), "atomic"),
    **dict.fromkeys(("bra", "brx", "ret", "exit", "call", "enter", "inlined", "invalid", "trap"), "control"),
    **dict.fromkeys(("vprintf", "assertfail", "malloc", "free", "nanosleep", "brkpt"), "control"),
    **dict.fromkeys(("setmaxnreg", "griddepcontrol", "pmevent", "clusterlaunchcontrol"), "control"),
    **dict.fromkeys(("bar", "barrier", "mbarrier", "membar", "fence"), "synchronisation"),
    **dict.fromkeys(("shfl", "vote", "match", "redux", "activemask", "elect", "movmatrix"), "warp"),
    **dict.fromkeys(("mma", "wmma"), "tensor"),
    **dict.fromkeys(("mov", "argument", "cvta", "isspacep", "mapa", "getctarank", "selp", "slct"), "move"),
    **dict.fromkeys(("prefetch", "prefetchu", "discard", "applypriority", "createpolicy"), "cache hint"),
    **dict.fromkeys(("tex", "tld4", "txq"), "texture"),
    **dict.fromkeys(("suld", "sust", "suq"), "surface"),
    "cp": "asynchronous copy",
    "cvt": "conversion",
}


def kind(instruction: Instruction) -> str:
    """Return the kind of an instruction: a value of KINDS, or "FP16", "FP32", "FP64", "integer" for arithmetic."""
    if instruction.opcode == "wmma" and instruction.modifiers[0] in ("load", "store"):
        return instruction.modifiers[0]
    if instruction.opcode == "wgmma":
        return "tensor" if instruction.modifiers[0] == "mma_async" else "synchronisation"
    if instruction.opcode == "tcgen05":
        kinds = {"mma": "tensor", "ld": "load", "st": "store", "cp": "asynchronous copy"}
        return kinds.get(instruction.modifiers[0], "synchronisation")
    if instruction.opcode in KINDS:
        return KINDS[instruction.opcode]
    last = instruction.modifiers[-1] if instruction.modifiers else ""
    if last in ("f16", "f16x2", "bf16", "bf16x2"):
        return "FP16"
    return {"f32": "FP32", "f32x2": "FP32", "f64": "FP64"}.get(last, "integer")
