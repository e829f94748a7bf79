"""A network as a graph: nodes in the order in which they run, and the tensors between them.

Everything is immutable: a pass returns a new `Graph`, which checks itself. A node reads whole tensors and writes
slices, ranges of a tensor's channels. Before any pass, each node writes one whole tensor. Later several nodes may write
side by side into one tensor, which is then ready when the last of them has run, and a `cbr` may write its filters'
results to several slices, of one tensor or of several.

Shapes are of one sample, and say (channels, height, width) whatever the layout; the batch is the engine's.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kernels.fusion.graph.nodes import GraphError, Node, Slice, Tensor
from kernels.fusion.graph.validate import check


@dataclass(frozen=True, eq=False)
class Graph:
    """A network. GraphError unless every tensor is known, written once and before it is read, and all shapes fit.

    `nodes`: in the order in which they run. `tensors`: by name. `inputs`, `outputs`: names of tensors, float32 in NCHW
    (or in any layout that puts them into the same order).
    """

    name: str
    nodes: tuple[Node, ...]
    tensors: Mapping[str, Tensor]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ("nodes", "inputs", "outputs"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "tensors", MappingProxyType(dict(self.tensors)))
        check(self)

    def node(self, name: str) -> Node:
        """Return the node of that name; GraphError if there is none."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise GraphError(f"graph {self.name!r} has no node {name!r}; it has {', '.join(n.name for n in self.nodes)}")

    def writers(self, tensor: str) -> list[Node]:
        """Return the nodes that write a tensor or slices of it; none for the graph's inputs."""
        return list(self._writers.get(tensor, ()))

    def readers(self, tensor: str) -> list[Node]:
        """Return the nodes that read a tensor, one of them twice if it reads it twice (such as add(x, x))."""
        return list(self._readers.get(tensor, ()))

    @functools.cached_property
    def _writers(self) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for tensor in dict.fromkeys(part.tensor for part in node.outputs):
                found.setdefault(tensor, []).append(node)
        return found

    @functools.cached_property
    def _readers(self) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for tensor in node.inputs:
                found.setdefault(tensor, []).append(node)
        return found

    def only_reader(self, tensor: str) -> Node | None:
        """Return the node that alone reads a tensor, once; None if others do, or if the tensor is an output of the
        graph.

        What fusion must ask: a tensor that is gone afterwards must be nobody else's.
        """
        readers = self.readers(tensor)
        return readers[0] if len(readers) == 1 and tensor not in self.outputs else None

    def only_writer(self, tensor: str) -> Node | None:
        """Return the node that writes this tensor, all of it, and nothing else; None if there is no such node."""
        writers = self.writers(tensor)
        return writers[0] if len(writers) == 1 and len(writers[0].outputs) == 1 else None

    def rebuilt(self, nodes: Iterable[Node], tensors: Iterable[Tensor] = ()) -> Graph:
        """Return a graph of these nodes with the same inputs and outputs.

        `nodes`: in any order; they are sorted, stably, so that each runs after what it reads. `tensors`: new ones, and
        those that replace one of the same name; tensors that nobody touches any more are left out.
        """
        return assemble(self.name, nodes, {**self.tensors, **{t.name: t for t in tensors}}, self.inputs, self.outputs)

    def __eq__(self, other: object) -> bool:
        """Return whether nodes, their order, tensors, inputs and outputs are equal."""
        if not isinstance(other, Graph):
            return NotImplemented
        fields = ("name", "nodes", "tensors", "inputs", "outputs")
        return all(getattr(self, name) == getattr(other, name) for name in fields)

    def __hash__(self) -> int:
        return hash((self.name, self.nodes, self.inputs, self.outputs))

    def __str__(self) -> str:
        """Return a line per node: name, operator, what it reads and writes."""
        first = f"{self.name}: {', '.join(self.inputs)} → {', '.join(self.outputs)}"
        width = max((len(node.name) for node in self.nodes), default=0)
        return "\n".join([first, *(self._line(node, width) for node in self.nodes)])

    def _line(self, node: Node, width: int) -> str:
        parts = []
        for part in node.outputs:
            tensor = self.tensors[part.tensor]
            whole = part.channels == tensor.channels
            size = " × ".join(map(str, tensor.shape))
            parts.append(f"{tensor.name} {size}" + ("" if whole else f" [{part.start}:{part.start + part.channels}]"))
        return f"  {node.name:<{width}}  {node.op:<19}  {', '.join(node.inputs)} → {', '.join(parts)}"


def assemble(
    name: str, nodes: Iterable[Node], tensors: Mapping[str, Tensor], inputs: Iterable[str], outputs: Iterable[str]
) -> Graph:
    """Return a graph of nodes in any order, sorted; tensors that nobody touches are left out. GraphError for a
    cycle."""
    inputs, outputs, ordered = tuple(inputs), tuple(outputs), _sorted(list(nodes))
    touched = {*inputs, *outputs}
    for node in ordered:
        touched |= {*node.inputs, *(part.tensor for part in node.outputs)}
    return Graph(name, tuple(ordered), {key: t for key, t in tensors.items() if key in touched}, inputs, outputs)


def whole(tensor: Tensor) -> tuple[Slice]:
    """Return all channels of a tensor, as `outputs` of the node that writes it."""
    return (Slice(tensor.name, 0, tensor.channels),)


def _sorted(nodes: list[Node]) -> list[Node]:
    """Return the nodes so that each comes after all writers of what it reads, otherwise in the order given."""
    missing: dict[str, int] = {}
    for node in nodes:
        for part in node.outputs:
            missing[part.tensor] = missing.get(part.tensor, 0) + 1
    ordered: list[Node] = []
    waiting: list[Node] = []
    for node in nodes:
        waiting.append(node)
        # The first that is ready, so that a graph in order stays as it is.
        while ready := next((node for node in waiting if not any(missing.get(name) for name in node.inputs)), None):
            ordered.append(ready)
            waiting = [node for node in waiting if node is not ready]
            for part in ready.outputs:
                missing[part.tensor] -= 1
    if waiting:
        raise GraphError(f"nodes {', '.join(node.name for node in waiting)} wait for each other: there is a cycle")
    return ordered
