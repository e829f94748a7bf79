"""Batch norm in inference is linear, γ (y - mean) / √(variance + ε) + β, and so goes into the weights before it: a
convolution's, a dense layer's or another batch norm's.

With f = γ / √(variance + ε), one number per channel, w becomes f · w and the bias f · (bias - mean) + β.
"""

from dataclasses import replace

import numpy as np

from kernels.fusion.graph import Graph, Node
from kernels.fusion.passes.rewriting import is_plain, repeated, scaled, swapped


def fold_batch_norm(graph: Graph) -> Graph:
    """Return the graph without batch norms that directly follow a convolution, dense layer or batch norm which nobody
    else reads."""
    return repeated("fold_batch_norm", "batch norm", "folded", graph, _fold_one)


def _fold_one(graph: Graph) -> tuple[Graph, str] | None:
    for norm in graph.nodes:
        if norm.op != "batch_norm":
            continue
        layer = graph.only_writer(norm.inputs[0])
        if layer is not None and is_plain(layer) and graph.only_reader(norm.inputs[0]) is norm:
            return swapped(graph, [layer, norm], _folded(layer, norm)), f"{norm.name} into {layer.name}"
    return None


def _folded(layer: Node, norm: Node) -> Node:
    gamma, beta, mean, variance = (
        norm.weights[name].astype(np.float64) for name in ("gamma", "beta", "mean", "variance")
    )
    factor = gamma / np.sqrt(variance + norm.attributes["epsilon"])
    return scaled(replace(layer, outputs=norm.outputs), factor, beta - mean * factor)
