"""Basic blocks of a kernel: where control flow can enter and leave, which registers live across, the loops among them.

The scheduler runs the lowest block first. Lanes reconverge at the join of a branch if the join comes after both sides,
and after a loop if the loop's blocks stand together. Compilers mostly write blocks in such an order, but they move what
they consider rare behind the end, with a jump back. Hardware needs no order, as `ptxas` marks where paths join.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warplab.simulator.errors import UnsupportedInstruction
from warplab.simulator.ptx.graphs import components, reached
from warplab.simulator.ptx.program import (
    Address,
    Entry,
    Indexed,
    Instruction,
    Register,
    items_of,
    name_of,
    registers_of,
)

MAX_LIVENESS = 1 << 24  # blocks × registers, as each block records those that live on

# How a block ends.
FALL, JUMP, BRANCH, GUARD, EXIT, TRAP = "fall", "jump", "branch", "guard", "exit", "trap"
BARRIER, WARP_SYNC = "barrier", "warp sync"

_TERMINATORS = {"bra": JUMP, "ret": EXIT, "exit": EXIT, "bar": BARRIER, "barrier": BARRIER, "trap": TRAP}
# Instructions whose first operand is read, not written.
_NO_DESTINATION = frozenset(
    (
        *("st", "red", "bra", "ret", "exit", "bar", "barrier", "trap", "membar", "fence", "brkpt", "nanosleep"),
        *("assertfail", "free", "invalid", "setmaxnreg"),
    )
)


CARRY = "%cc"  # the carry flag: a register that instructions use without naming it
_WITH_CARRY = frozenset(("addc", "subc", "madc"))
_COMBINE = frozenset(("and", "or", "xor"))  # setp with a third input
# Operands of the forms `d|p` with two destinations.
_OPERANDS_WITH_PREDICATE = {"shfl": 6, "match": 4, "elect": 3, "lop3": 7}
# Warp-wide instructions: the lanes that their mask names must arrive before any of them runs.
_WARP_WIDE = frozenset(
    ("shfl", "vote", "match", "redux", "elect", "mma", "wmma", "ldmatrix", "stmatrix", "wgmma", "movmatrix")
)


@dataclass(eq=False)
class Block:
    """Instructions that run one after another. Blocks are numbered in the order of `convergent_order`, mostly
    program order.

    `end`: how it ends. BRANCH (a branch in the program) and GUARD (a skip around one guarded instruction, which does
    not count as a branch) go to `target` where `condition` holds, else on to the next block. `warp_wide`: the
    warp-wide instruction that the block begins with.
    """

    index: int
    body: list[Instruction] = field(default_factory=list)
    end: str = FALL
    last: Instruction | None = None
    condition: Register | None = None
    negated: bool = False
    target: int = -1
    warp_wide: Instruction | None = None
    live_in: frozenset[str] = frozenset()
    live_out: frozenset[str] = frozenset()

    @property
    def terminator(self) -> Instruction:
        """Return the instruction that ends the block, where it does not fall through."""
        assert self.last is not None
        return self.last

    @property
    def counted(self) -> list[Instruction]:
        """Return the instructions that the hardware would issue for this block."""
        return self.body if self.end in (FALL, GUARD) or self.last is None else [*self.body, self.last]

    @property
    def only_ends(self) -> bool:
        """Return whether a branch to it merely ends the threads."""
        return self.end == EXIT and not self.body

    def successors(self) -> tuple[int, ...]:
        if self.end in (EXIT, TRAP):
            return ()
        if self.end == JUMP:
            return (self.target,)
        following = (self.index + 1,)
        return (self.target, *following) if self.end in (BRANCH, GUARD) else following


def destinations(instruction: Instruction) -> list[str]:
    """Return names of the registers that an instruction writes."""
    written = [CARRY] if "cc" in instruction.modifiers else []
    for operand in instruction.operands[: _destinations(instruction)]:
        written += [r.name for r in items_of(operand) if isinstance(r, Register)]
    return written


def sources(instruction: Instruction) -> list[str]:
    """Return names of the registers that an instruction reads, except its guard."""
    read = [CARRY] if instruction.opcode in _WITH_CARRY else []
    # The sums of a wgmma are read and written.
    first = 0 if instruction.opcode == "wgmma" else _destinations(instruction)
    return read + [n for operand in instruction.operands[first:] for n in registers_of(operand)]


def _destinations(instruction: Instruction) -> int:
    """Return how many operands are written. Memory operands in a destination's position (`wmma.store.d [p], …`) are
    read."""
    operands = instruction.operands
    if instruction.opcode == "tcgen05" and instruction.modifiers[0] != "ld":
        return 0
    if instruction.opcode in _NO_DESTINATION or not operands or isinstance(operands[0], Address | Indexed):
        return 0
    combined = not _COMBINE.isdisjoint(instruction.modifiers)
    if instruction.opcode == "setp":
        return 2 if len(operands) - combined > 3 else 1
    if instruction.opcode in ("tex", "tld4"):
        return 2 if isinstance(operands[1], Register) else 1
    return 2 if _OPERANDS_WITH_PREDICATE.get(instruction.opcode) == len(operands) else 1


def _together(block: Block, instruction: Instruction) -> bool:
    """Tell whether `block` begins with a wgmma, as this is one. Its lanes have found each other there already."""
    return instruction.opcode == "wgmma" and block.warp_wide is not None and block.warp_wide.opcode == "wgmma"


def cut(entry: Entry) -> list[Block]:
    """Cut a kernel into basic blocks, with liveness, in an order in which diverged lanes reconverge."""
    leaders = set(entry.labels.values())
    blocks = [Block(0)]
    start_of: dict[int, int] = {}  # instruction number → block
    labels: dict[int, str] = {}  # block → where it jumps

    def new_block() -> Block:
        blocks.append(Block(len(blocks)))
        return blocks[-1]

    for number, instruction in enumerate(entry.instructions):
        if number in leaders and (blocks[-1].body or blocks[-1].last):
            new_block()
        if blocks[-1].last is not None:
            new_block()
        by_warps = instruction.opcode == "tcgen05" and "aligned" in instruction.modifiers  # not by single threads
        warp_wide = instruction.opcode in _WARP_WIDE or by_warps
        if warp_wide and instruction.guard is None and not _together(blocks[-1], instruction):
            if blocks[-1].body:
                new_block()
            blocks[-1].warp_wide = instruction
        start_of[number] = blocks[-1].index
        kind = _TERMINATORS.get(instruction.opcode)
        if kind == BARRIER and "warp" in instruction.modifiers:
            kind = WARP_SYNC
        if instruction.guard is not None and kind != JUMP:
            # Becomes a block of its own that a guard skips.
            block = blocks[-1]
            block.end, block.last = GUARD, instruction
            block.condition, block.negated = instruction.guard, not instruction.guard_negated
            block.target = block.index + 2
            inner = new_block()
            if kind is None:
                inner.body = [instruction]
                inner.warp_wide = instruction if warp_wide else None
            else:
                inner.end = kind
            inner.last = instruction
            continue
        if kind is None:
            blocks[-1].body.append(instruction)
            continue
        block = blocks[-1]
        block.end, block.last = kind, instruction
        if kind == JUMP:
            if instruction.guard is not None:
                block.end = BRANCH
                block.condition, block.negated = instruction.guard, instruction.guard_negated
            labels[block.index] = name_of(instruction.operands[0])
    if blocks[-1].end not in (EXIT, JUMP, TRAP) or any(b.target == len(blocks) for b in blocks):
        end = new_block()
        end.end = EXIT
    for number, label in labels.items():
        blocks[number].target = start_of.get(entry.labels[label], len(blocks) - 1)
    if len(blocks) * len(entry.registers) > MAX_LIVENESS:
        raise UnsupportedInstruction(
            f"kernel {entry.name} is too large: {len(blocks):,} basic blocks and {len(entry.registers):,} registers"
        )
    blocks = _reordered(blocks)
    _find_live_registers(blocks)
    return blocks


def _reordered(blocks: list[Block]) -> list[Block]:
    """Put the blocks in `convergent_order`. A block that no longer precedes the one it falls into jumps there."""
    order = convergent_order([block.successors() for block in blocks])
    if order == list(range(len(blocks))):
        return blocks
    result: list[Block] = []
    place: dict[int, int] = {}  # old number → new number
    for position, number in enumerate(order):
        block = blocks[number]
        place[number] = len(result)
        result.append(block)
        falls = block.end not in (EXIT, TRAP, JUMP)
        if falls and order[position + 1 : position + 2] != [number + 1]:
            if block.end == FALL:
                block.end, block.target = JUMP, number + 1
            else:
                result.append(Block(0, end=JUMP, target=number + 1))
    for number, block in enumerate(result):
        block.index = number
        if block.target >= 0:
            block.target = place[block.target]
    return result


def _find_live_registers(blocks: list[Block]) -> None:
    reads, writes, read_at_end = [], [], []
    for block in blocks:
        read: set[str] = set()
        written: set[str] = set()
        for instruction in block.body:
            read.update(name for name in sources(instruction) if name not in written)
            written.update(destinations(instruction))
        at_end = set(_barrier_sources(block.terminator)) if block.end in (BARRIER, WARP_SYNC) else set()
        read |= at_end - written
        if block.condition is not None and block.condition.name not in written:
            read.add(block.condition.name)
        if block.end == BARRIER and "red" in block.terminator.modifiers:
            written.update(registers_of(block.terminator.operands[0]))
        read_at_end.append(at_end)
        reads.append(read)
        writes.append(written)
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            out = frozenset[str]().union(*(blocks[s].live_in for s in block.successors()))
            before = frozenset(reads[block.index] | (out - writes[block.index]))
            if out != block.live_out or before != block.live_in:
                block.live_out, block.live_in, changed = out, before, True
    for block, at_end in zip(blocks, read_at_end, strict=True):
        block.live_out |= at_end  # the scheduler reads these registers from their slots


def _barrier_sources(instruction: Instruction) -> list[str]:
    operands = instruction.operands[1:] if "red" in instruction.modifiers else instruction.operands
    return [name for operand in operands for name in registers_of(operand)]


MOST_WORK = 2**20  # blocks times the loops around them; some seconds


def convergent_order(successors: list[tuple[int, ...]]) -> list[int]:
    """Return numbers of the blocks in their new order, which is the old one if lanes reconverge in it. Block 0 is
    first. Raises UnsupportedInstruction for jumps into loops out of other loops, deeper than any compiler writes.

    A loop (a strongly connected component) stays together and begins with its head. Without the jumps back to the head,
    its blocks are ordered in the same way. Among the blocks that can come next, program order decides. [F. Bourdoncle,
    "Efficient chaotic iteration strategies with widenings", 1993: a weak topological order.]
    """
    if all(other > number for number, following in enumerate(successors) for other in following):
        return list(range(len(successors)))
    predecessors: list[list[int]] = [[] for _ in successors]
    for number, following in enumerate(successors):
        for other in following:
            predecessors[other].append(number)
    order: list[int] = []
    # Blocks and loops still to order, the next one last.
    work = _components_in_order(list(range(len(successors))), successors)[::-1]
    done = 0
    while work:
        blocks = work.pop()
        done += len(blocks)
        if done > MOST_WORK:
            raise UnsupportedInstruction(f"jumps that cross: {len(successors):,} basic blocks in loops inside loops")
        inside = set(blocks)
        entered = [b for b in blocks if b == 0 or any(p not in inside for p in predecessors[b])]
        head = min(entered or blocks)
        order.append(head)
        work += _components_in_order([b for b in blocks if b != head], successors)[::-1]
    return order


def _components_in_order(blocks: list[int], successors: list[tuple[int, ...]]) -> list[list[int]]:
    """List strongly connected components of the graph among `blocks`, each after those that lead to it."""
    parts = components(blocks, successors)
    of = {block: number for number, component in enumerate(parts) for block in component}
    missing = [0] * len(parts)
    following: list[set[int]] = [set() for _ in parts]
    for block in blocks:
        for other in successors[block]:
            if other in of and of[other] != of[block] and of[other] not in following[of[block]]:
                following[of[block]].add(of[other])
                missing[of[other]] += 1
    ready = [(min(component), number) for number, component in enumerate(parts) if not missing[number]]
    heapq.heapify(ready)
    result = []
    while ready:
        _, number = heapq.heappop(ready)
        component = parts[number]
        result.append(component)
        for other in following[number]:
            missing[other] -= 1
            if not missing[other]:
                heapq.heappush(ready, (min(parts[other]), other))
    return result


def around(blocks: Sequence[Block], number: int) -> set[int]:
    """Return the blocks that control may come to after a block and before it comes back; none if it does not."""
    before: list[list[int]] = [[] for _ in blocks]
    for one in blocks:
        for follower in one.successors():
            before[follower].append(one.index)
    return reached([one.successors() for one in blocks], number) & reached(before, number)


def leads_on(blocks: Sequence[Block], block: Block) -> bool:
    """Tell whether lanes cannot come back to a branch from one of its sides, as where they leave a loop."""
    following = [one.successors() for one in blocks]
    sides = (block.target, block.index + 1)
    return any(side != block.index and block.index not in reached(following, side) for side in sides)


def loops(blocks: Sequence[Block]) -> dict[int, int]:
    """Return the last block of each loop, by its head; the blocks between belong to it (`convergent_order`)."""
    found: dict[int, int] = {}
    for block in blocks:
        for head in block.successors():
            if head <= block.index:
                found[head] = max(found.get(head, 0), block.index)
    return found


def entered(block: Block, ends: Mapping[int, int]) -> list[int]:
    """Return the heads of the loops that a block leads into. `ends`: the `loops` of its kernel."""
    return [head for head in block.successors() if head in ends and not head <= block.index <= ends[head]]
