"""How often each basic block of machine code ran, from how often those of the PTX did.

What is known: each machine instruction says which PTX instruction it comes from, and the simulator has counted that
one. What threads enter a block they leave, so that counts flow along the edges. What the assembler did in between is
found by that: a loop that it unrolled has its instructions in several blocks, whose counts add up to the PTX's; a
condition that it turned into predicates has no edge of its own; code that it moved out of a loop stands in a block
that runs less often.

So the counts are the solution of a linear program (`least_deviation`): threads are conserved in every block, and the
sum of what instructions' counts are off, weighed by how sure it is that they stay where PTX has them, is least.
Stores, barriers and atomics stay, loads and products of matrices mostly, arithmetic often, and integers least.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from warplab.compile.disassembler import MachineInstruction
from warplab.estimating.least_deviation import LeastDeviation
from warplab.estimating.machine_blocks import OUTSIDE, BasicBlock, Edge, opcode
from warplab.estimating.machine_blocks import loops as machine_loops
from warplab.estimating.pipes import pipe_of
from warplab.simulator.count.counters import BlockFlow
from warplab.simulator.ptx.program import Instruction
from warplab.simulator.translate.basic_blocks import BRANCH, GUARD, JUMP, Block
from warplab.simulator.translate.basic_blocks import loops as ptx_loops

WEIGHTS = {"stays": 3.0, "mostly": 1.0, "float": 0.1, "integer": 0.03, "branch": 0.03}
_STAYS = frozenset(("st", "red", "atom", "bar", "barrier", "stmatrix", "mbarrier"))
_MOSTLY = frozenset(("ld", "shfl", "vote", "mma", "wmma", "ldmatrix", "cp", "match", "redux", "wgmma"))
_FLOATS = frozenset(("f16", "f32", "f64", "bf16", "f16x2", "bf16x2"))
# Machine instructions that stand one for one for these, in which case several in a block are copies of it.
_ONE_BY_ONE = (
    "STG STS ST STL LDG LDS LD LDL BAR SHFL ATOMG ATOMS ATOM RED REDG LDSM STSM HMMA IMMA FFMA FADD FMUL DADD DMUL "
    "DFMA HADD2 HMUL2 HFMA2"
)
_ONE = frozenset(_ONE_BY_ONE.split())
# What the assembler adds for itself, under whatever line it has at hand.
_ADDED = (
    "BSSY BSYNC BREAK WARPSYNC YIELD NOP CALL RET MOV UMOV CS2R LDC ULDC PLOP3 UPLOP3 R2UR S2UR BMOV NANOSLEEP "
    "DEPBAR WARPGROUP"
)
_ITS_OWN = frozenset(_ADDED.split())
# Beginnings of the opcodes that instructions become which mostly stay where they are.
_BECOMES: dict[str, tuple[str, ...]] = {
    "ld": ("LD",),
    "st": ("ST",),
    "atom": ("ATOM", "RED"),
    "red": ("RED", "ATOM"),
    "bar": ("BAR",),
    "barrier": ("BAR", "UCGABAR"),
    "mbarrier": ("SYNCS",),
    "shfl": ("SHFL",),
    "vote": ("VOTE",),
    "match": ("MATCH",),
    "redux": ("REDUX", "CREDUX"),
    "mma": ("HMMA", "IMMA", "DMMA", "QMMA", "BMMA"),
    "wmma": ("HMMA", "IMMA", "DMMA", "BMMA", "LD", "ST"),
    "wgmma": ("HGMMA", "IGMMA", "QGMMA", "BGMMA"),
    "ldmatrix": ("LDSM",),
    "stmatrix": ("STSM",),
    "cp": ("LDGSTS", "UBLK", "UTMA"),
}
# What a loop's known trips are worth beside the word of an instruction.
_TRIPS, _SLOW_PATH, _SIDE = 2.0, 1.0, 0.3
_NEARLY_NOTHING = 0.02  # threads per thread of the launch below which being off counts no more


def kind_of(instruction: Instruction) -> str:
    """Return how sure it is that an instruction stays where PTX has it, a key of WEIGHTS."""
    name, modifiers = instruction.opcode, instruction.modifiers
    if name in ("bra", "ret", "exit"):
        return "branch"
    if name in _STAYS or (name == "ld" and "volatile" in modifiers):
        return "stays"
    if name in _MOSTLY and "param" not in modifiers:
        return "mostly"
    if modifiers and modifiers[-1] in _FLOATS and name in ("add", "sub", "mul", "fma"):
        return "float"
    return "integer"


def tells(row: MachineInstruction, instruction: Instruction) -> bool:
    """Return whether a machine instruction says where its PTX instruction went."""
    name, kind = opcode(row), kind_of(instruction)
    if name in ("BRA", "EXIT"):
        return kind == "branch"
    if name in ("LDC", "ULDC"):
        return "const" in instruction.modifiers
    if name in _ITS_OWN or (name == "HFMA2" and "MMA" in row.opcode and "RZ, RZ" in row.text):
        return False
    # The assembler's own arithmetic often has the line of a load or product beside it.
    if kind == "float":
        return pipe_of(name) in ("FMA", "FP64") and name != "IMAD"
    return kind not in ("stays", "mostly") or name.startswith(_BECOMES.get(instruction.opcode, ()))


class PtxCounts:
    """What ran in a launch, by position in the PTX's text. `blocks`: the instructions there (several where a function
    was inlined several times) and their blocks. `loops`: last block of each loop, by its head."""

    def __init__(self, flow: BlockFlow) -> None:
        self.flow = flow
        self.every: list[Block] = flow.translation.blocks
        self.loops = ptx_loops(self.every)
        self.blocks: dict[int, list[tuple[Block, Instruction]]] = {}
        for block in self.every:
            inside = list(block.body)
            if block.last is not None and block.end != GUARD and not any(i is block.last for i in inside):
                inside.append(block.last)
            for instruction in inside:
                if instruction.at >= 0:
                    self.blocks.setdefault(instruction.at, []).append((block, instruction))

    def threads(self, at: int) -> float:
        """Return threads that ran the instruction there."""
        return sum(self.flow.threads[block.index] for block, _ in self.blocks[at])

    def around(self, number: int) -> list[int]:
        """Return heads of the loops around a block, the innermost last."""
        return sorted(head for head, last in self.loops.items() if head <= number <= last)


class BlockCounts:
    """The counts of one launch: `threads` by block of machine code, `flows` by edge.

    `origins`: by row, where its PTX begins, -1 for none. `entering`: threads of the launch.
    """

    def __init__(
        self,
        rows: Sequence[MachineInstruction],
        origins: Sequence[int],
        blocks: Sequence[BasicBlock],
        edges: Sequence[Edge],
        ptx: PtxCounts,
        entering: float,
    ) -> None:
        self.rows, self.blocks, self.edges, self.ptx, self.entering = rows, blocks, edges, ptx, entering
        self.into: list[list[int]] = [[] for _ in blocks]
        self.out: list[list[int]] = [[] for _ in blocks]
        for number, edge in enumerate(edges):
            if edge.target != OUTSIDE:
                self.into[edge.target].append(number)
            if edge.source != OUTSIDE:
                self.out[edge.source].append(number)
        # A function that is called is entered by a quantity of its own, the sum of its calls.
        called = sorted({head for block in blocks for head in block.calls})
        self.calls = {head: len(edges) + k for k, head in enumerate(called)}
        self.of_row = np.zeros(len(rows), int)
        for block in blocks:
            self.of_row[block.first : block.end] = block.index
        # Rows by the PTX that they come from, where the simulator counted it.
        self.rows_of: dict[int, list[int]] = {}
        for number, at in enumerate(origins):
            if at in ptx.blocks and tells(rows[number], ptx.blocks[at][0][1]):
                self.rows_of.setdefault(at, []).append(number)
        self.kinds = {at: kind_of(ptx.blocks[at][0][1]) for at in self.rows_of}
        self.busiest = self._busiest()
        self.homes = self._homes()
        self.copies = self._copies()
        self.loops = machine_loops(blocks, edges)
        self.sides = self._sides(origins)
        self._solve()

    # -- what is known --------------------------------------------------------------------------------------------

    def _busiest(self) -> list[float]:
        """Return, for each block, how often the PTX of its most frequent instruction ran."""
        result = [0.0] * len(self.blocks)
        for at, where in self.rows_of.items():
            for number in where:
                if not self.rows[number].predicate:
                    block = int(self.of_row[number])
                    result[block] = max(result[block], self.ptx.threads(at))
        return result

    def _homes(self) -> dict[int, set[int]]:
        """Return the PTX blocks that the instructions of each block that mostly stay where they are come from."""
        result: dict[int, set[int]] = {}
        for at, where in self.rows_of.items():
            if self.kinds[at] in ("stays", "mostly", "float"):
                for number in where:
                    result.setdefault(int(self.of_row[number]), set()).add(self._own(at))
        return result

    def _own(self, at: int) -> int:
        return self.ptx.blocks[at][0][0].index

    def _copies(self) -> dict[tuple[int, int], float]:
        """Return how many copies of a PTX block a block holds, by the numbers of both, where it is more than one.

        Only loops are unrolled. Most instructions tell that stand one for one; those with which a loop counts are not
        copied, and some are written twice for another reason.
        """
        votes: dict[tuple[int, int], dict[float, float]] = {}
        for at in self.rows_of:
            kind, own = self.kinds[at], self._own(at)
            if kind not in ("branch", "integer") and self.ptx.around(own) and not self._predicated(at):
                for block, copies in self._standing(at).items():
                    here = votes.setdefault((own, block), {})
                    here[copies] = here.get(copies, 0.0) + WEIGHTS[kind]
        most = {key: max(here, key=lambda copies: (here[copies], copies)) for key, here in votes.items()}
        return {key: copies for key, copies in most.items() if copies > 1}

    def _predicated(self, at: int) -> bool:
        return any(self.rows[number].predicate for number in self.rows_of[at])

    def _standing(self, at: int) -> dict[int, float]:
        """Return, for each block, how often a PTX instruction stands in it.

        Of one that becomes several machine instructions, such as a square root with a branch inside, the rarest of
        these stands for all.
        """
        where = self.rows_of[at]
        often = Counter(opcode(self.rows[number]) for number in where)
        rarest = min(often, key=lambda name: (often[name], name != "MUFU"))
        per_block = Counter(int(self.of_row[number]) for number in where if opcode(self.rows[number]) == rarest)
        one = len(often) == 1 and rarest in _ONE and self.ptx.blocks[at][0][1].opcode not in ("wmma", "mma")
        least = 1 if one else min(per_block.values())
        return {block: number / least for block, number in per_block.items()}

    def _sides(self, origins: Sequence[int]) -> dict[int, tuple[float, float]]:
        """Return, for each edge at a branch that stands for one of the PTX, the threads and warps that took that side.

        A jump of the machine code may be taken where that of the PTX is not. Which side is which, the PTX blocks tell
        that the code on either side comes from.
        """
        places: dict[int, set[int]] = {}
        for number, at in enumerate(origins):
            if opcode(self.rows[number]) == "BSYNC":  # has the line of whatever stands near
                continue
            places.setdefault(int(self.of_row[number]), set()).update(b.index for b, _ in self.ptx.blocks.get(at, ()))
        following = [block.successors() for block in self.ptx.every]
        jumps = {at for at, row in zip(origins, self.rows, strict=True) if opcode(row) in ("BRA", "EXIT")}
        result: dict[int, tuple[float, float]] = {}
        for block in self.blocks:
            last = block.end - 1
            known = [b for b in map(self._deciding, self.ptx.blocks.get(origins[last], ())) if b is not None]
            ways = self.out[block.index]
            if len(known) != 1 or len(ways) != 2 or opcode(self.rows[last]) != "BRA":
                continue
            own = known[0]
            taken, onward = reached([own.target], following, own.index), reached([own.index + 1], following, own.index)
            score = 0.0
            for number, sign in zip(ways, (1, -1), strict=True):
                here = self._first(number, own.index, places)
                score += sign * (
                    _likeness(here, own.target, taken - onward) - _likeness(here, own.index + 1, onward - taken)
                )
            if score:
                both = self._ways(own, jumps)
                result.update(zip(ways, both if score > 0 else both[::-1], strict=True))
        return result

    def _deciding(self, place: tuple[Block, Instruction]) -> Block | None:
        """Return the PTX block whose branch a jump of the machine code stands for: the block that it comes from, or,
        where it comes from a jump that a branch leads past, the block of that branch."""
        block = place[0]
        if block.end == BRANCH:
            return block
        before = self.ptx.every[block.index - 1] if block.index and block.end == JUMP else block
        return before if before.end == BRANCH and before.target == block.index + 1 else None

    def _ways(self, own: Block, jumps: set[int]) -> list[tuple[float, float]]:
        """Return the threads and warps that took a branch of the PTX, and those that did not.

        With them go those of the branches before it that the assembler has made one condition of with it, as of
        `a && b`: they lead to the same two blocks, and have none of the machine code's `jumps`.
        """
        flow, k = self.ptx.flow, own.index
        taken = flow.taken_threads[k], flow.taken_warps[k]
        onward = flow.threads[k] - flow.taken_threads[k], flow.warps[k] + flow.parted[k] - flow.taken_warps[k]
        while k and (before := self.ptx.every[k - 1]).end == BRANCH and before.last and before.last.at not in jumps:
            k -= 1
            more = flow.taken_threads[k], flow.taken_warps[k]
            if before.target == own.target:
                taken = taken[0] + more[0], min(flow.warps[k], taken[1] + more[1])
            elif before.target == own.index + 1:
                onward = onward[0] + more[0], min(flow.warps[k], onward[1] + more[1])
            else:
                break
        return [taken, onward]

    def _first(self, number: int, own: int, places: dict[int, set[int]]) -> set[int]:
        """Return the PTX blocks that the first code on the way along an edge comes from, not the branch's `own`."""
        block = self.edges[number].target
        for _ in self.blocks:
            if block == OUTSIDE:
                break
            here = places.get(block, set())
            if not here <= {own} or len(self.out[block]) != 1:
                return here
            block = self.edges[self.out[block][0]].target
        return set()

    # -- the linear program ---------------------------------------------------------------------------------------

    def _runs(self, block: int, factor: float = 1.0) -> list[tuple[int, float]]:
        """Return the terms whose sum is how often a block ran."""
        own = [(number, factor) for number in self.into[block]]
        return [*own, (self.calls[block], factor)] if block in self.calls else own

    def _solve(self) -> None:
        cost = [0.0] * (len(self.edges) + len(self.calls))
        for block in self.blocks:
            for number, factor in self._runs(block.index):
                cost[number] += 1e-6 * factor * (block.end - block.first)
        self.program = LeastDeviation(len(cost), cost)
        self._conserve()
        for at in self.rows_of:
            self._instruction(at)
        self._trips()
        found = self.program.solve() * self.entering
        self.flows = found[: len(self.edges)]
        self.threads = np.array([sum(found[n] * f for n, f in self._runs(block.index)) for block in self.blocks])

    def _near(self, terms, value: float, weight: float, scale: float = 0.0) -> None:
        """Count being off as a share of `value`, or of `scale` if that is more: of a loop that runs a thousand times,
        one more trip is little."""
        value, scale = value / self.entering, max(value, scale) / self.entering
        self.program.near(terms, value, weight / (scale + _NEARLY_NOTHING))

    def _conserve(self) -> None:
        self.program.equal([(0, 1.0)], 1.0)
        for block in self.blocks:
            if block.ends != "return" and self.out[block.index]:
                self.program.equal(self._runs(block.index) + [(n, -1.0) for n in self.out[block.index]], 0.0)
        for head, quantity in self.calls.items():
            terms = [(quantity, -1.0)]
            for block in self.blocks:
                if head in block.calls:
                    terms += self._runs(block.index, float(block.calls.count(head)))
            self.program.equal(terms, 0.0)
            if "slowpath" in self.rows[self.blocks[head].first].function:  # for rare arguments
                self.program.near([(quantity, 1.0)], 0.0, _SLOW_PATH)

    def _instruction(self, at: int) -> None:
        kind = self.kinds[at]
        if kind == "branch":
            self._exits(at)
            self._branch(at)
        elif self._predicated(at):
            return  # its block may run more often than the instruction
        standing = {k: self.copies.get((self._own(at), k), 1.0) for k in self._standing(at)}
        terms = [term for block, copies in standing.items() for term in self._runs(block, copies)]
        # Arithmetic of a rare case is often computed in advance, where others are busy.
        moves = kind not in ("stays", "mostly")
        scale = max((self.busiest[block] for block in standing), default=0.0) if moves else 0.0
        self._near(terms, self._passing(at), WEIGHTS[kind], scale)

    def _passing(self, at: int) -> float:
        """Return the threads that ran an instruction; at a branch also those that the assembler has led there."""
        jumps = [number for number in self.rows_of[at] if opcode(self.rows[number]) == "BRA"]
        ways = self.out[int(self.of_row[jumps[0]])] if len(jumps) == 1 else []
        if self.kinds[at] == "branch" and ways and all(number in self.sides for number in ways):
            return sum(self.sides[number][0] for number in ways)
        return self.ptx.threads(at)

    def _exits(self, at: int) -> None:
        """Demand that an exit under a predicate that stands for a branch to the end ends as many threads."""
        flow = self.ptx.flow
        exits = {int(self.of_row[number]) for number in self.rows_of[at] if opcode(self.rows[number]) == "EXIT"}
        terms = [(k, 1.0) for k, edge in enumerate(self.edges) if edge.target == OUTSIDE and edge.source in exits]
        for block, _ in self.ptx.blocks[at]:
            if not terms or block.end != BRANCH:
                continue
            taken = flow.taken_threads[block.index]
            if self.ptx.every[block.target].only_ends:
                self._near(terms, taken, WEIGHTS["stays"])
            elif self.ptx.every[block.index + 1].only_ends:
                self._near(terms, flow.threads[block.index] - taken, WEIGHTS["stays"])

    def _branch(self, at: int) -> None:
        """Demand that as many threads go either way where a branch of the PTX is a single one in the machine code."""
        jumps = [number for number in self.rows_of[at] if opcode(self.rows[number]) == "BRA"]
        if len(jumps) == 1 and not any(own == self._own(at) for own, _ in self.copies):
            ways = self.out[int(self.of_row[jumps[0]])]
            for number in ways:
                if number in self.sides:
                    threads = sum(self.sides[way][0] for way in ways)
                    self._near([(number, 1.0)], self.sides[number][0], _SIDE, threads)

    def _trips(self) -> None:
        trips = self.ptx.flow.trips
        most = max((max(own, default=1) for own in trips.values()), default=1)
        for head, inside in self.loops.items():  # nobody goes round who has not come in
            near = {around for n in inside for home in self.homes.get(n, ()) for around in self.ptx.around(home)}
            limit = max((max(trips[around], default=1) for around in near), default=most)
            terms = [(n, 1.0 if self.edges[n].source in inside else -float(limit)) for n in self.into[head]]
            self.program.at_most_zero([*terms, *((q, -float(limit)) for h, q in self.calls.items() if h == head)])
        for own in {own for own, _ in self.copies}:
            if self.ptx.around(own):
                self._unrolled(own, self.ptx.around(own)[-1])

    def _unrolled(self, own: int, ptx_head: int) -> None:
        """Share a loop's trips out to blocks that hold different numbers of them: as many as fit go through the one
        that holds most, what is left through the next, and so on."""
        trips = {float(number): threads for number, threads in self.ptx.flow.trips[ptx_head].items()}
        held = {block: self.copies.get((own, block), 1.0) for block, inside in self.homes.items() if own in inside}
        for bypass in self._bypasses(held):
            self._near([(bypass, 1.0)], 0.0, _SIDE, self.ptx.flow.threads[ptx_head])
        for copies in sorted(set(held.values()), reverse=True):
            here = [block for block, number in held.items() if number == copies]
            run = come = 0.0
            rest: dict[float, float] = {}
            for number, threads in trips.items():
                run += threads * (number // copies)
                come += threads * (number >= copies)
                rest[number % copies] = rest.get(number % copies, 0) + threads
            trips = rest
            self._near([term for block in here for term in self._runs(block)], run, _TRIPS)
            entries = self._entries(here[0], range(ptx_head, self.ptx.loops[ptx_head] + 1)) if len(here) == 1 else []
            if entries:
                self._near(entries, come, _TRIPS)

    def _bypasses(self, held: dict[int, float]) -> list[int]:
        """Return the edges that lead past all blocks with several trips to those with the fewest.

        The assembler writes them for loops without a trip, which PTX has ruled out before.
        """
        most, least = max(held.values()), min(held.values())
        if most == least:
            return []
        onward: list[list[int]] = [[] for _ in self.blocks]  # without the ways back
        for edge in self.edges:
            if OUTSIDE not in edge and edge.source not in self.loops.get(edge.target, ()):
                onward[edge.source].append(edge.target)
        after = [reached([block.index], onward, OUTSIDE) for block in self.blocks]
        large = {block for block, copies in held.items() if copies > least}
        small = held.keys() - large
        behind = {block for one in large for block in after[one]}
        return [
            number
            for number, (source, target, _) in enumerate(self.edges)
            if OUTSIDE not in (source, target)
            and source not in behind
            and not large.isdisjoint(after[source])
            and large.isdisjoint(after[target])
            and not small.isdisjoint(after[target])
        ]

    def _entries(self, block: int, inside_ptx: range) -> list[tuple[int, float]]:
        """Return the edges into the innermost loop around a block, if it is a loop of these PTX blocks alone."""
        around = [head for head, inside in self.loops.items() if block in inside]
        if not around:
            return []
        head = min(around, key=lambda number: len(self.loops[number]))
        inside = self.loops[head]
        if any(home not in inside_ptx for number in inside for home in self.homes.get(number, ())):
            return []
        return [(k, 1.0) for k in self.into[head] if self.edges[k].source not in inside]


def _likeness(here: set[int], block: int, region: set[int]) -> float:
    """Return how much code that comes from the PTX blocks `here` looks like the side of a branch that begins with
    `block` and alone leads to `region`."""
    return 3.0 * (block in here) + len(here & region) / (len(here) or 1)


def reached(starts: Sequence[int], following: Sequence[Sequence[int]], without: int) -> set[int]:
    """Return blocks that control comes to from `starts`, these among them, without passing a block again."""
    found: set[int] = set()
    work = [number for number in starts if number < len(following)]
    while work:
        number = work.pop()
        if number not in found and number not in (without, OUTSIDE):
            found.add(number)
            work += following[number]
    return found
