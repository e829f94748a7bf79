"""Layers that change nothing in inference: dropout, identity, a concatenation of one, a reshape to the same shape, and
one that takes away the axes that a global pool has kept."""

from dataclasses import replace

from kernels.fusion.graph import Graph, Node
from kernels.fusion.passes.rewriting import moved, repeated, swapped


def remove_no_ops(graph: Graph) -> Graph:
    """Return the graph without nodes that return what they are given.

    One stays that copies an input of the graph, or one of its outputs, to another output: both names must exist.
    """
    return repeated("remove_no_ops", "no-op", "removed", graph, _remove_one)


def _remove_one(graph: Graph) -> tuple[Graph, str] | None:
    for node in graph.nodes:
        pool = graph.only_writer(node.inputs[0]) if node.op in ("flatten", "reshape") else None
        alone = pool is not None and graph.only_reader(pool.output) is node
        if pool and alone and pool.op == "global_average_pool" and len(graph.tensors[node.output].shape) == 1:
            flat = replace(pool, outputs=node.outputs).with_attributes(keep_axes=False)
            return swapped(graph, [pool, node], flat), node.name
        if not _changes_nothing(graph, node):
            continue
        given, result = node.inputs[0], node.output
        others = [other for other in graph.nodes if other is not node]
        if result not in graph.outputs:
            return graph.rebuilt(_renamed(other, result, given) for other in others), node.name
        if given not in graph.inputs and given not in graph.outputs:
            tensor = replace(graph.tensors[given], name=result)
            return graph.rebuilt([_renamed(other, given, result) for other in others], [tensor]), node.name
    return None


def _changes_nothing(graph: Graph, node: Node) -> bool:
    if len(node.inputs) != 1 or node.op not in ("identity", "dropout", "concat", "flatten", "reshape", "convert"):
        return False
    given, result = graph.tensors[node.inputs[0]], graph.tensors[node.output]
    same_layout = given.layout == result.layout or given.same_in_memory()
    return given.shape == result.shape and (given.dtype, given.scale) == (result.dtype, result.scale) and same_layout


def _renamed(node: Node, old: str, new: str) -> Node:
    """Return the node reading and writing the tensor `new` instead of `old`."""
    inputs = tuple(new if name == old else name for name in node.inputs)
    return replace(moved(node, {old: (new, 0)}), inputs=inputs)
