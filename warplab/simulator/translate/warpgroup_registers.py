"""Registers of wgmma and tcgen05.ld: instructions that access them while these may, or without a wgmma.fence before.

The sums of a product, and the registers that hold its factor A, belong to it from wgmma.mma_async until a
wgmma.wait_group that waits for its group. Registers that other instructions have accessed belong to products only
after a wgmma.fence. (PTX ISA, "wgmma.fence" and "wgmma.wait_group".) The control flow tells where either may be
violated, as it tells ptxas. A move passes on what is known of a register, as compilers move sums from loop to loop,
which costs no instruction. Further products of the same shape may add to sums under way. Those of
tcgen05.ld hold what it brings after a tcgen05.wait::ld.
"""

from collections.abc import Callable
from dataclasses import dataclass

from warplab.simulator.ptx.program import Immediate, Instruction, Operand, Register, Vector, Where, integer, items_of
from warplab.simulator.translate.basic_blocks import FALL, Block, destinations, sources
from warplab.simulator.translate.block_writer import BlockWriter

_READ = (
    "The products run while the threads go on. wgmma.commit_group closes a group of them, and wgmma.wait_group N waits "
    "for all but the latest N groups: wait before the sums are used, and let the compiler know (an empty asm volatile "
    'with "+f" of each sum after the wait), or it may move their use to before it.'
)
_TOUCHED = (
    "Put a wgmma.fence after what accesses the registers and before the next product that uses them: before the first "
    "product, and again when sums were set, read or stored in between."
)
_SHAPE = "Products of different shapes hold the sums in different ways: wait for the first (wgmma.wait_group 0), fence."
_LOADED = "tcgen05.ld"  # in place of a shape
_LOADING = (
    "tcgen05.ld works while the warp goes on: execute tcgen05.wait::ld before its registers are used, and let the "
    'compiler know (name them "+r" in the asm volatile of the wait), or it may move their use to before it.'
)
_KEPT = "A stays in these registers until the product is over: write to them after wgmma.wait_group."


@dataclass(frozen=True)
class RegisterFault:
    """What an instruction does wrong. `under_way`: only if products of the warpgroup are."""

    what: str
    reason: str
    where: Where
    under_way: bool


@dataclass(frozen=True)
class _Use:
    """A product that a register belongs to: its shape, how many groups were closed since (at least), and as what."""

    shape: str
    age: int
    sums: bool


class _State:
    """What is known between two instructions: who uses which registers, and which of them a fence has not seen."""

    def __init__(self, used: dict[str, _Use], touched: frozenset[str], fenced: bool) -> None:
        self.used, self.touched, self.fenced = used, touched, fenced

    def copy(self) -> "_State":
        return _State(dict(self.used), self.touched, self.fenced)

    def join(self, other: "_State") -> bool:
        """Take in what may hold on another way here. True if that is anything new."""
        before = len(self.touched), self.fenced, dict(self.used)
        for name, use in other.used.items():
            known = self.used.get(name)
            if known is None or use.age < known.age:
                self.used[name] = use
        self.touched |= other.touched
        self.fenced = self.fenced and other.fenced
        return before != (len(self.touched), self.fenced, self.used)


def find_faults(blocks: list[Block]) -> dict[int, RegisterFault]:
    """Return, by `id` of the instruction, the first fault of each. Empty for kernels without wgmma or tcgen05.ld."""
    instructions = [i for block in blocks for i in block.counted]
    products = [i for i in instructions if i.opcode == "wgmma" and i.modifiers[0] == "mma_async"]
    loads = [i for i in instructions if _loads(i)]
    if not products and not loads:
        return {}
    watched = frozenset(name for i in products for name in (*_sums(i), *_factor(i)))
    watched |= frozenset(name for i in loads for name in _sums(i))
    watched = _with_moved(watched, instructions)
    waits = [integer(i.operands[0]) for i in instructions if i.opcode == "wgmma" and i.modifiers[0] == "wait_group"]
    oldest = max(waits, default=0) + 1
    entry: dict[int, _State] = {0: _State({}, frozenset(), False)}
    todo, faults = [0], dict[int, RegisterFault]()
    while todo:
        number = todo.pop()
        state = entry[number].copy()
        for i in blocks[number].counted:
            _execute(state, i, watched, oldest, faults)
        for following in blocks[number].successors():
            if following >= len(blocks):
                continue
            if following not in entry:
                entry[following] = state.copy()
                todo.append(following)
            elif entry[following].join(state):
                todo.append(following)
    _forgive(blocks, faults)
    return faults


def _forgive(blocks: list[Block], faults: dict[int, RegisterFault]) -> None:
    """Forget uses of loaded registers ahead of the tcgen05.wait::ld on the only way on: compilers, as Triton's, move
    arithmetic there, and ptxas keeps it behind the load."""
    for number, block in enumerate(blocks):
        for place, i in enumerate(block.counted):
            if id(i) in faults and faults[id(i)].reason is _LOADING:
                ahead, following = block.counted[place:], number
                while blocks[following].end == FALL and not any(map(_waits_for_loads, ahead)):
                    following += 1
                    ahead = blocks[following].counted
                if any(map(_waits_for_loads, ahead)):
                    del faults[id(i)]


def examined(
    emit: Callable[[BlockWriter, Instruction], None], faults: dict[int, RegisterFault]
) -> Callable[[BlockWriter, Instruction], None]:
    """Return `emit` with the report before an instruction that has a fault."""

    def emit_examined(w: BlockWriter, i: Instruction) -> None:
        if id(i) in faults:
            w.line(f"m.warpgroups.refuse({w.object(faults[id(i)])}, L)")
        emit(w, i)

    return emit_examined


def _execute(state: _State, i: Instruction, watched: frozenset[str], oldest: int, faults: dict) -> None:
    if i.opcode == "wgmma":
        kind = i.modifiers[0]
        if kind == "fence":
            state.touched, state.fenced = frozenset(), True
        elif kind == "commit_group":
            state.used = {name: _Use(use.shape, min(use.age + 1, oldest), use.sums) for name, use in state.used.items()}
        elif kind == "wait_group":
            most = integer(i.operands[0])
            state.used = {name: use for name, use in state.used.items() if use.age <= most}
        else:
            _multiply(state, i, faults)
        return
    if _loads(i):
        state.used.update(dict.fromkeys(_sums(i), _Use(_LOADED, 0, True)))
        return
    if _waits_for_loads(i):
        state.used = {name: use for name, use in state.used.items() if use.shape != _LOADED}
        return
    loading = [n for n in _repacked(i) if n in state.used and state.used[n].shape == _LOADED]
    if loading:
        state.used.update(dict.fromkeys(destinations(i), state.used[loading[0]]))
        return
    moved = _move(i)
    if moved is not None:
        to, come = moved
        if to not in watched:
            return
        use = state.used.pop(to, None) if come is None else state.used.get(come)
        state.used.pop(to, None)
        if use is not None and come is not None:
            state.used[to] = use
        state.touched -= {to}
        if come in state.touched:
            state.touched |= {to}
        return
    read, written = watched.intersection(sources(i)), watched.intersection(destinations(i))
    for name in sorted(read):
        use = state.used.get(name)
        if use is not None and use.shape == _LOADED:
            _note(
                faults, i, f"`{_name(i)}` reads a register of a tcgen05.ld that may still be under way", _LOADING, False
            )
        elif use is not None and use.sums:
            _note(faults, i, f"`{_name(i)}` reads a sum of a wgmma that may still be under way", _READ, True)
    for name in sorted(written):
        use = state.used.pop(name, None)
        if use is not None and not use.sums:
            _note(faults, i, f"`{_name(i)}` writes to factor A of a wgmma that may still be under way", _KEPT, True)
    state.touched |= read | written


def _multiply(state: _State, i: Instruction, faults: dict) -> None:
    shape = ".".join(i.modifiers[3:])
    sums, factor = _sums(i), _factor(i)
    if not state.fenced:
        _note(faults, i, f"`{_name(i)}` before any wgmma.fence", _TOUCHED, False)
    elif not state.touched.isdisjoint((*sums, *factor)):
        what = "sums were" if not state.touched.isdisjoint(sums) else "factor A was"
        text = f"`{_name(i)}`: its {what} accessed since the latest wgmma.fence"
        _note(faults, i, text, _TOUCHED, False)
    if any(state.used[name].shape != shape for name in sums if name in state.used):
        _note(faults, i, f"`{_name(i)}` adds to sums of a wgmma of another shape that may be under way", _SHAPE, True)
    if any(state.used[name].sums for name in factor if name in state.used):
        _note(faults, i, f"`{_name(i)}` takes as factor A sums of a wgmma that may be under way", _READ, True)
    for name in sums:
        state.used[name] = _Use(shape, 0, True)
    for name in factor:
        state.used[name] = _Use(shape, 0, False)


def _note(faults: dict, i: Instruction, what: str, reason: str, under_way: bool) -> None:
    faults.setdefault(id(i), RegisterFault(what, reason, i.where, under_way))


def _loads(i: Instruction) -> bool:
    return i.opcode == "tcgen05" and i.modifiers[0] == "ld"


def _waits_for_loads(i: Instruction) -> bool:
    return i.opcode == "tcgen05" and i.modifiers[0] == "wait::ld"


def _name(i: Instruction) -> str:
    return i.text.split()[0].rstrip(";")


def _names(operand: Operand) -> list[str]:
    return [item.name for item in items_of(operand) if isinstance(item, Register)]


def _sums(i: Instruction) -> list[str]:
    return _names(i.operands[0])


def _factor(i: Instruction) -> list[str]:
    """Return registers of factor A; none where a descriptor stands."""
    return _names(i.operands[1]) if not isinstance(i.operands[1], Register) else []


def _move(i: Instruction) -> tuple[str, str | None] | None:
    """Return, for a move of a whole register or constant, the register it goes to and where it comes from."""
    if i.opcode != "mov" or len(i.operands) != 2 or not isinstance(i.operands[0], Register):
        return None
    if isinstance(i.operands[1], Register):
        return i.operands[0].name, i.operands[1].name
    return (i.operands[0].name, None) if isinstance(i.operands[1], Immediate) else None


def _repacked(i: Instruction) -> list[str]:
    """Return the registers that a mov puts together or takes apart, which costs no instruction either."""
    return sources(i) if i.opcode == "mov" and any(isinstance(operand, Vector) for operand in i.operands) else []


def _with_moved(watched: frozenset[str], instructions: list[Instruction]) -> frozenset[str]:
    """Return `watched` with the registers that their values are moved from and to."""
    moves = [m for i in instructions if (m := _move(i)) is not None and m[1] is not None]
    moves += [(to, come) for i in instructions for come in _repacked(i) for to in destinations(i)]
    before = None
    while watched != before:
        before = watched
        watched |= {name for to, come in moves if to in watched or come in watched for name in (to, come) if name}
    return watched
