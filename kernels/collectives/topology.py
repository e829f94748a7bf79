"""How GPUs are wired: nodes, directed edges with bandwidths, the route of each message, and what shares an edge.

GPUs are the nodes "GPU 0", "GPU 1", ...; they do not forward messages, switches, CPUs and network cards do. An edge is
a pair of nodes in one direction: links are full duplex. A step of a schedule takes as long as its busiest
edge, which carries the bytes of all messages that cross it.
"""

import functools
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kernels.collectives.schedule import Schedule, Send

Edge = tuple[str, str]

PCIE_3 = 12e9  # bytes/s: what the talks name for PCIe 3.0 × 16 (15.75e9 on the wire)
NVLINK_2 = 25e9  # bytes/s per link and direction: V100; also per link of A100, H100 and H200
INFINIBAND_EDR = 12.5e9  # 100 Gbit/s


@dataclass(frozen=True)
class Topology:
    """`edges`: bytes per second of each directed edge. `places`: where a picture puts each node, (x, y)."""

    name: str
    gpus: int
    edges: dict[Edge, float]
    places: dict[str, tuple[float, float]] = field(default_factory=dict)
    _routes: dict[tuple[int, int], tuple[Edge, ...] | None] = field(default_factory=dict, repr=False, compare=False)

    def route(self, source: int, destination: int) -> tuple[Edge, ...]:
        """Return the edges of the shortest way from one GPU to another. ValueError if there is none."""
        pair = source, destination
        if pair not in self._routes:
            self._routes[pair] = self._search(gpu(source), gpu(destination))
        route = self._routes[pair]
        if route is None:
            raise ValueError(f"{self.name}: no way leads from {gpu(source)} to {gpu(destination)}")
        return route

    def links(self) -> set[tuple[int, int]]:
        """Return the pairs (source, destination) between which a route exists: `links` of `check_schedule`."""
        pairs = [(a, b) for a in range(self.gpus) for b in range(self.gpus) if a != b]
        return {pair for pair in pairs if self._search(gpu(pair[0]), gpu(pair[1])) is not None}

    def _search(self, start: str, end: str) -> tuple[Edge, ...] | None:
        came: dict[str, str] = {start: start}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            if node == end:
                route = []
                while node != start:
                    route.append((came[node], node))
                    node = came[node]
                return tuple(reversed(route))
            if node == start or not node.startswith("GPU"):
                for following in self._neighbours[node]:
                    if following not in came:
                        came[following] = node
                        queue.append(following)
        return None

    @functools.cached_property
    def _neighbours(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for a, b in self.edges:
            found.setdefault(a, []).append(b)
            found.setdefault(b, [])
        return found


def gpu(rank: int) -> str:
    """Return the name of a GPU's node."""
    return f"GPU {rank}"


# --- What a schedule does to the edges -----------------------------------------------------------------------------


def carried(topology: Topology, sends: Iterable[Send]) -> dict[Edge, list[Send]]:
    """Return the messages that cross each edge, of one step or of many."""
    found: dict[Edge, list[Send]] = {}
    for send in sends:
        for edge in topology.route(send.source, send.destination):
            found.setdefault(edge, []).append(send)
    return found


def shared(topology: Topology, schedule: Schedule) -> dict[Edge, int]:
    """Return the edges that more than one message crosses in one step, with the most that do."""
    found: Counter[Edge] = Counter()
    for sends in schedule.by_step():
        for edge, crossing in carried(topology, sends).items():
            if len(crossing) > 1:
                found[edge] = max(found[edge], len(crossing))
    return dict(found)


def ring_edges(topology: Topology, order: Sequence[int]) -> Counter[Edge]:
    """Return how often a closed ring crosses each directed edge in one step."""
    return Counter(edge for a, b in _hops(order) for edge in topology.route(a, b))


# --- Topologies ----------------------------------------------------------------------------------------------------


def pcie_tree(gpus: int = 4, bandwidth: float = PCIE_3) -> Topology:
    """Return 4 GPUs under two PCIe switches under one CPU, or 8 under four switches under two CPUs.

    All edges have `bandwidth`, that between the CPUs too (QPI of 2016 had 19.2e9 bytes/s, so it is not the narrowest).
    GPUs under a switch talk through the switch; others through one CPU, or both.
    """
    if gpus not in (4, 8):
        raise ValueError(f"a PCIe tree of 4 or 8 GPUs is described here, not of {gpus}")
    pairs, places = [], {}
    for i in range(gpus):
        pairs.append((gpu(i), f"switch {i // 2}"))
        places[gpu(i)] = (float(i), 0.0)
    for i in range(gpus // 2):
        pairs.append((f"switch {i}", f"CPU {i // 2}"))
        places[f"switch {i}"] = (2 * i + 0.5, 1.0)
    for i in range(gpus // 4):
        places[f"CPU {i}"] = (4 * i + 1.5, 2.0)
    if gpus == 8:
        pairs.append(("CPU 0", "CPU 1"))
    return Topology(f"PCIe tree of {gpus} GPUs", gpus, _both_ways(pairs, bandwidth), places)


def leaves(topology: Topology) -> list[int]:
    """Return the GPUs of a tree in the order of a depth-first walk. ValueError if the topology is not a tree."""
    nodes = topology._neighbours
    if len(topology.edges) != 2 * (len(nodes) - 1):
        raise ValueError(f"{topology.name} is no tree: it has {len(topology.edges) // 2} links for {len(nodes)} nodes")
    found: list[int] = []
    stack, seen = [gpu(0)], set()
    while stack:
        node = stack.pop()
        seen.add(node)
        if node.startswith("GPU"):
            found.append(int(node.split()[1]))
        stack += [following for following in reversed(nodes[node]) if following not in seen]
    return found


# NVLinks between the GPUs of a DGX-1 with V100: what `nvidia-smi topo -m` shows as NV1 and NV2 there. Source: the
# output printed in https://github.com/pytorch/pytorch/blob/main/benchmarks/distributed/ddp/README.md
DGX1_LINKS = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2,
    (1, 2): 2, (1, 3): 1, (1, 5): 2,
    (2, 3): 2, (2, 6): 1,
    (3, 7): 1,
    (4, 5): 1, (4, 6): 1, (4, 7): 2,
    (5, 6): 2, (5, 7): 1,
    (6, 7): 2,
}  # fmt: skip


def cube_mesh(links: dict[tuple[int, int], int] | None = None, bandwidth: float = NVLINK_2) -> Topology:
    """Return the hybrid cube mesh of a DGX-1: 8 GPUs with NVLinks to four others each, and none to the rest.

    `links`: NVLinks per pair, by default those with V100 (six per GPU). With P100 (four per GPU) the same pairs have
    one link each: `cube_mesh(dict.fromkeys(DGX1_LINKS, 1), 20e9)`.
    """
    found = DGX1_LINKS if links is None else links
    edges: dict[Edge, float] = {}
    for (a, b), count in found.items():
        edges[gpu(a), gpu(b)] = edges[gpu(b), gpu(a)] = count * bandwidth
    corners = ((0.0, 2.0), (2.3, 2.0), (2.3, 0.0), (0.0, 0.0))  # a cube seen from the side, so that no links cover
    back = (1.05, 0.6)
    places = {gpu(i): (corners[i % 4][0] + i // 4 * back[0], corners[i % 4][1] + i // 4 * back[1]) for i in range(8)}
    return Topology("NVLink cube mesh of 8 GPUs", 8, edges, places)


def disjoint_rings(links: dict[tuple[int, int], int] | None = None) -> list[tuple[int, ...]]:
    """Return as many closed rings through all 8 GPUs of a cube mesh as share no NVLink; each runs both ways.

    The rings are found by trying all sets of Hamiltonian cycles; half of the links that a GPU has bounds their number.
    """
    found = DGX1_LINKS if links is None else links
    left = Counter({frozenset(pair): count for pair, count in found.items()})
    cycles = [(ring, [frozenset(p) for p in zip(ring, ring[1:] + ring[:1], strict=True)]) for ring in _cycles(left)]
    bound = min(sum(count for pair, count in left.items() if i in pair) for i in range(8)) // 2
    best: list[tuple[int, ...]] = []

    def add(chosen: list[tuple[int, ...]], first: int) -> bool:
        nonlocal best
        if len(chosen) > len(best):
            best = list(chosen)
        if len(best) == bound:
            return True
        for i in range(first, len(cycles)):
            ring, used = cycles[i]
            if all(left[pair] for pair in used):
                left.subtract(used)
                if add([*chosen, ring], i):  # the same ring may run twice over double links
                    return True
                left.update(used)
        return False

    add([], 0)
    return best


def nodes_on_infiniband(
    nodes: int = 2,
    per_node: int = 4,
    inside: float = 18 * NVLINK_2,
    network: float = INFINIBAND_EDR,
    cards: int = 1,
    pcie: float = 4 * PCIE_3,
) -> Topology:
    """Return nodes with an NVSwitch each, joined by InfiniBand: `cards` cards per node, shared by its GPUs in turn.

    GPU i of a node uses card i·cards // per_node. Bytes per second: `inside` of a GPU's NVLinks, `network` of a card,
    `pcie` between GPU and card (PCIe 5.0 carries four times what PCIe 3.0 does).
    """
    if nodes < 1 or per_node < 1 or not 1 <= cards <= per_node:
        raise ValueError(f"{nodes} nodes of {per_node} GPUs and {cards} cards: give at least one, and a GPU per card")
    edges: dict[Edge, float] = {}
    places = {"InfiniBand": ((nodes * (per_node + 1) - 2) / 2, -2.0)}
    for node in range(nodes):
        switch = f"NVSwitch {node}"
        left = node * (per_node + 1)
        places[switch] = (left + (per_node - 1) / 2, 1.0)
        for card in range(cards):
            name = f"card {node}.{card}"
            edges |= _both_ways([(name, "InfiniBand")], network)
            places[name] = (left + (card + 0.5) * per_node / cards - 0.5, -1.0)
        for i in range(per_node):
            name = gpu(node * per_node + i)
            edges |= _both_ways([(name, switch)], inside)  # first, so that a route inside the node takes it
            edges |= _both_ways([(name, f"card {node}.{i * cards // per_node}")], pcie)
            places[name] = (left + i, 0.0)
    return Topology(f"{nodes} nodes of {per_node} GPUs on InfiniBand", nodes * per_node, edges, places)


def _hops(ring: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(ring, [*ring[1:], ring[0]], strict=True))


def _both_ways(pairs: Iterable[Edge], bandwidth: float) -> dict[Edge, float]:
    return {edge: bandwidth for a, b in pairs for edge in ((a, b), (b, a))}


def _cycles(links: Counter[frozenset[int]]) -> list[tuple[int, ...]]:
    """List all Hamiltonian cycles once: from 0, in the direction in which the second place is less than the last."""
    found: list[tuple[int, ...]] = []

    def walk(path: list[int]) -> None:
        if len(path) == 8:
            if path[1] < path[-1] and links[frozenset((path[-1], 0))]:
                found.append(tuple(path))
            return
        for following in range(8):
            if following not in path and links[frozenset((path[-1], following))]:
                walk([*path, following])

    walk([0])
    return found
