"""Constants: what depends on them alone is computed now; a bias or a factor that is a layer goes into the layer before.

With one number c per channel, w · x + c is a convolution with a bias, and (w · x) · c one with other filters.
"""

from dataclasses import replace

import numpy as np

from kernels.fusion.graph import Graph, Node
from kernels.fusion.graph.interpret import evaluate
from kernels.fusion.graph.operators import as_image
from kernels.fusion.passes.rewriting import is_plain, repeated, scaled, swapped


def fold_constants(graph: Graph) -> Graph:
    """Return the graph with constants computed as far as they go. Constants that nobody reads any more are gone."""
    return repeated(
        "fold_constants", "constant", "folded", graph, lambda g: _evaluate_one(g) or _fold_one_into_layer(g)
    )


def _evaluate_one(graph: Graph) -> tuple[Graph, str] | None:
    """Replace a node whose inputs are all constants by a constant."""
    for node in graph.nodes:
        values = [_constant(graph, name) for name in node.inputs]
        if (
            not values
            or any(value is None for value in values)
            or graph.only_writer(node.outputs[0].tensor) is not node
        ):
            continue
        if graph.tensors[node.output].dtype != "float32":
            continue
        result = evaluate(node, [value[None].astype(np.float64) for value in values])[0]
        constant = Node(node.name, "constant", (), node.outputs, weights={"value": result})
        return _without_unread(swapped(graph, [node], constant), node.inputs), node.name
    return None


def _fold_one_into_layer(graph: Graph) -> tuple[Graph, str] | None:
    for add in graph.nodes:
        if add.op not in ("add", "mul"):
            continue
        for given, other in (add.inputs, add.inputs[::-1]):
            layer, value = graph.only_writer(given), _constant(graph, other)
            if layer is None or value is None or not is_plain(layer) or graph.only_reader(given) is not add:
                continue
            shape = graph.tensors[given].shape
            if as_image(value.shape)[1:] == (1, 1) and len(shape) <= 3 and shape == graph.tensors[add.output].shape:
                number = np.broadcast_to(value.reshape(-1), as_image(shape)[0])
                one, zero = np.ones_like(number), np.zeros_like(number)
                factor, shift = (one, number) if add.op == "add" else (number, zero)
                folded = scaled(replace(layer, outputs=add.outputs), factor, shift)
                return _without_unread(swapped(graph, [layer, add], folded), [other]), f"{add.name} into {layer.name}"
    return None


def _constant(graph: Graph, tensor: str) -> np.ndarray | None:
    writers = graph.writers(tensor)
    return writers[0].weights["value"] if writers and writers[0].op == "constant" else None


def _without_unread(graph: Graph, tensors: tuple[str, ...] | list[str]) -> Graph:
    gone = {name for name in tensors if not graph.readers(name) and name not in graph.outputs}
    return graph.rebuilt(node for node in graph.nodes if node.outputs[0].tensor not in gone)
