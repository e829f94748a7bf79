"""Builds a graph node by node, as importers do: shapes follow from the inputs; each node writes one whole tensor."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kernels.fusion.graph.graph import Graph
from kernels.fusion.graph.nodes import GraphError, Node, Slice, Tensor
from kernels.fusion.graph.operators import Shape
from kernels.fusion.graph.validate import result_shape


def same_padding(sizes: Iterable[int], window: Shape, stride: Shape, dilation: Shape) -> tuple[Shape, Shape]:
    """Return what pads an image so that a window begins at each stride: on both axes the lesser half, and the rest."""
    ends = [
        max((-(-size // step) - 1) * step + gap * (extent - 1) + 1 - size, 0)
        for size, extent, step, gap in zip(sizes, window, stride, dilation, strict=True)
    ]
    return tuple(total // 2 for total in ends), tuple(total - total // 2 for total in ends)


class Builder:
    """A graph under construction. The output tensor of a node gets the node's name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[Node] = []
        self._tensors: dict[str, Tensor] = {}
        self._inputs: list[str] = []

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return len(self._nodes)

    def input(self, name: str, shape: Shape) -> str:
        """Add an input of the graph; return the tensor's name. `shape`: of one sample."""
        self._new(Tensor(name, tuple(shape)))
        self._inputs.append(name)
        return name

    def add(
        self,
        op: str,
        name: str,
        inputs: Iterable[str],
        weights: Mapping[str, np.ndarray] | None = None,
        **attributes: Any,
    ) -> str:
        """Add a node; return the name of the tensor that it writes. GraphError, naming the node, if it cannot run."""
        # Checked before the shape is known; the slice is filled in below.
        draft = Node(name, op, tuple(inputs), (), attributes, weights or {})
        for given in draft.inputs:
            if given not in self._tensors:
                raise GraphError(f"node {name!r} reads {given!r}, which no node before it writes")
        tensor = Tensor(name, result_shape(draft, self._tensors))
        self._new(tensor)
        slices = (Slice(name, 0, tensor.channels),)
        self._nodes.append(Node(name, op, draft.inputs, slices, draft.attributes, draft.weights))
        return name

    def shape(self, tensor: str) -> Shape:
        """Return the shape of a tensor, of one sample."""
        return self._tensors[tensor].shape

    def graph(self, *outputs: str) -> Graph:
        """Return the graph, with these tensors as its outputs."""
        return Graph(self._name, tuple(self._nodes), self._tensors, tuple(self._inputs), outputs)

    def _new(self, tensor: Tensor) -> None:
        if tensor.name in self._tensors:
            raise GraphError(f"there are two nodes or inputs named {tensor.name!r}; names must differ")
        self._tensors[tensor.name] = tensor
