"""Concatenations: instead of being copied side by side, branches are written there at once, each at its offset."""

from kernels.fusion.graph import Graph, Node
from kernels.fusion.passes.rewriting import moved, repeated


def remove_concat(graph: Graph) -> Graph:
    """Return the graph without concatenations all of whose inputs can be written in place.

    An input can if nothing else reads it, it is no input or output of the graph, and those that write it, cbrs and
    pools, can write slices. A concatenation with one input that cannot stays, since it copies all of them anyway.
    """
    return repeated("remove_concat", "concatenation", "removed", graph, _remove_one)


def _remove_one(graph: Graph) -> tuple[Graph, str] | None:
    for concat in graph.nodes:
        if concat.op != "concat" or not all(_in_place(graph, name, concat) for name in concat.inputs):
            continue
        places, channels = {}, 0
        for name in concat.inputs:
            places[name] = concat.output, channels
            channels += graph.tensors[name].channels
        others = [moved(node, places) for node in graph.nodes if node is not concat]
        return graph.rebuilt(others), f"{concat.name} at channels {', '.join(str(at) for _, at in places.values())}"
    return None


def _in_place(graph: Graph, tensor: str, concat: Node) -> bool:
    writers = graph.writers(tensor)
    target = graph.tensors[concat.output]
    # Two layouts can meet in a tensor of one channel, which lies the same in both; they cannot in the joined one.
    read = [graph.tensors[name] for node in writers for name in node.inputs]
    same_layout = all(given.layout == target.layout or given.same_in_memory() for given in read)
    alone = graph.only_reader(tensor) is concat
    return bool(writers) and alone and same_layout and all(node.operator.slices for node in writers)
