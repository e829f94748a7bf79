"""Vertical fusion: convolution, bias and ReLU (ReLU6, SiLU) become one `cbr`, whose kernel applies both before it
writes.

A dense layer is a convolution of one pixel by filters of 1 × 1, so it becomes a cbr, too.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from kernels.fusion.graph import Graph, Node
from kernels.fusion.graph.functions import MOST
from kernels.fusion.passes.rewriting import is_plain, main_weight, repeated, swapped


def fuse_vertical(graph: Graph) -> Graph:
    """Return the graph with a cbr for every conv and dense, and for the activation behind it if nobody else reads what
    it reads."""
    return repeated(
        "fuse_vertical", "cbr", "made", graph, lambda g: _make_swish(g) or _fuse_activation(g) or _make_cbr(g)
    )


def _fuse_activation(graph: Graph) -> tuple[Graph, str] | None:
    for node in graph.nodes:
        if (activation := activation_of(node)) is None:
            continue
        layer = graph.only_writer(node.inputs[0])
        if layer is None or graph.only_reader(node.inputs[0]) is not node:
            continue
        again = layer.op == "cbr" and node.op == "relu" and not layer.attributes["swish"]
        if layer.op in ("conv", "dense") or again or (layer.op == "cbr" and is_plain(layer)):
            fused = replace(_cbr(layer), outputs=node.outputs).with_attributes(**activation)
            return swapped(graph, [layer, node], fused), f"{layer.name} + {node.name}"
    return None


def _make_swish(graph: Graph) -> tuple[Graph, str] | None:
    """x · σ(x), as most write SiLU, in one node."""
    for product in graph.nodes:
        if product.op != "mul":
            continue
        for x, gate in (product.inputs, product.inputs[::-1]):
            sigmoid = graph.only_writer(gate)
            if sigmoid and (sigmoid.op, sigmoid.inputs) == ("sigmoid", (x,)) and graph.only_reader(gate) is product:
                swish = Node(product.name, "swish", (x,), product.outputs)
                return swapped(graph, [sigmoid, product], swish), f"{sigmoid.name} + {product.name}"
    return None


def activation_of(node: Node) -> dict[str, Any] | None:
    """Return a cbr's attributes for what a node computes; None where it is no activation of a cbr."""
    given = node.attributes
    if node.op == "relu":
        return {"relu": True}
    if node.op == "clip" and given["alpha"] == 0 and 0 < given["beta"] < MOST:
        return {"relu": True, "most": given["beta"]}
    return {"swish": True} if node.op == "swish" and given["alpha"] == 1 else None


def _make_cbr(graph: Graph) -> tuple[Graph, str] | None:
    for node in graph.nodes:
        if node.op in ("conv", "dense"):
            return swapped(graph, [node], _cbr(node)), node.name
    return None


def _cbr(layer: Node) -> Node:
    """Return a conv or dense as a cbr without ReLU; a cbr as it is."""
    if layer.op == "cbr":
        return layer
    filters = layer.weights[main_weight(layer)]
    weights = {"filters": filters if filters.ndim == 4 else filters[:, :, None, None]}
    weights["bias"] = layer.weights.get("bias", np.zeros(len(filters), np.float32))
    if "filter_scales" in layer.weights:
        weights["filter_scales"] = layer.weights["filter_scales"]
    return Node(layer.name, "cbr", layer.inputs, layer.outputs, layer.attributes, weights)
