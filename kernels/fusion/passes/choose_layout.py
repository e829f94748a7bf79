"""Layout: which tensors lie as NCHW and which as NHWC, and where they are turned.

A tensor core multiplies fragments of consecutive channels, so FP16 and INT8 want NHWC; NCHW is how the graph is given
and what layers without a kernel for NHWC read. Nodes that write into one tensor must agree.
"""

from collections.abc import Mapping
from dataclasses import replace

from kernels.fusion.graph import Graph, Node, Tensor, whole
from kernels.fusion.graph.operators import reads_image
from kernels.fusion.passes.rewriting import FOLLOWERS, counted, moved, unused

WANTED: Mapping[str, str] = {"float32": "NCHW", "float16": "NHWC", "int8": "NHWC"}


def choose_layout(graph: Graph, wanted: Mapping[str, str] = WANTED) -> Graph:
    """Return the graph with the layout that each cbr wants, by its precision, and a `convert` where layouts meet.

    Pools and LRN take what they are given. Conversions of type that are there already turn the layout, too.
    """
    layouts = _layouts(graph, wanted)
    tensors = {
        # Where both layouts put the elements into the same order, one name serves.
        name: replace(tensor, layout="NCHW" if tensor.same_in_memory() else layouts[name])
        for name, tensor in graph.tensors.items()
    }
    turned: dict[tuple[str, str], Node] = {}
    nodes = _turned_outputs(graph, tensors, turned)
    nodes = [
        _reading(node, _needed(old, graph, layouts), tensors, turned)
        for node, old in zip(nodes, graph.nodes, strict=True)
    ]
    found = graph.rebuilt([*nodes, *turned.values()], tensors.values())
    if found == graph:
        print("choose_layout: nothing to do")
        return graph
    count = sum(tensor.layout == "NHWC" for tensor in found.tensors.values())
    alone = f"{counted(len(turned), 'conversion')} of layout alone"
    print(f"choose_layout: {count} of {len(found.tensors)} tensors in NHWC, {alone}")
    return found


def _layouts(graph: Graph, wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the layout of every tensor, and so of the nodes that write it."""
    found = dict.fromkeys(graph.inputs, "NCHW")
    groups = _written_together(graph)
    for names, writers in groups:  # first those that want something
        precisions = {node.attributes["precision"] for node in writers if node.op == "cbr"}
        wishes = {wanted[dtype] for dtype in precisions | {graph.tensors[name].dtype for name in names}}
        if precisions:
            found |= dict.fromkeys(names, "NHWC" if "NHWC" in wishes else "NCHW")
    for names, (writer, *_) in groups:  # then those that follow others, in the order of the graph
        if names[0] in found:
            continue
        result = graph.tensors[names[0]]
        if writer.op in FOLLOWERS:
            layout = found[writer.inputs[0]]
        elif writer.op == "convert" and result.dtype != graph.tensors[writer.inputs[0]].dtype:
            by_rows = result.name in graph.outputs or any(
                node.op == "attention" for node in graph.nodes if result.name in node.inputs
            )
            layout = "NCHW" if by_rows else wanted[result.dtype]
        else:
            layout = result.layout
        found |= dict.fromkeys(names, layout)
    return found


def _written_together(graph: Graph) -> list[tuple[list[str], list[Node]]]:
    """List tensors that share writers, and these: groups within which one layout holds."""
    groups: list[tuple[list[str], list[Node]]] = []
    for node in graph.nodes:
        names = [part.tensor for part in node.outputs]
        writers = [node]
        for group in [group for group in groups if set(group[0]) & set(names)]:
            groups.remove(group)
            names, writers = [*group[0], *names], [*group[1], *writers]
        groups.append((list(dict.fromkeys(names)), writers))
    return groups


def _turned_outputs(graph: Graph, tensors: dict[str, Tensor], turned: dict[tuple[str, str], Node]) -> list[Node]:
    """Return the nodes, in their order; those that would write an output of the graph in NHWC write another tensor
    instead.

    `tensors` gets that, and `turned` the conversion to the output, by the tensor and the layout that it gives.
    """
    nodes = list(graph.nodes)
    for name in graph.outputs:
        tensor = tensors[name]
        if tensor.layout == "NHWC":
            inner = replace(tensor, name=unused(f"{name} in NHWC", tensors))
            tensors[inner.name], tensors[name] = inner, replace(tensor, layout="NCHW")
            nodes = [moved(node, {name: (inner.name, 0)}) for node in nodes]
            turned[name, "NCHW"] = Node(f"{name} in NCHW", "convert", (inner.name,), whole(tensor))
    return nodes


def _needed(node: Node, graph: Graph, layouts: Mapping[str, str]) -> str | None:
    """Return the layout in which a node reads; None for those that read any."""
    if node.op in ("convert", "global_average_pool"):
        return None
    if node.op == "cbr" and reads_image(node.attributes["precision"], graph.tensors[node.inputs[0]].channels):
        return None
    return layouts[node.outputs[0].tensor] if node.op in ("cbr", *FOLLOWERS) else "NCHW"


def _reading(node: Node, needed: str | None, tensors: dict[str, Tensor], turned: dict[tuple[str, str], Node]) -> Node:
    """Return the node reading all tensors in the layout `needed`; conversions that are missing are added to
    `turned`."""
    inputs = []
    for name in node.inputs:
        tensor = tensors[name]
        if needed in (None, tensor.layout) or tensor.same_in_memory():
            inputs.append(name)
            continue
        if (name, "NCHW") in turned and needed == "NHWC":
            inputs.append(turned[name, "NCHW"].inputs[0])
            continue
        if (name, needed) not in turned:
            copy = replace(tensor, name=unused(f"{name} in {needed}", tensors), layout=needed)
            tensors[copy.name] = copy
            turned[name, needed] = Node(copy.name, "convert", (name,), whole(copy))
        inputs.append(turned[name, needed].output)
    return replace(node, inputs=tuple(inputs))
