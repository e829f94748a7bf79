"""Plain loads that only test a word before an atomic operation on it, as in `if (x > *most) atomicMax(most, x)`.

The test may see any value that the word has had, since the atomic operation looks again. So it is no race.
"""

from collections.abc import Callable

from warplab.simulator.ptx.graphs import reached
from warplab.simulator.ptx.program import Instruction
from warplab.simulator.translate.basic_blocks import Block, destinations, sources

_ATOMIC = frozenset(("atom", "red"))
_COMPUTES = frozenset(
    ("add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "not", "neg", "cvt", "min", "max", "mov", "setp")
)


def plain_tests(blocks: list[Block], location: Callable[[Instruction], object]) -> frozenset[int]:
    """Return the `id` of each plain load whose value does nothing but decide on branches, and from which the program
    comes to an atomic operation on the same location, none before it. `location`: where an instruction goes."""
    atomics: dict[object, list[int]] = {}  # the numbers of their blocks
    for block in blocks:
        for i in block.counted:
            if i.opcode in _ATOMIC:
                atomics.setdefault(location(i), []).append(block.index)
    if not atomics:
        return frozenset()
    following = [block.successors() for block in blocks]
    users: dict[str, list[Instruction]] = {}
    for block in blocks:
        for i in block.counted:
            for name in sources(i):
                users.setdefault(name, []).append(i)
    found = set()
    for block in blocks:
        for i in block.counted:
            places = atomics.get(location(i), []) if i.opcode == "ld" else []
            before = bool(places) and block.index < min(places)
            if before and _only_decides(i, users) and not reached(following, block.index).isdisjoint(places):
                found.add(id(i))
    return frozenset(found)


def _only_decides(load: Instruction, users: dict[str, list[Instruction]]) -> bool:
    """Tell whether only guards and branches depend on what is loaded."""
    known = set(destinations(load))
    work = list(known)
    while work:
        for user in users.get(work.pop(), ()):
            if user.opcode not in _COMPUTES:
                return False
            more = set(destinations(user)) - known
            known |= more
            work += more
    return True
