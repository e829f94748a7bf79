"""A graph in an .npz file: its structure as JSON text, and each weight as an array. Nothing in it is pickled."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from kernels.fusion.graph.graph import Graph
from kernels.fusion.graph.nodes import GraphError, Node, Slice, Tensor

FORMAT = 1
_STRUCTURE = "structure"


def structure_of(graph: Graph) -> dict[str, Any]:
    """Return all of a graph but its weights, in JSON types: name, inputs, outputs, and records of tensors and nodes."""
    return {
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
            }
            for node in graph.nodes
        ],
    }


def tensor_of(record: dict[str, Any]) -> Tensor:
    """Return the tensor of a record in `structure_of`."""
    scale = None if record["scale"] is None else float(record["scale"])
    return Tensor(**record | {"shape": tuple(record["shape"]), "scale": scale})


def node_of(record: dict[str, Any], weights: Mapping[str, np.ndarray]) -> Node:
    """Return the node of a record in `structure_of`, with its weights."""
    slices = tuple(Slice(**part) for part in record["outputs"])
    return Node(record["name"], record["op"], tuple(record["inputs"]), slices, record["attributes"], weights)


def save(graph: Graph, path: str | Path) -> None:
    """Write the graph to `path`, which should end in .npz."""
    structure = {"format": FORMAT, **structure_of(graph)}
    for record, node in zip(structure["nodes"], graph.nodes, strict=True):
        record["weights"] = list(node.weights)
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
        nodes = [
            node_of(record, {name: file[f"{i}.{name}"] for name in record["weights"]})
            for i, record in enumerate(structure["nodes"])
        ]
    tensors = {record["name"]: tensor_of(record) for record in structure["tensors"]}
    return Graph(structure["name"], tuple(nodes), tensors, structure["inputs"], structure["outputs"])
