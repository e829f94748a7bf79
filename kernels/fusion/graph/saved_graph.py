"""A graph in an .npz file: its structure as JSON text, and each weight as an array. Nothing in it is pickled."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from kernels.fusion.graph.graph import Graph
from kernels.fusion.graph.nodes import GraphError, Node, Slice, Tensor

FORMAT = 1
_STRUCTURE = "structure"


def save(graph: Graph, path: str | Path) -> None:
    """Write the graph to `path`, which should end in .npz."""
    structure = {
        "format": FORMAT,
        "name": graph.name,
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "tensors": [asdict(tensor) for tensor in graph.tensors.values()],
        "nodes": [
            {
                "name": node.name,
                "op": node.op,
                "inputs": node.inputs,
                "outputs": [asdict(part) for part in node.outputs],
                "attributes": dict(node.attributes),
                "weights": list(node.weights),
            }
            for node in graph.nodes
        ],
    }
    arrays = {f"{i}.{name}": values for i, node in enumerate(graph.nodes) for name, values in node.weights.items()}
    np.savez(path, **{_STRUCTURE: np.array(json.dumps(structure))}, **arrays)


def load(path: str | Path) -> Graph:
    """Return the graph in `path`, equal to the one saved. GraphError for a file of another kind or format."""
    opened = np.load(path, allow_pickle=False)
    if not isinstance(opened, np.lib.npyio.NpzFile):
        raise GraphError(f"{path} holds one array and no graph; kernels.fusion.graph.saved_graph.save writes one")
    with opened as file:
        if _STRUCTURE not in file:
            raise GraphError(f"{path} holds no graph; kernels.fusion.graph.saved_graph.save writes one")
        structure = json.loads(str(file[_STRUCTURE]))
        if structure["format"] != FORMAT:
            raise GraphError(f"{path} has format {structure['format']}; this code reads {FORMAT}: save the graph again")
        nodes = [_node(i, node, file) for i, node in enumerate(structure["nodes"])]
    tensors = [Tensor(**{**tensor, "shape": tuple(tensor["shape"])}) for tensor in structure["tensors"]]
    return Graph(
        structure["name"], tuple(nodes), {t.name: t for t in tensors}, structure["inputs"], structure["outputs"]
    )


def _node(index: int, node: dict, file: np.lib.npyio.NpzFile) -> Node:
    weights = {name: file[f"{index}.{name}"] for name in node["weights"]}
    slices = tuple(Slice(**part) for part in node["outputs"])
    return Node(node["name"], node["op"], tuple(node["inputs"]), slices, node["attributes"], weights)
