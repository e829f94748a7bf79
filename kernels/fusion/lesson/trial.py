"""A learner's answers about graphs on trial: which nodes may be fused, and a pass of the learner's own."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.fusion.graph import Graph, GraphError, Node, interpret
from kernels.fusion.graph.build import Builder
from warplab.checks import CheckFailed
from warplab.checks.called import called

TOLERANCE = 1e-9
SHAPE = (3, 5, 5)


def chain() -> Graph:
    """Make cbr a → ReLU → cbr b → ReLU: every ReLU can be fused."""
    b, x = _start("chain")
    for name in ("a", "b"):
        x = b.add("relu", f"{name}_relu", [_cbr(b, name, x)])
    return b.graph(x)


def branch() -> Graph:
    """Make a graph where a ReLU and, before it, an addition read what cbr a writes."""
    b, x = _start("branch")
    a = _cbr(b, "a", x)
    r = b.add("relu", "a_relu", [a])
    s = b.add("add", "sum", [a, r])
    return b.graph(b.add("relu", "last_relu", [_cbr(b, "b", s)]))


def twice() -> Graph:
    """Make a graph where one node reads what cbr a writes twice, and a ReLU has two readers of its own."""
    b, x = _start("twice")
    a = _cbr(b, "a", x)
    doubled = b.add("add", "doubled", [a, a])
    r = b.add("relu", "b_relu", [_cbr(b, "b", doubled)])
    return b.graph(b.add("add", "sum", [r, _cbr(b, "c", r)]))


def shown() -> Graph:
    """Make a graph of which an output is what cbr a writes, read by a ReLU besides."""
    b, x = _start("shown")
    a = _cbr(b, "a", x)
    return b.graph(a, b.add("relu", "a_relu", [a]))


def other() -> Graph:
    """Make ReLUs behind an addition, behind another ReLU, and on the graph's input."""
    b, x = _start("other")
    r = b.add("relu", "x_relu", [x])
    s = b.add("relu", "sum_relu", [b.add("add", "sum", [r, _cbr(b, "a", r)])])
    return b.graph(b.add("relu", "again_relu", [b.add("relu", "b_relu", [_cbr(b, "b", s)])]))


GRAPHS = (chain, branch, twice, shown, other)


def check_may_fuse(may_fuse: Callable[[Graph, str], Any]) -> None:
    """Raise CheckFailed unless `may_fuse(graph, tensor)` says for every tensor whether its reader may swallow it."""
    count = 0
    for make in GRAPHS:
        graph = make()
        for node in graph.nodes:
            right, where = graph.only_reader(node.output) is not None, f"graph {graph.name!r}, tensor {node.output!r}"
            got = _call(may_fuse, where, graph, node.output)
            if not isinstance(got, (bool, np.bool_)):
                raise CheckFailed(
                    "may_fuse returns the wrong type.",
                    expected="True or False",
                    got=type(got).__name__,
                    where=where,
                    kind="wrong type",
                )
            if got != right:
                readers = [f"{reader.name} ({reader.op})" for reader in graph.readers(node.output)]
                raise CheckFailed(
                    "may_fuse returns the wrong value.",
                    expected=str(right),
                    got=str(bool(got)),
                    where=f"{where}: read by {', '.join(readers) or 'nobody'}; outputs {', '.join(graph.outputs)}",
                    look_at="who else needs this tensor after the fusion",
                )
            count += 1
    print(f"may_fuse: right for {count} tensors of {len(GRAPHS)} graphs.")


def check_fuse_relu(fuse_relu: Callable[[Graph], Any], graph: Graph | None = None) -> Graph:
    """Raise CheckFailed unless the pass keeps what graphs compute and leaves no ReLU that a cbr could take.

    `graph`: one more to try it on. Returns what became of it, or of `chain()`.
    """
    graphs = [make() for make in GRAPHS] + ([graph] if graph is not None else [])
    found = [_fused(fuse_relu, each) for each in graphs]
    print(f"fuse_relu: right for {len(graphs)} graphs.")
    return found[-1] if graph is not None else found[0]


def _fused(fuse_relu: Callable[[Graph], Any], graph: Graph) -> Graph:
    where = f"graph {graph.name!r}:\n{graph}" if len(graph.nodes) < 10 else f"graph {graph.name!r}"
    got = _call(fuse_relu, where, graph)
    if not isinstance(got, Graph):
        raise CheckFailed("fuse_relu returns no Graph.", got=type(got).__name__, where=where, kind="wrong type")
    if (got.inputs, got.outputs) != (graph.inputs, graph.outputs):
        raise CheckFailed(
            "the graph has other inputs or outputs than before.",
            expected=f"{graph.inputs} → {graph.outputs}",
            got=f"{got.inputs} → {got.outputs}",
            where=where,
        )
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((2, *graph.tensors[name].shape)) for name in graph.inputs]
    before, after = interpret.run(graph, *inputs), interpret.run(got, *inputs)
    for name in graph.outputs:
        difference = float(np.abs(before[name] - after[name]).max())
        if not difference <= TOLERANCE * max(1.0, float(np.abs(before[name]).max())):
            raise CheckFailed(
                f"the graph computes something else: output {name!r} differs by {difference:.2g}.",
                where=where,
                look_at="who else reads what you took away, and whether the new cbr applies its ReLU",
            )
    left = [relu.name for relu in got.nodes if relu.op == "relu" and _fusible(got, relu.inputs[0])]
    if left:
        raise CheckFailed(
            f"a cbr could still take {', '.join(left)}.",
            expected="no ReLU behind a cbr that has no other reader",
            where=where,
        )
    return got


def _fusible(graph: Graph, tensor: str) -> bool:
    writer = graph.only_writer(tensor)
    return writer is not None and writer.op == "cbr" and graph.only_reader(tensor) is not None


def _call(function: Callable[..., Any], where: str, *arguments: Any) -> Any:
    try:
        return called(function, where, *arguments)
    except CheckFailed as failure:
        error = failure.__cause__
        if isinstance(error, GraphError):
            name = getattr(function, "__name__", "the function")
            text = f"{name} makes a graph that cannot run: {error}"
            raise CheckFailed(text, where=where, kind="exception") from error
        raise


def _start(name: str) -> tuple[Builder, str]:
    b = Builder(name)
    return b, b.input("x", SHAPE)


def _cbr(b: Builder, name: str, x: str) -> str:
    """Return a cbr of 3 × 3 filters with weights of its own, by its name."""
    rng, channels = np.random.default_rng(sum(name.encode())), SHAPE[0]
    weights = {"filters": rng.standard_normal((channels, channels, 3, 3)), "bias": rng.standard_normal(channels)}
    return b.add("cbr", name, [x], weights, padding=(1, 1, 1, 1))


def with_cbrs(graph: Graph) -> Graph:
    """Return the graph with a cbr for each convolution and nothing fused into it: what `fuse_relu` is to be tried
    on."""
    nodes = []
    for node in graph.nodes:
        if node.op == "conv":
            bias = node.weights.get("bias", np.zeros(node.channels))
            weights = {"filters": node.weights["filters"], "bias": bias}
            node = Node(node.name, "cbr", node.inputs, node.outputs, node.attributes, weights)
        nodes.append(node)
    return graph.rebuilt(nodes)


def most_alive(tensors: list[tuple[int, int, int]]) -> int:
    """Return the most bytes alive during one launch, of (first launch, last launch, bytes)."""
    return max(sum(size for first, last, size in tensors if first <= t <= last) for t, _, _ in tensors)


def best_rate(runs: list[tuple[int, float]], limit: float) -> float:
    """Return the most images per second of the (batch, seconds) within `limit` seconds; 0 of none."""
    return max((batch / seconds for batch, seconds in runs if seconds <= limit), default=0)
