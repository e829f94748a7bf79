"""Vertical fusion: convolution, bias and ReLU become one `cbr`, whose kernel applies both before it writes.

A dense layer is a convolution of one pixel by filters of 1 × 1, so it becomes a cbr, too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernels.fusion.graph import Graph, Node
from kernels.fusion.passes.rewriting import main_weight, repeated, swapped


def fuse_vertical(graph: Graph) -> Graph:
    """Return the graph with a cbr for every conv and dense, and for the ReLU behind it if nobody else reads what it
    reads."""
    return repeated("fuse_vertical", "cbr", "made", graph, lambda g: _fuse_relu(g) or _make_cbr(g))


def _fuse_relu(graph: Graph) -> tuple[Graph, str] | None:
    for relu in graph.nodes:
        if relu.op != "relu":
            continue
        layer = graph.only_writer(relu.inputs[0])
        if layer is None or graph.only_reader(relu.inputs[0]) is not relu:
            continue
        if layer.op in ("conv", "dense", "cbr"):
            fused = replace(_cbr(layer), outputs=relu.outputs).with_attributes(relu=True)
            return swapped(graph, [layer, relu], fused), f"{layer.name} + {relu.name}"
    return None


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
