"""What a graph is made of: tensors, the slices of them that nodes write, and nodes. All immutable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from kernels.fusion.graph.operators import ITEMSIZE, MOST_AXES, OPERATORS, PRECISIONS, Operator, Shape, as_image

LAYOUTS = ("NCHW", "NHWC")


class GraphError(ValueError):
    """A graph that cannot run: the message names the node or the tensor, and what is wrong with it."""


@dataclass(frozen=True)
class Tensor:
    """What lies between nodes.

    `shape`: of one sample, as `operators` has it. `dtype`: one of PRECISIONS. `layout`: how an image
    lies in memory. `scale`: of an INT8 tensor, the real value of one step.
    """

    name: str
    shape: Shape
    dtype: str = "float32"
    layout: str = "NCHW"
    scale: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.shape) <= MOST_AXES or not all(isinstance(n, int) and n > 0 for n in self.shape):
            raise GraphError(
                f"tensor {self.name!r} has the shape {self.shape}; it must be 1 to {MOST_AXES} whole numbers above 0"
            )
        if self.dtype not in PRECISIONS or self.layout not in LAYOUTS:
            raise GraphError(
                f"tensor {self.name!r} is {self.dtype!r} in {self.layout!r}; "
                f"choose from {', '.join(PRECISIONS)} and {', '.join(LAYOUTS)}"
            )
        if (self.dtype == "int8") != (self.scale is not None) or (self.scale is not None and not self.scale > 0):
            raise GraphError(
                f"tensor {self.name!r} is {self.dtype} with scale {self.scale}; INT8 alone has one, above 0"
            )

    @property
    def channels(self) -> int:
        """Return channels of an image, or features of a vector or of rows."""
        return as_image(self.shape)[0]

    @property
    def nbytes(self) -> int:
        """Return bytes of one sample."""
        return math.prod(self.shape) * ITEMSIZE[self.dtype]

    def same_in_memory(self) -> bool:
        """Return whether both layouts put the elements into the same order; features of rows lie as in NHWC."""
        return len(self.shape) < 3 or self.shape[0] == 1 or self.shape[1:] == (1, 1)


@dataclass(frozen=True)
class Slice:
    """Channels `start` to `start + channels` of a tensor: where a node writes."""

    tensor: str
    start: int
    channels: int


@dataclass(frozen=True, eq=False)
class Node:
    """One layer.

    `op`: a key of OPERATORS. `inputs`: names of the tensors read. `outputs`: the slices written; the operator's result
    is cut along its channels, in this order. `attributes`: those not given get the operator's defaults.
    `weights`: arrays in float32; filters as (filters, channels, height, width).
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[Slice, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.op not in OPERATORS:
            raise GraphError(f"node {self.name!r}: there is no operator {self.op!r}; known: {', '.join(OPERATORS)}")
        operator = OPERATORS[self.op]
        _check_names(self, operator)
        given = {**operator.attributes, **self.attributes}
        given = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
        object.__setattr__(self, "inputs", tuple(self.inputs))
        object.__setattr__(self, "outputs", tuple(self.outputs))
        object.__setattr__(self, "attributes", MappingProxyType(given))
        frozen = {name: _frozen(values) for name, values in self.weights.items()}
        object.__setattr__(self, "weights", MappingProxyType(frozen))

    @property
    def operator(self) -> Operator:
        """Return the row of OPERATORS."""
        return OPERATORS[self.op]

    @property
    def output(self) -> str:
        """Return the name of the one tensor written; GraphError if there are several."""
        if len(self.outputs) != 1:
            raise GraphError(f"node {self.name!r} writes {len(self.outputs)} slices, not one tensor")
        return self.outputs[0].tensor

    @property
    def channels(self) -> int:
        """Return channels of the result, over all slices."""
        return sum(part.channels for part in self.outputs)

    def with_attributes(self, **attributes: Any) -> Node:
        """Return the same node with some attributes changed."""
        return replace(self, attributes={**self.attributes, **attributes})

    def with_weights(self, **weights: np.ndarray) -> Node:
        """Return the same node with some weights changed or added."""
        return replace(self, weights={**self.weights, **weights})

    def __eq__(self, other: object) -> bool:
        """Return whether all fields are equal, weights element by element."""
        if not isinstance(other, Node):
            return NotImplemented
        fields = ("name", "op", "inputs", "outputs", "attributes")
        return (
            all(getattr(self, name) == getattr(other, name) for name in fields)
            and self.weights.keys() == other.weights.keys()
            and all(np.array_equal(values, other.weights[name]) for name, values in self.weights.items())
        )

    def __hash__(self) -> int:
        return hash((self.name, self.op, self.inputs, self.outputs))


def _check_names(node: Node, operator: Operator) -> None:
    least, most = operator.inputs
    if not least <= len(node.inputs) <= most:
        takes = f"{least}" if least == most else f"at least {least}" if most == math.inf else f"{least} or {most}"
        raise GraphError(f"node {node.name!r}: {node.op} takes {takes} inputs, not {len(node.inputs)}")
    unknown = [*(node.attributes.keys() - operator.attributes.keys())]
    unknown += node.weights.keys() - {*operator.weights, *operator.optional}
    missing = [key for key, default in operator.attributes.items() if default is None and key not in node.attributes]
    missing += [key for key in operator.weights if key not in node.weights]
    for verb, names in (("needs", missing), ("does not take", sorted(unknown))):
        if names:
            raise GraphError(f"node {node.name!r}: {node.op} {verb} {', '.join(names)}")


def _frozen(values: Any) -> np.ndarray:
    """Return a float32 view that cannot be written to."""
    array = np.ascontiguousarray(values, np.float32).view()
    array.flags.writeable = False
    return array
