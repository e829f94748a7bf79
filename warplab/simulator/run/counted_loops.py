"""Whether lanes leave a loop by counting: a register goes by a fixed step towards a bound that is fixed in the loop.

Any lane that stays in a loop for ever stays in a part of it that it runs again and again. If a test leaves the loop,
and what counts for it is in that part, then the count reaches its bound; else the part is a smaller loop without it,
of which the same is asked. So a loop of another kind is none of these, whatever loops are in it: one that waits for
memory, whose counter is in memory, whose step is 0 or too small for a float to change, or that counts past its bound.
"""

from collections.abc import Callable, Container, Iterator, Sequence

import numpy as np

from warplab.simulator.memory.lane_groups import Group
from warplab.simulator.ptx.graphs import components
from warplab.simulator.ptx.program import TYPE_BYTES, Immediate, Instruction, Operand, Register
from warplab.simulator.translate.basic_blocks import BRANCH, GUARD, Block, around, destinations

MOST_ROUNDS = 2**27  # left: more count as no end, as where a count below 0 wraps, or a compiler divides by a step of 0
_RELATIONS = ("lt", "le", "gt", "ge", "eq", "ne")
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_KINDS = {"f32", "f64", *(f"{kind}{bits}" for kind in "bsu" for bits in (16, 32, 64))}


def ends(chunk, block: Block, group: Group) -> bool:
    """Tell whether every lane of a group, which is about to run a block, leaves the loops around it."""
    blocks, lanes = chunk.translation.blocks, group.all_lanes
    slots, following = chunk.translation.slots, [one.successors() for one in blocks]

    def values(operand: Operand, kind: str) -> np.ndarray:
        """Return an operand's values as PTX's type `kind`, one for all lanes or for each of them."""
        dtype = np.dtype(f"{'i' if kind[0] in 'bs' else kind[0]}{TYPE_BYTES[kind]}")
        if isinstance(operand, Immediate):
            if kind[0] == "f":
                return np.array([operand.value], dtype)
            return np.array([int(operand.value) % 2 ** (8 * dtype.itemsize)], f"u{dtype.itemsize}").view(dtype)
        assert isinstance(operand, Register)
        return chunk.at(chunk.registers[slots[operand.name]], lanes).view(dtype)

    def leaves(loop: set[int]) -> bool:
        if len(loop) < 2 and block.index not in following[block.index]:
            return True
        of_loop = _Loop(blocks, loop, slots.keys())
        tests = (test for number in loop for test in of_loop.tests(blocks[number]))
        for kind, relation, steps, bound, counter, parts in tests:
            if counter.name in block.live_in and _rounds(kind, relation, steps, bound, counter, values):
                smaller = [set(one) for part in parts for one in components(sorted(loop - part), following)]
                if all(leaves(one) for one in smaller if block.index in one):
                    return True
        return False

    return leaves(around(blocks, block.index))


class _Loop:
    """Some blocks that lead to each other. `written`: what writes each register there, with the block."""

    def __init__(self, blocks: Sequence[Block], loop: set[int], kept: Container[str]) -> None:
        self.blocks, self.loop, self.kept = blocks, loop, kept
        self.written: dict[str, list[tuple[Instruction, int]]] = {}
        for number in sorted(loop):
            for i in blocks[number].counted:
                for name in destinations(i):
                    self.written.setdefault(name, []).append((i, number))

    def tests(self, block: Block) -> Iterator[tuple]:
        """Yield ways to leave the loop at a block that a counter decides: PTX type, relation that holds while lanes
        stay, steps of a round, bound, counter, and the sets of blocks each of which has a part in it."""
        outside = [follower not in self.loop for follower in block.successors()]
        if block.end not in (BRANCH, GUARD) or sum(outside) != 1 or block.condition is None:
            return
        stays = outside[1] != block.negated  # the value of the condition with which lanes stay
        for test, holds, parts in self._comparisons(block.condition.name, stays, [{block.index}]):
            kind = test.modifiers[-1]
            relation = _UNSIGNED.get(test.modifiers[0], test.modifiers[0].removesuffix("u" if kind[0] == "f" else ""))
            if relation not in _RELATIONS or kind not in _KINDS:
                continue
            relation = relation if holds else _NEGATED[relation]
            first, second = test.operands[1:3]
            for counter, bound, how in ((first, second, relation), (second, first, _MIRRORED[relation])):
                if isinstance(counter, Register) and self._fixed(bound):
                    for steps, register, more in self._counted(counter, kind):
                        yield kind, how, steps, bound, register, [*parts, *more]

    def _comparisons(self, name: str, holds: bool, parts: list[set[int]]) -> Iterator[tuple[Instruction, bool, list]]:
        """Yield the comparisons each of which alone lets lanes leave, as a predicate is their conjunction."""
        found = self._writer(name)
        if found is None or len(parts) > 8:
            return
        i, places = found
        parts = [*parts, places]
        if i.opcode == "setp" and len(i.operands) == 3:
            yield i, holds, parts
        elif i.opcode in ("not", "and" if holds else "or"):
            for operand in i.operands[1:]:
                if isinstance(operand, Register):
                    yield from self._comparisons(operand.name, holds != (i.opcode == "not"), parts)

    def _writer(self, name: str) -> tuple[Instruction, set[int]] | None:
        """Return what alone writes a register in the loop, and where: the same instruction may stand in many places."""
        found = self.written.get(name, [])
        if not found or len({(i.opcode, i.modifiers, i.operands) for i, _ in found}) > 1:
            return None
        return found[0][0], {number for _, number in found}

    def _fixed(self, operand: Operand) -> bool:
        if isinstance(operand, Register):
            return operand.name not in self.written and operand.name in self.kept
        return isinstance(operand, Immediate)

    def _counted(self, register: Register, kind: str) -> Iterator[tuple]:
        """Yield how a register counts: the steps of a round, a register that holds the count, and where it does."""
        way: dict[str, list[tuple[int, Operand]]] = {}  # register → steps from it to the test
        so_far: list[tuple[int, Operand]] = []
        parts: list[set[int]] = []
        whiles: list[tuple[str, Operand]] = []
        name = register.name
        while name not in way:
            way[name] = so_far
            found = self._writer(name)
            if found is None or found[0].opcode not in ("mov", "add", "sub") or "sat" in found[0].modifiers:
                return
            i, places = found
            before, *by = i.operands[1:]
            if i.opcode == "add" and self._fixed(before):
                before, by = by[0], [before]
            by = [self._taken(other, way, kind, whiles, parts) for other in by]
            size, own = TYPE_BYTES[kind], i.modifiers[-1]  # the bits of a float may be compared as an integer
            same = own in _KINDS and TYPE_BYTES[own] == size and (not by or (own[0] == "f") == (kind[0] == "f"))
            if not same or not isinstance(before, Register) or not all(self._fixed(other) for other in by):
                return
            parts.append(places)
            so_far = [*so_far, *((-1 if i.opcode == "sub" else 1, other) for other in by)]
            name = before.name
        steps = so_far[len(way[name]) :]
        if whiles and len(so_far) > 1:  # the count that is looked at may stop short of that of the test
            return
        for holder, ahead in way.items():
            if steps and holder in self.kept:
                yield (steps, ahead, whiles), Register(holder), parts

    def _taken(self, step: Operand, way: Container[str], kind: str, whiles: list, parts: list) -> Operand:
        """Return the step that is taken while the count is in `whiles`, and 0 else, as Numba's range() counts."""
        chosen = self._writer(step.name) if isinstance(step, Register) else None
        if chosen is None or chosen[0].opcode != "selp":
            return step
        _, one, other, condition = chosen[0].operands
        test = self._writer(condition.name) if isinstance(condition, Register) else None
        if test is None or test[0].opcode != "setp" or len(test[0].operands) != 3:
            return step
        (how, *_, own), (_, count, bound) = test[0].modifiers, test[0].operands
        known = isinstance(count, Register) and count.name in way and self._fixed(bound) and own == kind
        if known and how in _MIRRORED and isinstance(other, Immediate) and not other.value:
            whiles.append((how, bound))
            parts += [chosen[1], test[1]]
            return one
        return step


def _rounds(kind, relation, steps, bound, counter, values: Callable[[Operand, str], np.ndarray]) -> bool:
    """Tell whether a test's counter comes to its bound in at most MOST_ROUNDS, for all lanes."""

    def total(parts: Sequence[tuple[int, Operand]]) -> list[np.ndarray]:
        return [values(operand, kind) if sign > 0 else -values(operand, kind) for sign, operand in parts]

    with np.errstate(all="ignore"):
        of_round, ahead = (total(parts) for parts in steps[:2])
        step = sum(of_round[1:], of_round[0])
        now = sum(ahead, values(counter, kind))
        until = values(bound, kind)
        if kind[0] == "f":
            if relation not in ("lt", "le", "gt", "ge") or steps[2]:
                return False
            towards = 1 if relation[0] == "l" else -1
            clear = np.spacing(np.maximum(abs(now), abs(until)))  # less, and the sum might be the number itself
            far = abs((until - now) / step) < MOST_ROUNDS
            return bool(far.all() and all((towards * one >= clear).all() for one in of_round))
    rows = np.broadcast_arrays(now, step, until, *(values(limit, kind) for _, limit in steps[2]))
    bits, signed = 8 * TYPE_BYTES[kind], kind[0] == "s"
    for start, by, end, *limits in {*zip(*(one.tolist() for one in rows), strict=True)}:
        low, high = _span(relation, end, bits, signed)
        spans = [_span(how, limit, bits, signed) for (how, _), limit in zip(steps[2], limits, strict=True)]
        if spans and (relation == "ne" or not all(a <= low <= high <= b for a, b in spans)):
            return False
        if not _left(start, by, end, relation, bits, signed):
            return False
    return True


def _span(relation: str, bound: int, bits: int, signed: bool) -> tuple[int, int]:
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    low = {"gt": bound + 1, "ge": bound, "eq": bound}.get(relation, least)
    return low, {"lt": bound - 1, "le": bound, "eq": bound}.get(relation, most)


def _left(now: int, step: int, bound: int, relation: str, bits: int, signed: bool) -> bool:
    """Tell whether `now`, by steps, leaves the numbers that are in `relation` to the bound, in MOST_ROUNDS."""
    whole = 2**bits
    step = (step + whole // 2) % whole - whole // 2
    if not step:
        return False
    if relation == "ne":
        away = (bound - now if step > 0 else now - bound) % whole
        return away % abs(step) == 0 and away // abs(step) <= MOST_ROUNDS
    least = -whole // 2 if signed else 0
    low, high = _span(relation, bound, bits, signed)
    if not low <= now <= high:
        return True
    rounds = ((high - now) if step > 0 else (now - low)) // abs(step) + 1
    reached = (now + rounds * step - least) % whole + least
    return not low <= reached <= high and rounds <= MOST_ROUNDS
