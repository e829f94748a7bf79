"""Dead layers: those on which no output of the graph depends, such as a classifier that only training used."""

from kernels.fusion.graph import Graph
from kernels.fusion.passes.rewriting import report


def remove_dead(graph: Graph) -> Graph:
    """Return the graph without nodes that no output needs."""
    needed, live = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if any(part.tensor in needed for part in node.outputs):
            live.append(node)
            needed.update(node.inputs)
    removed = [node.name for node in graph.nodes if node not in live]
    report("remove_dead", "dead layer", "removed", removed)
    return graph.rebuilt(reversed(live)) if removed else graph
