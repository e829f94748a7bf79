"""The graph refuses what cannot run, by name; the interpreter computes what each operator says; files keep both."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from kernels.fusion.graph import Graph, GraphError, Node, Slice, Tensor, assemble, saved_graph
from kernels.fusion.graph.build import Builder
from kernels.fusion.graph.int8 import filter_scales, quantised, rounded_filters
from kernels.fusion.graph.interpret import all_tensors, run
from kernels.fusion.lesson.draw_graph import draw_graph
from kernels.fusion.passes.optimise import fuse
from kernels.fusion.trained.network import trained_graph
from tests.support.random_inputs import generator

from .random_graphs import from_seed


def small() -> Graph:
    builder = Builder("small")
    x = builder.input("x", (2, 4, 4))
    y = builder.add("conv", "conv", [x], {"filters": np.ones((3, 2, 3, 3))}, padding=(1, 1, 1, 1))
    return builder.graph(builder.add("relu", "relu", [y]))


NEXT = Slice("y", 3, 3)


def sliced(second: Slice = NEXT) -> Graph:
    """Two cbrs that write side by side into y."""
    weights = {"filters": np.ones((3, 2, 1, 1)), "bias": np.zeros(3)}
    nodes = [
        Node("a", "cbr", ("x",), (Slice("y", 0, 3),), {}, weights),
        Node("b", "cbr", ("x",), (second,), {"relu": True}, weights),
    ]
    tensors = [Tensor("x", (2, 4, 4)), Tensor("y", (6, 4, 4))]
    return Graph("sliced", nodes, {tensor.name: tensor for tensor in tensors}, ("x",), ("y",))


def test_a_graph_prints_a_line_per_node_with_slices():
    assert str(small()).splitlines() == [
        "small: x → relu",
        "  conv  conv                 x → conv 3 × 4 × 4",
        "  relu  relu                 conv → relu 3 × 4 × 4",
    ]
    assert "x → y 6 × 4 × 4 [3:6]" in str(sliced())


def test_nothing_in_a_graph_can_be_changed():
    graph = small()
    with pytest.raises(FrozenInstanceError):
        graph.name = "other"
    with pytest.raises(TypeError):
        graph.tensors["z"] = Tensor("z", (1,))
    with pytest.raises(TypeError):
        graph.node("conv").attributes["stride"] = (2, 2)
    with pytest.raises(ValueError, match="read-only"):
        graph.node("conv").weights["filters"][0] = 0


def test_weights_are_copied_when_they_are_not_float32_and_never_written_to():
    mine = np.ones((3, 2, 3, 3), np.float32)
    node = Node("conv", "conv", ("x",), (Slice("y", 0, 3),), {}, {"filters": mine})
    mine[0] = 2  # still writable
    assert node.weights["filters"].dtype == np.float32


def test_equality_looks_into_weights_and_order():
    graph = small()
    assert graph == small()
    assert hash(graph) == hash(small())
    other = [node.with_weights(filters=np.zeros((3, 2, 3, 3))) if node.op == "conv" else node for node in graph.nodes]
    assert graph != graph.rebuilt(other)
    assert graph.rebuilt(graph.nodes[::-1]) == graph  # sorted
    two = sliced()
    assert two.rebuilt(two.nodes[::-1]) != two  # both orders run
    assert (graph == 3) is False


def test_readers_and_writers():
    graph = sliced()
    assert [node.name for node in graph.writers("y")] == ["a", "b"]
    assert graph.only_writer("y") is None
    assert graph.only_reader("y") is None
    assert [node.name for node in graph.readers("x")] == ["a", "b"]
    builder = Builder("twice")
    x = builder.input("x", (1, 2, 2))
    twice = builder.graph(builder.add("add", "sum", [x, x]))
    assert len(twice.readers("x")) == 2
    assert twice.only_reader("x") is None
    assert small().only_reader("conv").name == "relu"
    assert small().only_reader("relu") is None


WRONG_NODES = {
    "there is no operator 'sort'": lambda: Node("n", "sort", ("x",), ()),
    "'n'.* conv needs filters": lambda: Node("n", "conv", ("x",), ()),
    "'n'.* max_pool needs window": lambda: Node("n", "max_pool", ("x",), ()),
    "'n'.* relu does not take slope": lambda: Node("n", "relu", ("x",), (), {"slope": 1}),
    "'n'.* relu does not take bias": lambda: Node("n", "relu", ("x",), (), {}, {"bias": np.ones(1)}),
    "'n'.* add takes 2 inputs, not 1": lambda: Node("n", "add", ("x",), ()),
    "'t' has the shape": lambda: Tensor("t", (2, 3, 4, 5, 6, 7)),
    "'t' is 'float64'": lambda: Tensor("t", (2,), "float64"),
    "'t' is int8 with scale None": lambda: Tensor("t", (2,), "int8"),
    "'t' is float32 with scale 0.5": lambda: Tensor("t", (2,), scale=0.5),
    "'t' is int8 with scale -1": lambda: Tensor("t", (2,), "int8", scale=-1.0),
}


@pytest.mark.parametrize("message", WRONG_NODES)
def test_wrong_nodes_and_tensors_are_refused_by_name(message):
    with pytest.raises(GraphError, match=message):
        WRONG_NODES[message]()


WRONG_SHAPES = {
    r"'n' \(conv\): the filters have 3 channels and the input 2": ("conv", {"filters": np.ones((1, 3, 1, 1))}, {}),
    r"'n' \(conv\): a window of 5 pixels does not fit": ("conv", {"filters": np.ones((1, 2, 5, 5))}, {}),
    "filters have the shape": ("conv", {"filters": np.ones((1, 2, 3))}, {}),
    "bias has the shape": ("conv", {"filters": np.ones((1, 2, 1, 1)), "bias": np.ones(2)}, {}),
    "the matrix has the shape": ("dense", {"matrix": np.ones((3, 2))}, {}),
    "gamma has the shape": (
        "batch_norm",
        {name: np.ones(3) for name in ("gamma", "beta", "mean", "variance")},
        {},
    ),
    "windows of 2 × 2 that hold no pixel": ("max_pool", {}, {"window": (2, 2), "padding": (2, 0, 0, 0)}),
    "4 channels and the input 2": ("conv", {"filters": np.ones((4, 4, 1, 1))}, {}),
    r"\(3, 11\) has not as many elements": ("reshape", {}, {"shape": (3, 11)}),
    "must name each of the axes": ("transpose", {}, {"order": (0, 1, 1)}),
    "5 elements from 0 on in steps of 1 are not all in an axis of 4": (
        *("slice", {}),
        {"starts": (0, 0, 0), "steps": (1, 1, 1), "shape": (2, 5, 4)},
    ),
    "3 elements from 1 on in steps of -1 are not": (
        *("slice", {}),
        {"starts": (0, 1, 0), "steps": (1, -1, 1), "shape": (2, 3, 4)},
    ),
    "cannot be repeated": ("expand", {}, {"shape": (1, 4, 4)}),
    "the last axis 4 elements": ("layer_norm", {"gamma": np.ones(2), "beta": np.ones(4)}, {}),
}


@pytest.mark.parametrize("message", WRONG_SHAPES)
def test_shapes_that_do_not_fit_are_refused(message):
    op, weights, attributes = WRONG_SHAPES[message]
    builder = Builder("wrong")
    x = builder.input("x", (2, 4, 4))
    with pytest.raises(GraphError, match=message):
        builder.add(op, "n", [x], weights, **attributes)


def test_additions_and_concatenations_of_other_shapes_are_refused():
    builder = Builder("wrong")
    x, y = builder.input("x", (2, 4, 4)), builder.input("y", (2, 3, 4))
    with pytest.raises(GraphError, match="cannot be joined"):
        builder.add("add", "sum", [x, y])
    with pytest.raises(GraphError, match="differ in more than their channels"):
        builder.add("concat", "joined", [x, y])
    with pytest.raises(GraphError, match="two nodes or inputs named 'x'"):
        builder.add("relu", "x", [x])
    with pytest.raises(GraphError, match="reads 'z', which no node before it writes"):
        builder.add("relu", "relu", ["z"])


def rebuilt(graph: Graph, **changes) -> Graph:
    fields = {name: getattr(graph, name) for name in ("name", "nodes", "tensors", "inputs", "outputs")}
    return Graph(**{**fields, **changes})


WRONG_GRAPHS = {
    "two nodes are named 'conv'": lambda g: rebuilt(g, nodes=[replace(node, name="conv") for node in g.nodes]),
    "'relu' reads 'conv', of whose 3 channels 0": lambda g: rebuilt(g, nodes=g.nodes[::-1]),
    "output 'relu' is not written whole": lambda g: rebuilt(g, nodes=g.nodes[:1]),
    "the graph names the tensor 'z'": lambda g: rebuilt(g, outputs=("z",)),
    "'relu' names the tensor 'z'": lambda g: rebuilt(g, nodes=(g.nodes[0], replace(g.nodes[1], inputs=("z",)))),
    "'conv' writes 'x', an input of the graph": lambda g: rebuilt(
        g, nodes=(replace(g.nodes[0], outputs=(Slice("x", 0, 2),)), g.nodes[1])
    ),
    "'relu' writes nothing": lambda g: rebuilt(g, nodes=(g.nodes[0], replace(g.nodes[1], outputs=()))),
    "relu can only write whole tensors": lambda g: rebuilt(
        g, nodes=(g.nodes[0], replace(g.nodes[1], outputs=(Slice("relu", 0, 2),)))
    ),
    r"makes \(3, 4, 4\) and writes into 'relu'": lambda g: rebuilt(
        g, tensors={**g.tensors, "relu": Tensor("relu", (3, 4, 5))}
    ),
    "'relu' goes in or out of the graph; it must be float32": lambda g: rebuilt(
        g, tensors={**g.tensors, "relu": Tensor("relu", (3, 4, 4), "float16")}
    ),
    "touches 'conv' in float16; it can take float32": lambda g: rebuilt(
        g, tensors={**g.tensors, "conv": Tensor("conv", (3, 4, 4), "float16")}
    ),
    r"\(conv\) meets the layouts NCHW and NHWC": lambda g: rebuilt(
        g, tensors={**g.tensors, "conv": Tensor("conv", (3, 4, 4), layout="NHWC")}
    ),
    "wait for each other: there is a cycle": lambda g: g.rebuilt((replace(g.nodes[0], inputs=("relu",)), g.nodes[1])),
}


@pytest.mark.parametrize("message", WRONG_GRAPHS)
def test_graphs_that_cannot_run_are_refused(message):
    with pytest.raises(GraphError, match=message):
        WRONG_GRAPHS[message](small())


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (Slice("y", 2, 3), "some of which another node writes"),
        (Slice("y", 4, 3), "writes channels 4 to 7 of 'y', which has 6"),
        (Slice("y", 3, 2), "makes 3 channels and writes 2"),
    ],
)
def test_slices_must_tile_their_tensor(second, message):
    with pytest.raises(GraphError, match=message):
        sliced(second)


def test_int8_needs_filter_scales():
    graph = sliced()
    with pytest.raises(GraphError, match="needs filter_scales"):
        graph.rebuilt([node.with_attributes(precision="int8") for node in graph.nodes])


def test_assembling_leaves_out_tensors_that_nobody_touches():
    graph = small()
    found = assemble("more", graph.nodes, {**graph.tensors, "z": Tensor("z", (1,))}, graph.inputs, graph.outputs)
    assert set(found.tensors) == {"x", "conv", "relu"}


def test_slices_hold_what_whole_tensors_would():
    values = generator().normal(size=(2, 2, 4, 4))
    result = run(sliced(), values)["y"]
    total = values.sum(axis=1, keepdims=True).repeat(3, axis=1)
    np.testing.assert_allclose(result[:, :3], total)
    np.testing.assert_allclose(result[:, 3:], np.maximum(total, 0))


def test_a_convolution_is_its_definition():
    """Uneven padding, stride and dilation, against sums written out."""
    numbers = generator()
    x, filters, bias = numbers.normal(size=(2, 3, 6, 7)), numbers.normal(size=(4, 3, 2, 3)), numbers.normal(size=4)
    builder = Builder("conv")
    name = builder.input("x", (3, 6, 7))
    steps = {"padding": (1, 0, 2, 3), "stride": (2, 1), "dilation": (1, 2)}
    graph = builder.graph(builder.add("conv", "y", [name], {"filters": filters, "bias": bias}, **steps))
    assert graph.tensors["y"].shape == (4, 4, 6)
    expected = np.zeros((2, 4, 4, 6))
    for n, k, p, q in np.ndindex(expected.shape):
        expected[n, k, p, q] = np.float32(bias[k])
        for c, r, s in np.ndindex(filters.shape[1:]):
            row, column = 2 * p + r - 1, q + 2 * s
            if 0 <= row < 6 and 0 <= column < 7:
                expected[n, k, p, q] += x[n, c, row, column] * np.float32(filters[k, c, r, s])
    np.testing.assert_allclose(run(graph, x)["y"], expected, atol=1e-12)


@pytest.mark.parametrize("counted", [False, True])
def test_pools_are_their_definition(counted):
    x = generator().normal(size=(2, 3, 5, 4)) - 5  # below zero, so that padding must not win
    builder = Builder("pools")
    name = builder.input("x", (3, 5, 4))
    steps = {"window": (3, 2), "stride": (2, 1), "padding": (1, 1, 1, 0)}
    largest = builder.add("max_pool", "largest", [name], **steps)
    mean = builder.add("average_pool", "mean", [name], count_padding=counted, **steps)
    result = run(builder.graph(largest, mean), x)
    for n, c, p, q in np.ndindex(2, 3, 3, 4):
        window = x[n, c, max(2 * p - 1, 0) : 2 * p + 2, max(q - 1, 0) : q + 1]
        assert result["largest"][n, c, p, q] == window.max()
        assert result["mean"][n, c, p, q] == pytest.approx(window.sum() / (6 if counted else window.size))


def test_float16_and_int8_tensors_hold_what_their_types_hold():
    builder = Builder("types")
    x = builder.input("x", (1, 1, 4))
    graph = builder.graph(builder.add("relu", "y", [x]))
    half = Tensor("half", (1, 1, 4), "float16")
    eighth = Tensor("eighth", (1, 1, 4), "int8", scale=0.5)
    back = Tensor("y", (1, 1, 4))
    for tensor, expected in ((half, [1e5, 1 / 3, 5e-5, 2]), (eighth, [1e5, 1 / 3, 5e-5, 2])):
        nodes = [
            Node("there", "convert", ("x",), (Slice(tensor.name, 0, 1),)),
            Node("back", "convert", (tensor.name,), (Slice("y", 0, 1),)),
        ]
        values = np.array(expected).reshape(1, 1, 1, 4)
        found = run(graph.rebuilt(nodes, [tensor, back]), values)["y"].reshape(-1)
        if tensor is half:
            with np.errstate(over="ignore"):
                assert found.tolist() == np.array(expected, np.float16).astype(float).tolist()
        else:
            assert found.tolist() == [63.5, 0.5, 0.0, 2.0]


def test_filter_scales_use_all_steps_and_survive_zeros():
    filters = generator().normal(size=(3, 2, 3, 3))
    filters[1] = 0
    scales = filter_scales(filters)
    assert scales[1] == 1
    steps = quantised(filters, scales.reshape(-1, 1, 1, 1))
    assert abs(steps[[0, 2]]).max(axis=(1, 2, 3)).tolist() == [127, 127]
    assert (abs(rounded_filters(filters, scales) - filters) <= scales[:, None, None, None] * 0.5001).all()


def test_inputs_that_do_not_fit_are_refused():
    graph = small()
    with pytest.raises(GraphError, match=r"input 'x' has the shape \(1, 3, 4, 4\); it must be \(batch, 2, 4, 4\)"):
        run(graph, np.zeros((1, 3, 4, 4)))
    with pytest.raises(GraphError, match="takes x; 2 arrays were given"):
        run(graph, np.zeros((1, 2, 4, 4)), np.zeros((1, 2, 4, 4)))


def test_float32_arithmetic_is_close_to_float64():
    graph, values = small(), generator().normal(size=(2, 2, 4, 4))
    single = run(graph, values, dtype=np.float32)["relu"]
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, run(graph, values)["relu"], atol=1e-5)
    assert set(all_tensors(graph, values)) == {"x", "conv", "relu"}


@pytest.mark.parametrize("seed", range(8))
def test_a_saved_graph_is_equal_before_and_after_passes(seed, tmp_path):
    graph = from_seed(seed)
    for one in (graph, fuse(graph)):
        saved_graph.save(one, tmp_path / "graph.npz")
        assert saved_graph.load(tmp_path / "graph.npz") == one


def test_a_file_without_a_graph_is_refused(tmp_path, monkeypatch):
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(GraphError, match=r"other\.npz holds no graph"):
        saved_graph.load(tmp_path / "other.npz")
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(GraphError, match=r"one\.npy holds one array and no graph"):
        saved_graph.load(tmp_path / "one.npy")
    saved_graph.save(small(), tmp_path / "old.npz")
    monkeypatch.setattr(saved_graph, "FORMAT", 2)
    with pytest.raises(GraphError, match=r"old\.npz has format 1; this code reads 2"):
        saved_graph.load(tmp_path / "old.npz")


def overlaps(figure) -> list[tuple[str, str]]:
    """Pairs of texts in a figure that lie on each other."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    texts = [t for ax in figure.axes for t in ax.texts if t.get_text()]
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in texts]
    return [
        (a, b)
        for i, (a, one) in enumerate(boxes)
        for b, other in boxes[i + 1 :]
        # Lines of one box may touch.
        if one.overlaps(other) and min(one.y1, other.y1) - max(one.y0, other.y0) > 3
    ]


@pytest.mark.parametrize("seed", range(6))
def test_names_in_a_drawing_do_not_lie_on_each_other(seed):
    graph = from_seed(seed)
    for each in (graph, fuse(graph)):
        figure = draw_graph(each)
        assert overlaps(figure) == []
        names = {text.get_text().removesuffix(" +") for text in figure.axes[0].texts}
        assert {name for node in each.nodes for name in node.name.split(" + ")} <= names


def test_the_network_is_drawn_with_all_its_layers():
    graph = trained_graph()
    figure = draw_graph(fuse(graph))
    names = [text.get_text() for text in figure.axes[0].texts]
    assert "residual_3x3" in names
    assert "CBR 3×3, 64, + x" in names
    assert "a_1x1 +" in names
    assert overlaps(figure) == []
