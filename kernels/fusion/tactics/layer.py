"""`Layer`: a node of a graph with the tensors that it touches and the batch: all that a tactic is chosen and run by."""

import json
from dataclasses import dataclass
from typing import Any

from kernels.fusion.graph import Graph
from kernels.fusion.graph.nodes import Node, Slice, Tensor


@dataclass(frozen=True)
class Layer:
    """One node as it runs.

    `reads`: the tensors of its inputs, in order. `writes`: the slices of its outputs, each with the tensor that it is
    a part of. `batch`: images.
    """

    node: Node
    reads: tuple[Tensor, ...]
    writes: tuple[tuple[Slice, Tensor], ...]
    batch: int

    @property
    def key(self) -> str:
        """Return what a timing depends on beside the device, as text: operator, sizes, types, layouts, batch; not
        weights."""
        weights = {name: list(values.shape) for name, values in sorted(self.node.weights.items())}
        attributes = {
            name: list(value) if isinstance(value, tuple) else value for name, value in self.node.attributes.items()
        }
        about = {
            "op": self.node.op,
            "batch": self.batch,
            "reads": [_about(tensor) for tensor in self.reads],
            "writes": [[part.start, part.channels, *_about(tensor)] for part, tensor in self.writes],
            "attributes": dict(sorted(attributes.items())),
            "weights": weights,
        }
        return json.dumps(about, separators=(",", ":"))

    def __str__(self) -> str:
        return f"{self.node.name} ({self.node.op}, batch {self.batch})"


def _about(tensor: Tensor) -> list[Any]:
    return [list(tensor.shape), tensor.dtype, tensor.layout]


def layers(graph: Graph, batch: int) -> list[Layer]:
    """Return the graph's layers in the order in which they run. ValueError for a batch that is no whole number above
    0."""
    if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
        raise ValueError(f"batch is {batch!r}; it must be a whole number, at least 1")
    return [
        Layer(
            node,
            tuple(graph.tensors[name] for name in node.inputs),
            tuple((part, graph.tensors[part.tensor]) for part in node.outputs),
            batch,
        )
        for node in graph.nodes
    ]
