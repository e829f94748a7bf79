"""Attention: softmax(q × kᵀ * scale + mask) × v, five nodes or more, becomes one that keeps no scores in memory.

Keys come to the first product turned; where a transpose does nothing but that, it goes, else it turns less.
"""

import numpy as np

from kernels.fusion.graph import Graph, Node, Tensor, whole
from kernels.fusion.graph.operators import Shape
from kernels.fusion.passes.rewriting import repeated, swapped, unused


def fuse_attention(graph: Graph) -> Graph:
    """Return the graph with an attention for each product, softmax and product of (heads, length, size)."""
    return repeated("fuse_attention", "attention", "fused", graph, _fuse_one)


def _fuse_one(graph: Graph) -> tuple[Graph, str] | None:
    for softmax in graph.nodes:
        if softmax.op != "softmax" or len(graph.tensors[softmax.inputs[0]].shape) != 3:
            continue
        last = graph.only_reader(softmax.output)
        if last is None or last.op != "matmul" or last.inputs[0] != softmax.output:
            continue
        gone, mask, scale, used = [softmax, last], [], 1.0, []
        scores = _behind(graph, softmax.inputs[0])
        if scores is not None and scores.op == "add":
            for given, other in (scores.inputs, scores.inputs[::-1]):
                before = _behind(graph, given)
                if before is not None and before.op in ("matmul", "mul", "div"):
                    gone, mask, scores = [scores, *gone], [other], before
                    break
        if scores is not None and scores.op in ("mul", "div"):
            factor = _number(graph, scores.inputs[1])
            if factor is None:
                continue
            scale = factor if scores.op == "mul" else 1 / factor
            used.append(scores.inputs[1])
            gone, scores = [scores, *gone], _behind(graph, scores.inputs[0])
        if scores is None or scores.op != "matmul":
            continue
        turned, scaled = graph.only_writer(scores.inputs[1]), _behind(graph, scores.inputs[1])
        if scaled is not None and scaled.op == "mul" and (factor := _number(graph, scaled.inputs[1])):
            scale *= factor
            used += [scaled.inputs[1], scaled.output]
            turned = graph.only_writer(scaled.inputs[0])
        if turned is None or turned.op != "transpose":
            continue
        pairs = (scores.output, softmax.output), (turned.output, scores.inputs[1])
        if any(graph.tensors[a].shape != graph.tensors[b].shape for a, b in pairs):  # repeated by a mask or a factor
            continue
        keys, nodes, tensors = _keys(graph, turned)
        inputs = scores.inputs[0], keys, last.inputs[1], *mask
        made = Node(last.name, "attention", inputs, last.outputs, {"scale": scale})
        unread = [_behind(graph, tensor) for tensor in (*used, turned.output)]
        gone = [*filter(None, unread), scores, *gone]
        return swapped(graph, gone, made, tensors, nodes), last.name
    return None


def _behind(graph: Graph, tensor: str) -> Node | None:
    """Return the node that writes a tensor which nobody but the next node reads."""
    return graph.only_writer(tensor) if graph.only_reader(tensor) is not None else None


def _number(graph: Graph, tensor: str) -> float | None:
    """Return the one number that a constant holds; None for what is no constant or holds several."""
    writer = graph.only_writer(tensor)
    values = np.unique(writer.weights["value"]) if writer is not None and writer.op == "constant" else []
    return float(values[0]) if len(values) == 1 and values[0] else None


def _keys(graph: Graph, turned: Node) -> tuple[str, list[Node], list[Tensor]]:
    """Return the tensor of the keys, not turned, with the node and the tensor that it takes, if any."""
    *others, a, b = turned.attributes["order"]
    order: Shape = (*others, b, a)
    if order == tuple(sorted(order)):
        return turned.inputs[0], [], []
    shape = tuple(graph.tensors[turned.inputs[0]].shape[axis] for axis in order)
    tensor = Tensor(unused(f"{turned.name} as keys", graph.tensors), shape)
    return tensor.name, [Node(tensor.name, "transpose", turned.inputs, whole(tensor), {"order": order})], [tensor]
