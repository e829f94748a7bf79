"""Explicit quantisation: a network that says itself where INT8 begins and ends, by fake quantisation.

Where a convolution reads what was fake quantised, and its filters lie on INT8's steps, its products are those of whole
numbers: it computes in INT8, and what it reads is written as INT8 by whoever makes it. No calibration, and no layer in
INT8 that the network does not name: what TensorRT calls explicit, and since version 11 has alone.
"""

from dataclasses import replace

from kernels.fusion.graph import Graph, Node, Tensor, whole
from kernels.fusion.passes.assign_precision import suits
from kernels.fusion.passes.rewriting import repeated, swapped, unused


def place_int8(graph: Graph) -> Graph:
    """Return the graph with cbrs in INT8 where fake quantisation says so; others go on in FP32."""
    return repeated("place_int8", "layer", "placed", graph, lambda g: _place_one(g) or _write_one(g))


def _place_one(graph: Graph) -> tuple[Graph, str] | None:
    for node in graph.nodes:
        if not suits(graph, node, "int8") or len(node.inputs) != 1 or "filter_scales" not in node.weights:
            continue
        rounding = graph.only_writer(node.inputs[0])
        if rounding is None or rounding.op != "fake_quantise":
            continue
        given, scale = graph.tensors[rounding.inputs[0]], rounding.attributes["alpha"]
        there = (reader for reader in graph.readers(given.name) if reader.op == "convert")
        convert = next((one for one in there if graph.tensors[one.output].scale == scale), None)
        if convert is None:
            tensor = Tensor(unused(f"{given.name} as int8", graph.tensors), given.shape, "int8", scale=scale)
            convert = Node(tensor.name, "convert", (given.name,), whole(tensor))
        else:
            tensor = graph.tensors[convert.output]
        placed = replace(node, inputs=(tensor.name,)).with_attributes(precision="int8")
        gone = [node] if graph.only_reader(rounding.output) is None else [rounding, node]
        before = [] if convert in graph.nodes else [convert]
        return swapped(graph, gone, placed, [tensor], before), node.name
    return None


def _write_one(graph: Graph) -> tuple[Graph, str] | None:
    """Let a cbr write INT8 at once that a conversion alone reads."""
    for convert in graph.nodes:
        if convert.op != "convert" or graph.tensors[convert.output].dtype != "int8":
            continue
        layer = graph.only_writer(convert.inputs[0])
        if layer is not None and layer.op == "cbr" and graph.only_reader(convert.inputs[0]) is convert:
            return swapped(graph, [layer, convert], replace(layer, outputs=convert.outputs)), convert.name
    return None
