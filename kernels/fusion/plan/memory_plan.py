"""A static memory plan: where each tensor lies in one allocation, so that tensors that are never alive at once share.

A tensor is alive from the first launch that writes it to the last that reads it; the graph's inputs from the start, its
outputs to the end. The largest are placed first, each at the lowest offset where it meets no tensor that lives when it
does (greedy by size: Pisarchyk and Lee, 2020, arXiv 2001.03288).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernels.fusion.graph import Graph
from warplab.text.tables import Column, Table, quantity

ALIGNMENT = 256  # bytes, as cudaMalloc aligns: vector loads need 16
RENAMED = ("identity", "dropout", "flatten", "reshape")  # operators whose output is their input under another name
WITHOUT_LAUNCH = (*RENAMED, "constant")


class MemoryPlanError(ValueError):
    """A plan in which a tensor does not lie where it can: the message names it."""


@dataclass(frozen=True)
class Placed:
    """A tensor in the allocation: `nbytes` from `offset` on, alive in the launches `first` to `last`."""

    tensor: str
    first: int
    last: int
    offset: int
    nbytes: int

    @property
    def end(self) -> int:
        """Return the byte after the last."""
        return self.offset + self.nbytes

    def meets(self, other: Placed) -> bool:
        """Return whether both are alive in some launch."""
        return self.first <= other.last and other.first <= self.last

    def overlaps(self, other: Placed) -> bool:
        """Return whether they share memory."""
        return self.offset < other.end and other.offset < self.end


@dataclass(frozen=True)
class MemoryPlan:
    """`placed`: the tensors that have memory of their own. `owners`: by tensor the one in whose memory it lies."""

    placed: tuple[Placed, ...]
    owners: dict[str, str]
    launches: int

    @property
    def nbytes(self) -> int:
        """Return bytes of the allocation."""
        return _aligned(max((p.end for p in self.placed), default=0))

    @property
    def nbytes_without_reuse(self) -> int:
        """Return bytes if no two tensors shared memory."""
        return sum(_aligned(p.nbytes) for p in self.placed)

    @property
    def most_alive(self) -> int:
        """Return bytes that are alive in one launch, at most: no plan needs less."""
        return max(
            (sum(p.nbytes for p in self.placed if p.first <= i <= p.last) for i in range(self.launches)), default=0
        )

    @property
    def rows(self) -> list[tuple[str, int, int, int, int]]:
        """Return (tensor, first launch, last launch, offset, bytes), in the order of their first launch."""
        return sorted(
            ((p.tensor, p.first, p.last, p.offset, p.nbytes) for p in self.placed), key=lambda r: (r[1], r[3])
        )

    def offset(self, tensor: str) -> int:
        """Return where a tensor begins."""
        owner = self.owners[tensor]
        return next(p.offset for p in self.placed if p.tensor == owner)

    def __str__(self) -> str:
        columns = [
            Column("tensor", "left"),
            Column("written by"),
            Column("read until"),
            Column("offset"),
            Column("bytes"),
        ]
        table = Table(columns, [[name, str(a), str(b), f"{o:,}", f"{n:,}"] for name, a, b, o, n in self.rows])
        sizes = ", ".join(
            f"{quantity(size, 'B')} {what}"
            for size, what in (
                (self.nbytes_without_reuse, "without reuse"),
                (self.nbytes, "with reuse"),
                (self.most_alive, "alive at once at most"),
            )
        )
        return f"{table.text()}\n{sizes}"


def plan(graph: Graph, batch: int = 1, *, reuse: bool = True, side_by_side: bool = False) -> MemoryPlan:
    """Return the plan for a graph and a batch. `reuse`: False gives each tensor memory of its own.

    `side_by_side`: tensors share memory only where the graph itself says that one is done with before the other, so
    that launches which could run at once need not wait for memory.
    """
    owners = _owners(graph)
    apart = _Order(graph, owners) if side_by_side else None
    lives, launches = lifetimes(graph, owners)
    sizes = {name: batch * graph.tensors[name].nbytes for name in lives}
    placed: list[Placed] = []
    for name in sorted(lives, key=lambda name: (-sizes[name], lives[name])):
        first, last = lives[name] if reuse else (0, launches)
        alive = [p for p in placed if (p.first <= last and first <= p.last) or (apart and not apart(p.tensor, name))]
        offset = _lowest(sizes[name], alive)
        placed.append(Placed(name, first, last, offset, sizes[name]))
    if not reuse:
        placed = [Placed(p.tensor, *lives[p.tensor], p.offset, p.nbytes) for p in placed]
    return MemoryPlan(tuple(placed), owners, launches)


def check(found: MemoryPlan, graph: Graph, batch: int) -> None:
    """Raise MemoryPlanError unless the plan is one that this graph can run in.

    Every tensor must have its bytes, aligned, and no two that live at the same time may share memory.
    """
    right = plan(graph, batch, reuse=False)
    wanted = {p.tensor: p for p in right.placed}
    given = {p.tensor: p for p in found.placed}
    if given.keys() != wanted.keys() or len(given) != len(found.placed) or found.owners != right.owners:
        wrong = sorted(given.keys() ^ wanted.keys()) or sorted(given)
        raise MemoryPlanError(f"the memory plan must place each tensor once; look at {', '.join(wrong[:4])}")
    for name, p in given.items():
        if p.offset < 0 or p.offset % ALIGNMENT or p.end > right.nbytes:
            raise MemoryPlanError(
                f"{name} begins at byte {p.offset}; it must be a multiple of {ALIGNMENT}, "
                f"and its end within {right.nbytes} bytes"
            )
        lives = wanted[name]
        if (p.first, p.last, p.nbytes) != (lives.first, lives.last, lives.nbytes):
            raise MemoryPlanError(
                f"{name} lives in launches {lives.first} to {lives.last} with {lives.nbytes} bytes; "
                f"the memory plan says {p.first} to {p.last} with {p.nbytes}"
            )
    _check_apart(list(found.placed))


def _check_apart(placed: Sequence[Placed]) -> None:
    for i, p in enumerate(placed):
        for other in placed[:i]:
            if p.meets(other) and p.overlaps(other):
                raise MemoryPlanError(
                    f"{p.tensor} and {other.tensor} share memory, both alive in launch {max(p.first, other.first)}"
                )


def launched(graph: Graph) -> list[str]:
    """Return names of the nodes that need a kernel, in order."""
    return [node.name for node in graph.nodes if node.op not in WITHOUT_LAUNCH]


def lifetimes(graph: Graph, owners: dict[str, str] | None = None) -> tuple[dict[str, tuple[int, int]], int]:
    """Return (first and last launch of each tensor that owns memory, number of launches)."""
    owners = owners or _owners(graph)
    numbers = {name: i for i, name in enumerate(launched(graph))}
    end = max(len(numbers) - 1, 0)
    lives = {owners[name]: (0, 0) for name in graph.inputs}
    for node in graph.nodes:
        if node.op == "constant":  # written when the engine is made, not in a launch
            lives[owners[node.output]] = 0, end
        if node.name not in numbers:
            continue
        now = numbers[node.name]
        for name in (*node.inputs, *(part.tensor for part in node.outputs)):
            first, last = lives.get(owners[name], (now, now))
            lives[owners[name]] = min(first, now), max(last, now)
    for name in graph.outputs:
        lives[owners[name]] = lives[owners[name]][0], end
    return lives, len(numbers)


class _Order:
    """What a graph says of the order of launches, whatever order its nodes are listed in."""

    def __init__(self, graph: Graph, owners: dict[str, str]) -> None:
        writers: dict[str, set[int]] = {}
        self._touched: dict[str, set[int]] = {}  # by tensor the launches that read or write it
        self._before: list[set[int]] = []  # by launch all those that it needs, near or far
        constants = {owners[node.output] for node in graph.nodes if node.op == "constant"}
        self._from_start = {owners[name] for name in graph.inputs} | constants
        self._to_end = {owners[name] for name in graph.outputs} | constants
        numbers = {name: i for i, name in enumerate(launched(graph))}
        for node in graph.nodes:
            if node.name not in numbers:
                continue
            now, reads = numbers[node.name], {owners[name] for name in node.inputs}
            needed = set().union(*(writers.get(name, set()) for name in reads))
            self._before.append(needed.union(*(self._before[i] for i in needed)))
            for part in node.outputs:
                writers.setdefault(owners[part.tensor], set()).add(now)
            for name in reads | {owners[part.tensor] for part in node.outputs}:
                self._touched.setdefault(name, set()).add(now)

    def __call__(self, one: str, other: str) -> bool:
        """Return whether one of two tensors is done with before the first launch that touches the other."""
        return self._done(one, other) or self._done(other, one)

    def _done(self, one: str, other: str) -> bool:
        if one in self._to_end or other in self._from_start:
            return False
        earlier = self._touched.get(one, set())
        return all(earlier <= self._before[launch] for launch in self._touched.get(other, set()))


def _owners(graph: Graph) -> dict[str, str]:
    owners = {name: name for name in graph.tensors}
    for node in graph.nodes:
        if node.op in RENAMED:
            owners[node.output] = owners[node.inputs[0]]
    return owners


def _lowest(nbytes: int, others: list[Placed]) -> int:
    """Return the lowest offset at which so many bytes overlap none of the others."""
    offset = 0
    for other in sorted(others, key=lambda p: p.offset):
        if offset + nbytes <= other.offset:
            break
        offset = max(offset, _aligned(other.end))
    return offset


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
