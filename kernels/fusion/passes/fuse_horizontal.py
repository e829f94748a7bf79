"""Horizontal fusion: parallel 1 × 1 convolutions of one input become one with the filters of all.

The input is read once instead of once per branch, and one larger product fills the GPU better than several small ones.
Each part of the result goes straight to the tensor of its branch. Dense layers are 1 × 1 convolutions, too: those that
make queries, keys and values become one.
"""

from dataclasses import replace

import numpy as np

from kernels.fusion.graph import Graph, Node, Slice
from kernels.fusion.passes.rewriting import repeated, unused

MOST_SLICES = 4  # places that one launch can write to: the kernels take a table of this size
LONG = 200  # characters of a name: a longer one is shortened


def fuse_horizontal(graph: Graph) -> Graph:
    """Return the graph with one cbr for several 1 × 1 cbrs with the same input, activation, stride and precision."""
    return repeated("fuse_horizontal", "group", "fused", graph, _fuse_one)


def _fuse_one(graph: Graph) -> tuple[Graph, str] | None:
    groups: dict[tuple, list[Node]] = {}
    for node in graph.nodes:
        if _is_1x1(graph, node):
            groups.setdefault(_alike(graph, node), []).append(node)
    for nodes in groups.values():
        for first, start in enumerate(nodes):
            fused = [start]
            for node in nodes[first + 1 :]:
                if len(_slices([*fused, node])) <= MOST_SLICES:
                    fused.append(node)
            if len(fused) > 1:
                joined = _joined(graph, fused)
                kept = [joined if node is start else node for node in graph.nodes if node not in fused[1:]]
                return graph.rebuilt(kept), " + ".join(node.name for node in fused)
    return None


def _is_1x1(graph: Graph, node: Node) -> bool:
    if node.op != "cbr" or len(node.inputs) != 1:
        return False
    channels = graph.tensors[node.inputs[0]].channels
    return node.weights["filters"].shape[1:] == (channels, 1, 1) and not any(node.attributes["padding"])


def _alike(graph: Graph, node: Node) -> tuple:
    """Return what must be equal in all cbrs of a group."""
    written = {graph.tensors[part.tensor].dtype for part in node.outputs}
    attributes = (node.attributes[name] for name in ("stride", "relu", "most", "swish", "precision"))
    return node.inputs, *attributes, tuple(sorted(written)), tuple(sorted(node.weights))


def _joined(graph: Graph, nodes: list[Node]) -> Node:
    weights = {name: np.concatenate([node.weights[name] for node in nodes]) for name in nodes[0].weights}
    name = " + ".join(node.name for node in nodes)
    if len(name) > LONG:
        name = unused(f"{nodes[0].name[:LONG]} + {len(nodes) - 1} more", [node.name for node in graph.nodes])
    return replace(nodes[0], name=name, outputs=_slices(nodes), weights=weights)


def _slices(nodes: list[Node]) -> tuple[Slice, ...]:
    """Return the slices that all nodes write, in order; those side by side in one tensor become one."""
    found: list[Slice] = []
    for part in (part for node in nodes for part in node.outputs):
        last = found[-1] if found else None
        if last is not None and (last.tensor, last.start + last.channels) == (part.tensor, part.start):
            found[-1] = replace(last, channels=last.channels + part.channels)
        else:
            found.append(part)
    return tuple(found)
