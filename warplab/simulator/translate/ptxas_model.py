"""What `ptxas` makes of PTX, as far as the counters need it: how many machine instructions stand for one PTX
instruction, and which short conditions become predicates.

Read in the machine code (sm_90, CUDA 13.0) of the kernels in evidence/counters and of single instructions. Whatever is
not in the tables counts as one instruction, even a `wmma` load, store or product, which `ptxas` expands into several.
This is an estimate: `ptxas` also unrolls loops and fuses multiplications with additions.
"""

from warplab.simulator.ptx.program import Address, Immediate, Instruction, Register
from warplab.simulator.translate.basic_blocks import BRANCH, FALL, GUARD, JUMP, Block, destinations, sources

SHORT = 7  # up to so many machine instructions under a condition are predicated rather than branched around

# Divisions and roots are an approximation and its correction; rare arguments are handled behind a branch.
_EXPANDED = {
    ("div", "f32"): 10,
    ("div", "f64"): 20,
    ("rcp", "f32"): 9,
    ("rcp", "f64"): 12,
    ("sqrt", "f32"): 10,
    ("sqrt", "f64"): 20,
    **{(opcode, kind): 16 for opcode in ("div", "rem") for kind in ("u32", "u16")},
    **{(opcode, kind): 20 for opcode in ("div", "rem") for kind in ("s32", "s16")},
    **{(opcode, kind): 30 for opcode in ("div", "rem") for kind in ("u64", "s64")},
}
_APPROXIMATE = {"div": 2, "sqrt": 4, "rsqrt": 4, "rcp": 4, "sin": 2, "cos": 2, "lg2": 4}
_WIDE = {
    **dict.fromkeys(("add", "sub", "and", "or", "xor", "shl", "shr", "setp", "selp"), 2),
    **dict.fromkeys(("mul", "mad", "min", "max"), 4),
}
_OTHER = {"bfe": 3, "bfi": 2, "clz": 2}


_QUICK = frozenset(("approx", "full"))
_WIDE_TYPES = frozenset(("s64", "u64", "b64"))
_INTEGERS = frozenset(f"{letter}{bits}" for letter in "us" for bits in (8, 16, 32, 64))
# In addition, for an integer added to one address: one lane adds the sum of its warp.
_ONE_ADDRESS = {"u32": 9, "s32": 9, "u64": 14}


def machine_instructions(blocks: list[Block]) -> dict[int, int]:
    """Return, by `id(instruction)`, how many machine instructions a thread executes for it.

    A parameter is loaded where it is first used. A kernel begins with one instruction for its stack, and its first
    access to global memory takes one more.
    """
    result: dict[int, int] = {}
    parameters: set[str] = set()
    pointers: set[str] = set()
    fused = _fused(blocks)
    more, touched = 1, False
    for block in blocks:
        for i in block.counted:
            read = parameters.intersection(sources(i))
            parameters -= read
            amount = fused.get(id(i), _alone(i)) + len(read) + more
            more = 0
            if i.opcode == "ld" and "param" in i.modifiers:
                parameters.update(destinations(i))
            elif i.opcode == "cvta" and read:
                pointers.update(destinations(i))
            elif "global" in i.modifiers and not touched:
                amount, touched = amount + 1, True
            if i.opcode in ("atom", "red") and "add" in i.modifiers and i.modifiers[-1] in _ONE_ADDRESS:
                base = next(operand.base for operand in i.operands if isinstance(operand, Address))
                if isinstance(base, Register) and base.name in pointers:
                    amount += _ONE_ADDRESS[i.modifiers[-1]]
            result[id(i)] = amount
    _move_exits(blocks, result)
    return result


def _fused(blocks: list[Block]) -> dict[int, int]:
    """Count the machine instructions of what is fused: multiplications and shifts used in additions only, with these
    (IMAD, IMAD.WIDE, LEA), and the choice between 0 and another source size of cp.async (LDGSTS takes the predicate).

    A shift of 64 bits and its only addition take two instructions, LEA and LEA.HI.
    """
    made: dict[str, Instruction] = {}
    uses: dict[str, list[Instruction]] = {}
    for block in blocks:
        for i in block.counted:
            for name in sources(i):
                uses.setdefault(name, []).append(i)
            shift = i.opcode in ("shl", "shr") and isinstance(i.operands[2], Immediate)
            product = i.opcode == "mul" and ("lo" in i.modifiers or "wide" in i.modifiers)
            none = i.opcode == "selp" and any(isinstance(o, Immediate) and o.value == 0 for o in i.operands[1:3])
            if product or none or (shift and (i.opcode == "shl" or i.modifiers[-1] not in _WIDE_TYPES)):
                made[destinations(i)[0]] = i
    result: dict[int, int] = {}
    for name, i in made.items():
        additions = uses.get(name, [])
        if i.opcode == "selp":
            if additions and all(a.opcode == "cp" for a in additions):
                result[id(i)] = 0
            continue
        if len(additions) > 1 and i.opcode == "shl" and i.modifiers[-1] in _WIDE_TYPES:
            continue
        if additions and all(a.opcode in ("add", "sub") and a.modifiers[-1] in _INTEGERS for a in additions):
            wide = i.modifiers[-1] in _WIDE_TYPES
            result[id(i)] = 3 if wide and i.opcode == "mul" and "wide" not in i.modifiers else 0
            if not wide or "wide" in i.modifiers:
                result.update({id(a): 1 for a in additions})
    return result


def _move_exits(blocks: list[Block], result: dict[int, int]) -> None:
    """Turn a branch to the end into an exit under a predicate; only the other lanes reach the end itself."""
    for end in blocks:
        if not (end.only_ends and end.counted):
            continue
        before = [b for b in blocks if end.index in b.successors()]
        into = [b for b in before if b.end != BRANCH or b.target != end.index]
        if len(into) < len(before) and into and all(b.counted and b.end != BRANCH for b in into):
            result[id(end.last)] = 0
            for block in into:
                result[id(block.counted[-1])] += block.end != JUMP


def exits(blocks: list[Block], block: Block) -> bool:
    """Return whether the branch that ends `block` is an exit under a predicate, as one side merely ends the thread.

    A branch back to the head of a loop, followed by the end, remains a branch.
    """
    return blocks[block.target].only_ends or (blocks[block.index + 1].only_ends and block.target > block.index)


def _alone(i: Instruction) -> int:
    kind = i.modifiers[-1] if i.modifiers else ""
    if i.opcode == "cvta" or (i.opcode == "ld" and "param" in i.modifiers):
        return 0
    if i.opcode == "wgmma" and "commit_group" in i.modifiers:  # a mark on the last product
        return 0
    if i.opcode in ("mov", "argument"):
        source = i.operands[1] if len(i.operands) > 1 else None
        return int(isinstance(source, Register) and "." in source.name)  # a special register
    if i.opcode == "cvt":
        return int(kind not in _INTEGERS or i.modifiers[-2] not in _INTEGERS)
    if _QUICK.intersection(i.modifiers):
        return 1 if "ftz" in i.modifiers and i.opcode == "lg2" else _APPROXIMATE.get(i.opcode, 1)
    if (i.opcode, kind) in _EXPANDED:
        return _EXPANDED[i.opcode, kind]
    if kind in _WIDE_TYPES and "wide" not in i.modifiers:
        return _WIDE.get(i.opcode, 1)
    return _OTHER.get(i.opcode, 1)


def rare_ways(i: Instruction) -> int:
    """Return branches within an instruction, to the code for rare arguments of a division or root."""
    kind = i.modifiers[-1] if i.modifiers else ""
    return int(kind in ("f32", "f64") and (i.opcode, kind) in _EXPANDED and not _QUICK.intersection(i.modifiers))


def predicated(blocks: list[Block], amounts: dict[int, int]) -> dict[int, int]:
    """Return blocks that run under a predicate instead of behind a branch: their number → the block with the condition.

    Each of their instructions is issued for all threads that come by, and does nothing for those whose predicate is
    false. `amounts`: from `machine_instructions`; the branches are removed from it.
    """
    entered: dict[int, int] = {}
    for block in blocks:
        for number in block.successors():
            entered[number] = entered.get(number, 0) + 1

    def short(block: Block) -> bool:
        return (
            entered[block.index] == 1 and block.warp_wide is None and sum(amounts[id(i)] for i in block.body) <= SHORT
        )

    result: dict[int, int] = {}
    for block in blocks:
        body = block.index + 1
        if block.end == GUARD:
            result[body] = block.index
            continue
        if block.end != BRANCH or block.target != body + 1 or block.target == len(blocks):
            continue
        inside, target = blocks[body], blocks[block.target]
        if inside.end == FALL and short(inside) and not target.only_ends:  # otherwise the threads end instead
            result[body] = block.index
            amounts[id(block.last)] -= 1
        elif (
            inside.end == JUMP and inside.target == body + 2 and target.end == FALL and short(inside) and short(target)
        ):
            result[body] = result[block.target] = block.index
            amounts[id(block.last)] -= 1
            amounts[id(inside.last)] -= 1
    return result
