"""Precision: which convolutions compute in FP16 or INT8, in what type each tensor lies, and where types are converted.

A tensor lies in the precision of the convolutions that read it, where these agree, since any cbr can write any type;
else in that of those that write it, so that a chain of them converts once before and once behind. Attention without a
mask computes in FP16 where kernels are there for heads of its size; copies between it and dense layers carry FP16. All
else stays in FP32: a dense layer of a short vector, softmax, what no pass has fused. INT8 takes only convolutions in
one group whose channels come in fours, the width of dp4a, and FP16 those whose channels come in pairs: kernels read 4
bytes of a pixel at a time, or more. What reads an image of three channels computes in FP16, too, and takes the image as
it comes. Where INT8 is asked for, such a layer and a dense one of a long vector, which INT8 does not take, compute in
FP16.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from kernels.fusion.graph import Graph, GraphError, Node, Tensor, whole
from kernels.fusion.graph.int8 import filter_scales
from kernels.fusion.graph.operators import COPIES, PRECISIONS, groups, reads_image
from kernels.fusion.passes.rewriting import FOLLOWERS, counted, unused
from warpcourse.bench.attention import by_kernels

CARRYING = ("reshape", *COPIES)  # what moves elements, or only names them anew
KINDS = {"cbr": "convolution", "attention": "attention"}
WORDS = {"float16": 2, "int8": 4}  # channels in 4 bytes
LONG = 512  # features of a vector whose dense layer is worth float16: its weights are what takes time


def assign_precision(graph: Graph, precision: str, scales: Mapping[str, float] | None = None) -> Graph:
    """Return the graph with its FP32 cbrs of images and of rows in `precision`, and a `convert` wherever types meet.

    `scales`: for "int8", the real value of one step for each tensor by name, from calibration; GraphError names a
    tensor that needs one and has none.
    """
    if precision not in PRECISIONS:
        raise GraphError(f"there is no precision {precision!r}; choose one of {', '.join(PRECISIONS)}")
    lower = {"float32": (), "float16": ("float16",), "int8": ("int8", "float16")}[precision]
    chosen = {node.name: one for node in graph.nodes for one in reversed(lower) if _takes(graph, node, one, precision)}
    if not chosen:
        print("assign_precision: nothing to do")
        return graph
    nodes = [_in_precision(node, chosen[node.name]) if node.name in chosen else node for node in graph.nodes]
    tensors = _typed(graph, nodes, scales or {})
    nodes, converted = _converted(nodes, tensors, scales or {})
    stay = [node.name for node in nodes if node.op == "cbr" and node.attributes["precision"] == "float32"]
    kinds = Counter((node.op, chosen[node.name]) for node in nodes if node.name in chosen)
    counts = [f"{counted(count, KINDS[op])} in {one}" for (op, one), count in kinds.items()]
    done = ", ".join([*counts, counted(len(converted), "conversion")])
    print(f"assign_precision: {done}" + (f"; in float32 stay {', '.join(stay)}" if stay else ""))
    return graph.rebuilt(nodes, [*tensors.values(), *converted])


def _takes(graph: Graph, node: Node, precision: str, asked: str) -> bool:
    """Return whether a node computes in `precision` where `asked` was asked for, unless another suits better."""
    if precision == asked:
        return suits(graph, node, precision)
    if node.op != "cbr":
        return False
    x = graph.tensors[node.inputs[0]]
    return (len(x.shape) == 1 or x.channels == 3) and suits(graph, node, precision)


def suits(graph: Graph, node: Node, precision: str) -> bool:
    """Return whether a node is a cbr or an attention in FP32 that could compute in `precision`."""
    if node.op == "attention":
        kernels, sizes = by_kernels(), {graph.tensors[name].shape[-1] for name in node.inputs}
        inside = kernels is not None and len(node.inputs) == 3 and len(sizes) == 1 and sizes <= {*kernels.sizes}
        return inside and precision == "float16" and node.output not in graph.outputs
    if node.op != "cbr" or node.attributes["precision"] != "float32":
        return False
    x = graph.tensors[node.inputs[0]]
    if x.name in graph.inputs and reads_image(precision, x.channels):
        return groups(x.channels, node.weights["filters"]) == 1
    long = len(x.shape) > 1 or (precision == "float16" and x.channels >= LONG)
    return (
        long
        and x.channels % WORDS[precision] == 0
        and (precision == "float16" or groups(x.channels, node.weights["filters"]) == 1)
    )


def _in_precision(node: Node, precision: str) -> Node:
    node = node.with_attributes(precision=precision)
    if precision != "int8" or "filter_scales" in node.weights:
        return node
    return node.with_weights(filter_scales=filter_scales(node.weights["filters"]))


def _typed(graph: Graph, nodes: list[Node], scales: Mapping[str, float]) -> dict[str, Tensor]:
    """Return all tensors, each in the type in which it will lie."""
    # A tensor may be written by several nodes, so all of them are asked before any reader is.
    tensors, done = dict(graph.tensors), set()
    for node in nodes:
        for name in (part.tensor for part in node.outputs):
            if name not in done:
                done.add(name)
                writers = [other for other in nodes if any(part.tensor == name for part in other.outputs)]
                dtype = "float32" if name in graph.outputs else _type(name, writers, nodes, tensors)
                scale = _scale(name, writers, tensors, scales) if dtype == "int8" else None
                tensors[name] = replace(tensors[name], dtype=dtype, scale=scale)
    return tensors


def _type(name: str, writers: list[Node], nodes: list[Node], tensors: Mapping[str, Tensor]) -> str:
    readers = [node for node in nodes if name in node.inputs]
    if any(node.op == "convert" for node in writers):
        return tensors[name].dtype
    if all(node.op == "global_average_pool" for node in writers):
        wanted = {node.attributes["precision"] if node.op == "cbr" else "float32" for node in readers}
        return "float16" if wanted == {"float16"} else "float32"
    if all(node.op == "attention" for node in writers):
        return writers[0].attributes["precision"]
    if all(node.op in CARRYING for node in writers):
        return "float16" if _carried(name, nodes) and tensors[writers[0].inputs[0]].dtype == "float16" else "float32"
    if any(node.op not in ("cbr", *FOLLOWERS) for node in writers):
        return "float32"
    computed = {node.attributes["precision"] for node in writers if node.op == "cbr"}
    types = computed or {_copied(node.inputs[0], readers, nodes) or tensors[node.inputs[0]].dtype for node in writers}
    if len(types) > 1:
        return "float32"
    (dtype,) = types
    asked = _asked(name, nodes)
    if len(asked) == 1 and all(node.op == "cbr" for node in writers) and all(_takes_any(node) for node in readers):
        return asked.pop()
    kept = any(
        node.attributes["precision"] == dtype if node.op == "cbr" else node.op in (*FOLLOWERS, "global_average_pool")
        for node in readers
    )
    return dtype if kept or (dtype == "float16" and _carried(name, nodes)) else "float32"


def _carried(tensor: str, nodes: list[Node]) -> bool:
    """Return whether a tensor comes, by copies at most, to what computes in float16."""
    return any(
        _carried(node.output, nodes) if node.op in CARRYING else node.attributes.get("precision") == "float16"
        for node in nodes
        if tensor in node.inputs
    )


def _asked(name: str, nodes: list[Node]) -> set[str]:
    """Return the precisions of the cbrs that read a tensor, or what pools make of it."""
    readers = [node for node in nodes if name in node.inputs]
    found = {node.attributes["precision"] for node in readers if node.op == "cbr"}
    return found.union(*(_asked(node.outputs[0].tensor, nodes) for node in readers if node.op in FOLLOWERS))


def _takes_any(node: Node) -> bool:
    """Return whether a node reads what its precision says, or whatever there is."""
    return node.op in ("cbr", *FOLLOWERS, "global_average_pool")


def _copied(tensor: str, readers: list[Node], nodes: list[Node]) -> str | None:
    """Return the type in which a pool's readers want its result, if others read what the pool reads in that type, too.

    Then there is a copy in that type, which the pool can read.
    """
    wanted = {node.attributes["precision"] if node.op == "cbr" else "float32" for node in readers}
    there = {node.attributes["precision"] for node in nodes if node.op == "cbr" and tensor in node.inputs}
    return wanted.pop() if len(wanted) == 1 and wanted <= there else None


def _scale(name: str, writers: list[Node], tensors: Mapping[str, Tensor], scales: Mapping[str, float]) -> float:
    """Return a pool on its own keeps the scale of what it reads: its results lie between the smallest and largest of
    that."""
    if tensors[name].scale is not None:
        return tensors[name].scale
    if len(writers) == 1 and writers[0].op in FOLLOWERS:
        given = writers[0].inputs[0]
        return tensors[given].scale or _calibrated(given, scales)
    return _calibrated(name, scales)


def _calibrated(name: str, scales: Mapping[str, float]) -> float:
    if name not in scales:
        raise GraphError(f"INT8 needs a scale for tensor {name!r}; calibrate this graph and pass its scales")
    return float(scales[name])


def _converted(
    nodes: list[Node], tensors: Mapping[str, Tensor], scales: Mapping[str, float]
) -> tuple[list[Node], list[Tensor]]:
    """Return the nodes reading the types that they need, with the conversions; and the tensors that these write."""
    copies: dict[tuple[str, str], Tensor] = {}
    changed, conversions = [], []
    for node in nodes:
        inputs = []
        for given in (tensors[name] for name in node.inputs):
            dtype = _needed(node, given, tensors)
            if dtype != given.dtype and (given.name, dtype) not in copies:
                scale = _calibrated(given.name, scales) if dtype == "int8" else None
                copy = replace(given, name=unused(f"{given.name} as {dtype}", tensors), dtype=dtype, scale=scale)
                copies[given.name, dtype] = copy
                conversions.append(Node(copy.name, "convert", (given.name,), whole(copy)))
            inputs.append(given.name if dtype == given.dtype else copies[given.name, dtype].name)
        changed.append(replace(node, inputs=tuple(inputs)))
    return [*changed, *conversions], list(copies.values())


def _needed(node: Node, given: Tensor, tensors: Mapping[str, Tensor]) -> str:
    """Return the type in which a node must read a tensor."""
    if node.op == "cbr":
        image = reads_image(node.attributes["precision"], tensors[node.inputs[0]].channels)
        return "float32" if image else node.attributes["precision"]
    if node.op in (*FOLLOWERS, *CARRYING):
        return tensors[node.output].dtype
    if node.op == "attention":
        return node.attributes["precision"]
    return given.dtype if node.op in ("global_average_pool", "convert") else "float32"
