"""What running a graph costs when each node is a kernel of its own: launches, bytes moved, arithmetic; and the shortest
time that these allow on a card: memory and arithmetic by data sheet, a launch as measured (lab 01's recording). No
measurement of the graph.

A node reads its inputs and weights once and writes its result once. Nodes that only give a tensor another name or shape
cost nothing, in frameworks as in the engine.
"""

import math
from dataclasses import dataclass

from kernels.fusion.graph.graph import Graph
from kernels.fusion.graph.nodes import Node
from kernels.fusion.graph.operators import ITEMSIZE, as_image, with_channels
from warplab.hardware.cards import Card

FREE = {"identity", "dropout", "flatten", "reshape", "constant"}


@dataclass(frozen=True)
class Cost:
    """One launch: its node's name and operator, bytes read and written, floating-point (or integer) operations."""

    name: str
    op: str
    precision: str
    read_bytes: int
    written_bytes: int
    operations: int

    @property
    def moved_bytes(self) -> int:
        return self.read_bytes + self.written_bytes

    def peak_tflops(self, card: Card) -> float:
        """Return tera-operations per second: tensor cores for FP16, where there are any, and twice as many for INT8."""
        if self.precision == "float32":
            return card.fp32_tflops
        return (card.tensor_tflops or card.fp16_tflops) * (2 if self.precision == "int8" else 1)

    def seconds(self, card: Card) -> dict[str, float]:
        """Return seconds by cause: the launch, and after it memory or arithmetic, whichever takes longer; the other is
        0.

        ValueError for a card whose launch overhead nobody measured.
        """
        if card.launch_overhead_us is None:
            raise ValueError(f"nobody measured the {card.name}'s launch overhead; take a card with launch_overhead_us")
        memory = self.moved_bytes / (card.bandwidth_gbs * 1e9)
        arithmetic = self.operations / (self.peak_tflops(card) * 1e12)
        return {
            "launch": card.launch_overhead_us * 1e-6,
            "memory": memory if memory >= arithmetic else 0.0,
            "arithmetic": arithmetic if arithmetic > memory else 0.0,
        }


def costs(graph: Graph, batch: int = 1) -> list[Cost]:
    """Return the launches of a graph, in order, for `batch` samples."""
    return [_cost(graph, node, batch) for node in graph.nodes if node.op not in FREE]


def total(graph: Graph, batch: int = 1) -> tuple[int, int, int]:
    """Return launches, bytes moved and operations of a graph for `batch` samples."""
    rows = costs(graph, batch)
    return len(rows), sum(row.moved_bytes for row in rows), sum(row.operations for row in rows)


def seconds(graph: Graph, card: Card, batch: int = 1) -> dict[str, float]:
    """Return seconds by cause, all launches together: a lower bound, as `Cost.seconds` has it."""
    rows = [row.seconds(card) for row in costs(graph, batch)]
    return {cause: sum(row[cause] for row in rows) for cause in ("launch", "memory", "arithmetic")}


def multiply_adds(node: Node, graph: Graph) -> int:
    """Return products of one sample in a convolution, a cbr or a dense layer; 0 for all others."""
    if node.op not in ("conv", "cbr", "dense"):
        return 0
    pixels = math.prod(as_image(graph.tensors[node.outputs[0].tensor].shape)[1:])
    return node.weights["matrix" if node.op == "dense" else "filters"].size * pixels


def _cost(graph: Graph, node: Node, batch: int) -> Cost:
    precision = node.attributes.get("precision", "float32")
    read = sum(graph.tensors[name].nbytes for name in node.inputs)
    written = 0
    for part in node.outputs:
        tensor = graph.tensors[part.tensor]
        written += tensor.nbytes * part.channels // tensor.channels
    elements = sum(math.prod(with_channels(graph.tensors[part.tensor].shape, part.channels)) for part in node.outputs)
    products = multiply_adds(node, graph)
    operations = 2 * products if products else elements
    return Cost(
        node.name, node.op, precision, batch * read + _weights(node, precision), batch * written, batch * operations
    )


def _weights(node: Node, precision: str) -> int:
    """Return the bytes of weights: filters in the node's precision, all others in float32."""
    return sum(values.size * (ITEMSIZE[precision] if name == "filters" else 4) for name, values in node.weights.items())
