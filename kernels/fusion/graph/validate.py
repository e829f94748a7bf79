"""What must hold in every graph; each error names the node or the tensor, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kernels.fusion.graph.nodes import GraphError, Node, Slice, Tensor
from kernels.fusion.graph.operators import COPIES, PRECISIONS, Shape, as_image, reads_image, with_channels

if TYPE_CHECKING:
    from kernels.fusion.graph.graph import Graph


def check(graph: Graph) -> None:
    """Raise GraphError unless the graph can run: names known, each channel written once and before it is read, shapes
    fit."""
    names = [node.name for node in graph.nodes]
    if len(set(names)) < len(names):
        raise GraphError(f"two nodes are named {next(name for name in names if names.count(name) > 1)!r}")
    for name in (*graph.inputs, *graph.outputs):
        tensor = _known(graph, name, "the graph")
        if tensor.dtype != "float32" or (tensor.layout != "NCHW" and not tensor.same_in_memory()):
            raise GraphError(f"{name!r} goes in or out of the graph; it must be float32 in NCHW")
    written = {name: graph.tensors[name].channels for name in graph.inputs}
    slices: dict[str, list[Slice]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            tensor = _known(graph, name, f"node {node.name!r}")
            if written.get(name, 0) != tensor.channels:
                raise GraphError(
                    f"node {node.name!r} reads {name!r}, of whose {tensor.channels} channels {written.get(name, 0)} "
                    "are written before it: a writer is missing, or comes later"
                )
        for part in node.outputs:
            _check_slice(graph, node, part, slices.setdefault(part.tensor, []))
            written[part.tensor] = written.get(part.tensor, 0) + part.channels
        _check_result(graph, node)
    for name in graph.outputs:
        if written.get(name, 0) != graph.tensors[name].channels:
            raise GraphError(f"output {name!r} is not written whole; no node writes the rest")


def _known(graph: Graph, name: str, who: str) -> Tensor:
    if name not in graph.tensors:
        raise GraphError(f"{who} names the tensor {name!r}, which the graph does not have")
    return graph.tensors[name]


def _check_slice(graph: Graph, node: Node, part: Slice, others: list[Slice]) -> None:
    tensor = _known(graph, part.tensor, f"node {node.name!r}")
    where = f"channels {part.start} to {part.start + part.channels} of {part.tensor!r}"
    if part.tensor in graph.inputs:
        raise GraphError(f"node {node.name!r} writes {part.tensor!r}, an input of the graph")
    if part.start < 0 or part.channels < 1 or part.start + part.channels > tensor.channels:
        raise GraphError(f"node {node.name!r} writes {where}, which has {tensor.channels}")
    if not node.operator.slices and (len(node.outputs) > 1 or part.channels != tensor.channels):
        raise GraphError(f"node {node.name!r} writes {where}; {node.op} can only write whole tensors")
    if any(part.start < other.start + other.channels and other.start < part.start + part.channels for other in others):
        raise GraphError(f"node {node.name!r} writes {where}, some of which another node writes, too")
    others.append(part)


def _check_result(graph: Graph, node: Node) -> None:
    if not node.outputs:
        raise GraphError(f"node {node.name!r} writes nothing")
    shape = result_shape(node, graph.tensors)
    for part in node.outputs:
        if with_channels(graph.tensors[part.tensor].shape, 1) != with_channels(shape, 1):
            raise GraphError(
                f"node {node.name!r} ({node.op}) makes {shape} and writes into {part.tensor!r} "
                f"of the shape {graph.tensors[part.tensor].shape}"
            )
    if node.channels != (channels := as_image(shape)[0]):
        raise GraphError(f"node {node.name!r} ({node.op}) makes {channels} channels and writes {node.channels}")
    _check_memory(graph, node)


def _check_memory(graph: Graph, node: Node) -> None:
    """Demand one layout for all that a node touches, and types that its kernels take; `convert` changes both."""
    if node.op == "convert":
        return
    read = [graph.tensors[name] for name in node.inputs]
    touched = read + [graph.tensors[part.tensor] for part in node.outputs]
    precision = node.attributes.get("precision", "float32")
    image = node.op == "cbr" and reads_image(precision, read[0].channels)
    layouts = {tensor.layout for tensor in touched if not tensor.same_in_memory() and not (image and tensor in read)}
    if len(layouts) > 1 or (node.op in ("flatten", "reshape") and layouts == {"NHWC"}):
        raise GraphError(f"node {node.name!r} ({node.op}) meets the layouts {' and '.join(sorted(layouts))}")
    for tensor in touched:
        if node.op == "cbr" and tensor in read:
            allowed = {"float32" if image else precision}
        elif node.op == "cbr":
            allowed = set(PRECISIONS)
        elif node.op in ("max_pool", "average_pool", "lrn"):
            allowed = {read[0].dtype}
        elif node.op in ("reshape", *COPIES):
            allowed = {read[0].dtype} - {"int8"}
        elif node.op == "attention":
            allowed = {precision}
        elif node.op == "global_average_pool":
            allowed = set(PRECISIONS) if tensor in read else {"float32", "float16"}
        else:
            allowed = {"float32"}
        if tensor.dtype not in allowed:
            raise GraphError(
                f"node {node.name!r} ({node.op}) touches {tensor.name!r} in {tensor.dtype}; "
                f"it can take {' or '.join(sorted(allowed))}: put a convert between"
            )


def result_shape(node: Node, tensors: Mapping[str, Tensor]) -> Shape:
    """Return the shape that a node's operator gives for its inputs; GraphError, naming the node, if they do not fit."""
    try:
        return node.operator.shape([tensors[name].shape for name in node.inputs], node.attributes, node.weights)
    except ValueError as error:
        raise GraphError(f"node {node.name!r} ({node.op}): {error}") from None
