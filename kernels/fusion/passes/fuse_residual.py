"""Residual sums: the cbr that computes one side of an addition adds the other side before it writes.

The other side becomes the cbr's second input, and an activation behind the sum becomes the cbr's own.
"""

from dataclasses import replace

from kernels.fusion.graph import Graph, Node
from kernels.fusion.passes.fuse_vertical import activation_of
from kernels.fusion.passes.rewriting import is_plain, repeated, swapped


def fuse_residual(graph: Graph) -> Graph:
    """Return the graph without additions of which one side is a cbr without ReLU, read by nobody else."""
    return repeated("fuse_residual", "addition", "fused", graph, _fuse_one)


def _fuse_one(graph: Graph) -> tuple[Graph, str] | None:
    for add in graph.nodes:
        if add.op != "add":
            continue
        # The side that is computed last, if both would do: then the other one is there.
        for main, other in sorted((add.inputs, add.inputs[::-1]), key=lambda sides: -_place(graph, sides[0])):
            layer = graph.only_writer(main)
            if layer is not None and layer.op == "cbr" and _fits(graph, layer, add, main, other):
                fused, gone = replace(layer, inputs=(*layer.inputs, other), outputs=add.outputs), [layer, add]
                behind = graph.only_reader(add.output)
                if behind is not None and (activation := activation_of(behind)):
                    fused = replace(fused, outputs=behind.outputs).with_attributes(**activation)
                    gone.append(behind)
                return swapped(graph, gone, fused), " + ".join(node.name for node in gone)
    return None


def _fits(graph: Graph, layer: Node, add: Node, main: str, other: str) -> bool:
    """Return whether the sum can go into the layer. The only reader rules out add(main, main), too."""
    same_shape = graph.tensors[main].shape == graph.tensors[other].shape
    return is_plain(layer) and same_shape and graph.only_reader(main) is add


def _place(graph: Graph, tensor: str) -> int:
    return max((i for i, node in enumerate(graph.nodes) for part in node.outputs if part.tensor == tensor), default=-1)
