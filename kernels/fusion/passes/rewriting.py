"""What passes share: the line that each prints, and small questions about nodes."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from kernels.fusion.graph import Graph, Node, Slice, Tensor

FOLLOWERS = ("max_pool", "average_pool", "lrn")  # whose results lie as what they read, type and layout

# One rewrite: the graph after it and what it did in a few words, or None where there is nothing (more) to do.
Rewrite = Callable[[Graph], tuple[Graph, str] | None]


def repeated(name: str, noun: str, verb: str, graph: Graph, rewrite: Rewrite) -> Graph:
    """Apply `rewrite` until it finds nothing more, then print what it did, such as noun "batch norm", verb "folded"."""
    done = []
    while found := rewrite(graph):
        graph, text = found
        done.append(text)
    report(name, noun, verb, done)
    return graph


def report(name: str, noun: str, verb: str, done: Sequence[str]) -> None:
    """Print the pass's line: how many rewrites, of what, and each of them."""
    print(f"{name}: {counted(len(done), noun)} {verb}: {', '.join(done)}" if done else f"{name}: nothing to do")


def counted(count: int, noun: str) -> str:
    """Return words such as "1 conversion" and "2 conversions"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def is_plain(node: Node) -> bool:
    """Return whether the node is linear, so that what follows can go into its weights: a conv, a dense, a batch norm,
    or a bare cbr.

    A cbr with an activation or a residual is not, and the scales of an INT8 one are settled.
    """
    if node.op in ("conv", "dense", "batch_norm"):
        return True
    active = node.op == "cbr" and (node.attributes["relu"] or node.attributes["swish"])
    bare = node.op == "cbr" and not active and len(node.inputs) == 1
    return bare and node.attributes["precision"] == "float32"


def main_weight(node: Node) -> str:
    """Return the name of the weight that multiplies the input; its first axis counts the outputs."""
    return {"dense": "matrix", "batch_norm": "gamma"}.get(node.op, "filters")


def scaled(layer: Node, factor: np.ndarray, shift: np.ndarray) -> Node:
    """Return a plain node that makes y * factor + shift of what it made, y, with one number per channel."""
    main, bias = main_weight(layer), "beta" if layer.op == "batch_norm" else "bias"
    weights = {name: array.astype(np.float64) for name, array in layer.weights.items()}
    found = {main: (weights[main].T * factor).T, bias: weights.get(bias, 0.0) * factor + shift}
    if "filter_scales" in weights:
        found["filter_scales"] = weights["filter_scales"] * np.where(
            factor, np.abs(factor), 1
        )  # zeros lie on any steps
    return layer.with_weights(**found)


def swapped(
    graph: Graph, old: Sequence[Node], new: Node, tensors: Iterable[Tensor] = (), before: Iterable[Node] = ()
) -> Graph:
    """Return the graph with `new` where the last of the nodes `old` was; these are gone. `before`: nodes that `new`
    needs."""
    last = max(graph.nodes.index(node) for node in old)
    nodes = [new if i == last else node for i, node in enumerate(graph.nodes) if i == last or node not in old]
    return graph.rebuilt([*before, *nodes], tensors)


def moved(node: Node, places: Mapping[str, tuple[str, int]]) -> Node:
    """Return the node writing to other tensors. `places`: by tensor the one that takes its place, from which channel
    on."""
    outputs = (
        Slice(places[part.tensor][0], places[part.tensor][1] + part.start, part.channels)
        if part.tensor in places
        else part
        for part in node.outputs
    )
    return replace(node, outputs=tuple(outputs))


def unused(name: str, taken: Collection[str]) -> str:
    """Return the name, with primes behind it where it is taken."""
    while name in taken:
        name += "'"
    return name
