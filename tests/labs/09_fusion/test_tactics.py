"""Lab 09's kernels through their tactics, on the active backend: each against the interpreter, layer by layer.

Every output lies between guard bands in memory full of NaN (of -128, which symmetric INT8 never writes).
"""

import math

import numpy as np
import pytest

from kernels.fusion import tactics
from kernels.fusion.graph import Graph, Node, Slice, Tensor, int8, interpret
from kernels.fusion.graph.functions import BINARY, REDUCED, UNARY
from kernels.fusion.graph.operators import OPERATORS
from kernels.fusion.tactics import cbr_tactics, element_tactics, other_tactics
from kernels.fusion.tactics.layer import layers
from kernels.fusion.tactics.tactic import Tactic
from tests.support.random_inputs import generator
from warpcourse.bench import hopper
from warpcourse.bench.attention import by_kernels
from warplab import cp, profile
from warplab.hardware import backend

GUARD = 64  # elements before and after a tensor
POISON = {"float32": np.nan, "float16": np.nan, "int8": -128}
DTYPES = {"float32": np.float32, "float16": np.float16, "int8": np.int8}
SCALE = 0.05  # real value of a step of INT8 tensors


def tensor(name, shape, dtype="float32", layout="NCHW", scale=SCALE):
    return Tensor(name, shape, dtype, layout, scale if dtype == "int8" else None)


def in_memory(values, tensor):
    """Real values, (batch, *shape), as the tensor lies in memory."""
    if tensor.dtype == "int8":
        values = int8.quantised(values, tensor.scale)
    if tensor.layout == "NHWC" and values.ndim == 4:
        values = values.transpose(0, 2, 3, 1)
    return np.ascontiguousarray(values.astype(DTYPES[tensor.dtype]))


def real(array, tensor):
    values = array.astype(np.float64)
    if tensor.layout == "NHWC" and values.ndim == 4:
        values = values.transpose(0, 3, 1, 2)
    return values * (tensor.scale or 1)


def memory_shape(tensor, batch):
    shape = tensor.shape
    return (batch, *shape[1:], shape[0]) if tensor.layout == "NHWC" and len(shape) == 3 else (batch, *shape)


def guarded(tensor, batch):
    """(all of the memory, the tensor in its middle), poisoned."""
    shape = memory_shape(tensor, batch)
    size = math.prod(shape)
    whole = cp.asarray(np.full(size + 2 * GUARD, POISON[tensor.dtype], DTYPES[tensor.dtype]))
    return whole, whole[GUARD : GUARD + size].reshape(shape)


def poisoned(values, dtype):
    return np.isnan(values) if dtype != "int8" else values == POISON[dtype]


def one_node_graph(node, tensors):
    """A graph of one node, whose tensors may have any type and layout: graphs go in and out in float32 alone."""
    graph = object.__new__(Graph)
    for name, value in {
        "name": "test",
        "nodes": (node,),
        "tensors": {t.name: t for t in tensors},
        "inputs": node.inputs,
        "outputs": tuple(dict.fromkeys(part.tensor for part in node.outputs)),
    }.items():
        object.__setattr__(graph, name, value)
    return graph


def run(tactic, node, tensors, batch, values):
    """What the tactic writes, in real values by tensor, and what the interpreter does; NaN where nothing is written.

    Fails where the tactic writes outside of its slices.
    """
    graph = one_node_graph(node, tensors)
    (layer,) = layers(graph, batch)
    inputs = [cp.asarray(in_memory(array, t)) for array, t in zip(values, layer.reads, strict=True)]
    memory = {t.name: guarded(t, batch) for t in tensors if t.name in graph.outputs}
    weights = {name: cp.asarray(array) for name, array in tactic.weights(layer).items()}
    outputs = [memory[t.name][1] for _, t in layer.writes]
    for call in tactic.bind(layer, inputs, outputs, weights):
        call.queue()
    given = [real(in_memory(array, t), t) for array, t in zip(values, layer.reads, strict=True)]
    expected = interpret.all_tensors(graph, *given)
    found = {}
    for name, (whole, _) in memory.items():
        t = graph.tensors[name]
        host = cp.asnumpy(whole)
        assert poisoned(host[:GUARD], t.dtype).all(), f"written before {name}"
        assert poisoned(host[-GUARD:], t.dtype).all(), f"written past {name}"
        inside = host[GUARD:-GUARD].reshape(memory_shape(t, batch))
        found[name] = real(inside, t)
        untouched = np.isnan(expected[name])
        raw = inside.transpose(0, 3, 1, 2) if t.layout == "NHWC" and inside.ndim == 4 else inside
        assert poisoned(raw[untouched], t.dtype).all(), f"written beside the slice of {name}"
        assert not poisoned(raw[~untouched], t.dtype).any(), f"not all of the slice of {name} is written"
    return found, expected, graph


def assert_near(found, expected, graph, bound):
    """Within `bound` of the exact sums: where rounding to the tensor's type follows, a step of it more."""
    for name, values in expected.items():
        if name in found:
            t = graph.tensors[name]
            inside = ~np.isnan(values)
            error = np.abs(found[name] - values)[inside]
            step = t.scale or (2.0**-10 * np.abs(values[inside]) if t.dtype == "float16" else 0)
            assert (error <= bound + step).all(), f"{name}: {error.max()}"
            if t.dtype == "int8":  # a sum at the border of two steps may go either way, not many
                assert (error > t.scale * 0.501).sum() <= 1 + 0.01 * error.size


CASES = {
    "one element": {"c": 1, "k": 1, "h": 1, "w": 1, "r": 1},
    "odd sizes": {"c": 5, "k": 19, "h": 8, "w": 7, "r": 3, "padding": (1, 1, 1, 1)},
    "padding that differs": {"c": 3, "k": 4, "h": 6, "w": 9, "r": 3, "padding": (0, 2, 1, 0), "stride": (2, 1)},
    "dilation": {"c": 4, "k": 8, "h": 9, "w": 8, "r": 3, "padding": (2, 2, 2, 2), "dilation": (2, 2)},
    "words of four": {"c": 12, "k": 20, "h": 5, "w": 5, "r": 3, "padding": (1, 1, 1, 1)},
    "vectors of eight": {"c": 24, "k": 33, "h": 4, "w": 9, "r": 1},
    "long vectors, several tiles": {"c": 32, "k": 40, "h": 8, "w": 8, "r": 3, "padding": (1, 1, 1, 1)},
    "windows wholly in the padding": {"c": 16, "k": 8, "h": 1, "w": 2, "r": 3, "padding": (4, 4, 4, 4)},
}
LAYOUTS = {"float32": ("NCHW", "NHWC"), "float16": ("NHWC",), "int8": ("NHWC",)}


def cbr(case, precision, layout, *, outputs=None, residual=False, vector=False, **activation):
    """A cbr's node and tensors, and values for its inputs. `outputs`: (slices, tensors), else one whole tensor."""
    rng = generator()
    c, k, r = case["c"], case["k"], case["r"]
    shape = (c,) if vector else (c, case["h"], case["w"])
    filters = rng.uniform(-1, 1, (k, c, r, r)).astype(np.float32)
    weights = {"filters": filters, "bias": rng.uniform(-1, 1, k).astype(np.float32)}
    if precision == "int8":
        weights["filter_scales"] = int8.filter_scales(filters)
    attributes = {name: case[name] for name in ("padding", "stride", "dilation") if name in case}
    node = Node(
        "y",
        "cbr",
        ("x",),
        (Slice("y", 0, k),),
        {**attributes, "precision": precision, **(activation or {"relu": True})},
        weights,
    )
    x = tensor("x", shape, precision, layout, 1 / 127)
    size = node.operator.shape([shape], node.attributes, weights)
    tensors, values = [x], [rng.uniform(-1, 1, (2, *shape))]
    if residual:
        tensors.append(tensor("other", size, precision, layout))
        values.append(rng.uniform(-3, 3, (2, *size)))
        node = Node(node.name, "cbr", ("x", "other"), node.outputs, node.attributes, weights)
    if outputs is None:
        tensors.append(tensor("y", size, precision, layout, 0.02 * math.sqrt(c * r * r)))
    else:
        parts, made = outputs(size, precision, layout)
        node = Node(node.name, "cbr", node.inputs, parts, node.attributes, weights)
        tensors += made
    return node, tensors, values


def check(node, tensors, values, names=None):
    """Every tactic that does not refuse, but those of test_wgmma.py; the names of those that ran."""
    (layer,) = layers(one_node_graph(node, tensors), 2)
    ran = []
    for tactic in tactics.candidates(layer):
        if tactic.name in names if names else not tactic.name.startswith("wgmma"):
            found, expected, graph = run(tactic, node, tensors, 2, values)
            assert_near(found, expected, graph, 2.0**-20 * filters_size(node))
            ran.append(tactic.name)
    return ran


def filters_size(node):
    return node.weights["filters"][0].size + 8 if "filters" in node.weights else 16


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize(("precision", "layout"), [(p, layout) for p in LAYOUTS for layout in LAYOUTS[p]])
def test_every_tactic_computes_a_cbr(case, precision, layout):
    ran = check(*cbr(case, precision, layout))
    families = {name.rpartition("_in_")[0] or name for name in ran}
    families = {name.rpartition("_")[0] for name in families}
    pixel_bytes = case["c"] * cbr_tactics.ITEMSIZE[precision]
    expected = {"f32"}
    if pixel_bytes % 4 == 0:
        expected |= {"float32": set(), "float16": {"f16_mma"}, "int8": {"dp4a", "i8_mma"}}[precision]
    if precision == "float32" and (layout == "NCHW" or case["c"] == 1) and case["k"] % 4 == 0:
        expected.add("pixels")
    assert families == expected


SOME = (
    "pixels_32x4_in_16",
    "pixels_32x8_in_8",
    "f32_16x16_in_8",
    "f32_32x32_in_2",
    "dp4a_16x16_in_8",
    "f16_mma_16x16_in_2",
    "i8_mma_64x16",
    "i8_mma_16x8_in_8",
)


@pytest.mark.parametrize(("precision", "layout"), [(p, layout) for p in LAYOUTS for layout in LAYOUTS[p]])
def test_results_spread_over_slices_with_a_residual(precision, layout):
    """Three destinations: the middle of a wider tensor, a whole one in float32, and the end of the first."""

    def outputs(size, precision, layout):
        k, rest = size[0], size[1:]
        parts = (Slice("wide", 8, 5), Slice("alone", 0, k - 9), Slice("wide", 16, 4))
        wide = tensor("wide", (20, *rest), precision, layout, 0.11)
        return parts, [wide, tensor("alone", (k - 9, *rest), "float32", layout)]

    node, tensors, values = cbr(CASES["words of four"], precision, layout, outputs=outputs, residual=True)
    assert len(check(node, tensors, values, SOME)) >= 2


@pytest.mark.parametrize("precision", LAYOUTS)
def test_any_kernel_writes_any_type(precision):
    """Four destinations, one of each type and one more, of scales that differ."""

    def outputs(size, _precision, layout):
        made = [
            tensor(f"y{i}", (4, *size[1:]), dtype, layout, scale)
            for i, (dtype, scale) in enumerate(
                (("float32", None), ("int8", 0.05), ("float16", None), ("int8", 0.2)),
            )
        ]
        return tuple(Slice(t.name, 0, 4) for t in made), made

    case = {"c": 8, "k": 16, "h": 5, "w": 5, "r": 3, "padding": (1, 1, 1, 1)}
    node, tensors, values = cbr(case, precision, "NHWC", outputs=outputs)
    assert len(check(node, tensors, values)) >= 4


@pytest.mark.parametrize("precision", LAYOUTS)
def test_a_vector_of_features_is_an_image_of_one_pixel(precision):
    case = {"c": 48, "k": 10, "h": 1, "w": 1, "r": 1}
    assert len(check(*cbr(case, precision, "NCHW", vector=True, relu=False), SOME)) >= 2


def test_no_relu_leaves_negative_numbers():
    node, tensors, values = cbr(CASES["odd sizes"], "float32", "NCHW", relu=False)
    found, _, _ = run(tactics.find("f32_64x64"), node, tensors, 2, values)
    assert (found["y"] < 0).any()


@pytest.mark.parametrize(
    "case",
    [
        {"k": 64, "h": 20, "w": 17, "r": 7, "padding": (3, 3, 3, 3), "stride": (2, 2)},
        {"k": 32, "h": 9, "w": 230, "r": 3, "padding": (0, 0, 1, 1), "stride": (2, 2)},
        {"k": 96, "h": 6, "w": 5, "r": 5, "padding": (2, 2, 2, 2)},
    ],
)
@pytest.mark.parametrize("result", ["float16", "int8"])
def test_an_image_of_three_channels_is_read_as_it_comes(case, result):
    """Float32 in NCHW, with numbers that float16 has, too."""
    node, tensors, values = cbr({"c": 3, **case}, "float16", "NHWC")
    tensors = [tensor("x", tensors[0].shape), tensor("y", tensors[1].shape, result, "NHWC", 0.1)]
    node = node.with_weights(filters=node.weights["filters"].astype(np.float16))
    ran = check(node, tensors, [values[0].astype(np.float16)], ("first", "f32_64x64"))
    assert ran == ["first", "f32_64x64"]


@pytest.mark.parametrize(
    ("shape", "told"),
    [((3, 9, 9), "32 filters at a time"), ((4, 9, 9), "three channels alone, and computes in float16")],
)
def test_the_first_layer_refuses_what_it_cannot_take(shape, told):
    node, tensors, _ = cbr({"c": shape[0], "k": 40, "h": 9, "w": 9, "r": 3}, "float16", "NHWC")
    (layer,) = layers(one_node_graph(node, tensors), 2)
    assert told in tactics.find("first").refuses(layer)


@pytest.mark.parametrize("activation", [{"relu": True, "most": 1.5}, {"swish": True}, {"relu": False}])
@pytest.mark.parametrize(("precision", "layout"), [("float32", "NCHW"), ("float16", "NHWC")])
def test_activations(precision, layout, activation):
    node, tensors, values = cbr(CASES["words of four"], precision, layout, residual=True, **activation)
    assert len(check(node, tensors, values, SOME)) >= 1


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("r", "padding"), [(3, (1, 1, 1, 1)), (5, (2, 1, 2, 3)), (1, (0, 0, 0, 0))])
def test_depthwise(r, padding, stride):
    case = {"c": 16, "k": 16, "h": 6, "w": 9, "r": r, "padding": padding, "stride": (stride, stride)}
    node, tensors, values = cbr(case, "float16", "NHWC", relu=True, most=2.0)
    node = node.with_weights(filters=node.weights["filters"][:, :1])
    ran = check(node, tensors, values)
    assert ran == ["depthwise_4", "depthwise_2", "depthwise_1", "grouped"]


def test_conv_and_dense_of_an_unfused_graph():
    rng = generator()
    filters = rng.standard_normal((7, 3, 3, 3)).astype(np.float32)
    node = Node("y", "conv", ("x",), (Slice("y", 0, 7),), {"stride": (2, 2)}, {"filters": filters})
    check(node, [tensor("x", (3, 9, 9)), tensor("y", (7, 4, 4))], [rng.standard_normal((2, 3, 9, 9))])
    weights = {"matrix": rng.standard_normal((10, 50)), "bias": rng.standard_normal(10)}
    node = Node("y", "dense", ("x",), (Slice("y", 0, 10),), {}, weights)
    check(node, [tensor("x", (50,)), tensor("y", (10,))], [rng.standard_normal((2, 50))])


SAME = [("float32", "NCHW"), ("float32", "NHWC"), ("float16", "NHWC"), ("int8", "NHWC")]


@pytest.mark.parametrize("op", ["max_pool", "average_pool"])
@pytest.mark.parametrize(("dtype", "layout"), SAME)
def test_pools_write_slices(op, dtype, layout):
    rng = generator()
    attributes = {"window": (3, 2), "padding": (1, 0, 1, 1), "stride": (2, 1)}
    for count in (False, True) if op == "average_pool" else (None,):
        given = attributes if count is None else {**attributes, "count_padding": count}
        node = Node("y", op, ("x",), (Slice("y", 3, 6),), given)
        x, y = tensor("x", (6, 7, 5), dtype, layout, 0.0217), tensor("y", (11, 4, 5), dtype, layout, 0.0311)
        check(node, [x, y], [rng.uniform(-2, 2, (2, 6, 7, 5))])


@pytest.mark.parametrize("window", [(3, 3), (2, 4)])
@pytest.mark.parametrize("op", ["max_pool", "average_pool"])
def test_pools_of_eight_channels_at_a_time(op, window):
    node = Node("y", op, ("x",), (Slice("y", 8, 16),), {"window": window, "padding": (1, 0, 1, 1), "stride": (2, 1)})
    size = node.operator.shape([(16, 7, 6)], node.attributes, {})[1:]
    x, y = tensor("x", (16, 7, 6), "float16", "NHWC"), tensor("y", (40, *size), "float16", "NHWC")
    assert check(node, [x, y], [generator().uniform(-2, 2, (2, 16, 7, 6))]) == ["pool_eights", "pool"]


@pytest.mark.parametrize("window", [(3, 3), (2, 4)])
def test_pools_of_sixteen_int8_at_a_time(window):
    node = Node("y", "max_pool", ("x",), (Slice("y", 16, 32),), {"window": window, "padding": (1, 0, 1, 1)})
    size = node.operator.shape([(32, 7, 6)], node.attributes, {})[1:]
    x, y = tensor("x", (32, 7, 6), "int8", "NHWC"), tensor("y", (64, *size), "int8", "NHWC")
    assert check(node, [x, y], [generator().uniform(-9, 2, (2, 32, 7, 6))]) == ["pool_sixteens", "pool"]


@pytest.mark.parametrize(("dtype", "layout"), SAME)
@pytest.mark.parametrize("shape", [(5, 3, 3), (40, 8, 8), (128, 7, 5)])
@pytest.mark.parametrize("result", ["float32", "float16"])
def test_global_average_pools(dtype, layout, shape, result):
    node = Node("y", "global_average_pool", ("x",), (Slice("y", 0, shape[0]),))
    x, y = tensor("x", shape, dtype, layout), tensor("y", shape[:1], result)
    check(node, [x, y], [generator().uniform(-2, 2, (2, *shape))])


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_pointwise_layers(layout):
    rng = generator()
    x, y = tensor("x", (6, 5, 4), layout=layout), tensor("y", (6, 5, 4), layout=layout)
    values = rng.standard_normal((2, 6, 5, 4))
    whole = (Slice("y", 0, 6),)
    norm = {name: rng.uniform(0.5, 2, 6) for name in ("gamma", "beta", "mean", "variance")}
    check(Node("y", "batch_norm", ("x",), whole, {}, norm), [x, y], [values])
    check(Node("y", "relu", ("x",), whole), [x, y], [values])
    other = tensor("other", (6, 5, 4), layout=layout)
    check(Node("y", "add", ("x", "other"), whole), [x, other, y], [values, values[::-1]])
    bias = tensor("other", (6, 1, 1))
    for inputs in (("x", "other"), ("other", "x")):
        arrays = {"x": values, "other": rng.standard_normal((2, 6, 1, 1))}
        tensors = {"x": x, "other": bias}
        node = Node("y", "add", inputs, whole)
        check(node, [*(tensors[name] for name in inputs), y], [arrays[name] for name in inputs])
    wide = tensor("y", (15, 5, 4), layout=layout)
    parts = [tensor(name, (c, 5, 4), layout=layout) for name, c in (("a", 6), ("b", 1), ("d", 8))]
    node = Node("y", "concat", ("a", "b", "d"), (Slice("y", 0, 15),))
    check(node, [*parts, wide], [rng.standard_normal((2, *t.shape)) for t in parts])


@pytest.mark.parametrize("target", SAME)
@pytest.mark.parametrize("source", SAME)
def test_converts_between_types_and_layouts(source, target):
    node = Node("y", "convert", ("x",), (Slice("y", 0, 5),))
    x, y = tensor("x", (5, 3, 4), *source, 0.04), tensor("y", (5, 3, 4), *target, 0.01)
    check(node, [x, y], [generator().uniform(-4, 4, (2, 5, 3, 4))])


def test_int8_rounds_to_even_and_clips():
    node = Node("y", "convert", ("x",), (Slice("y", 0, 8),))
    x, y = tensor("x", (8,)), tensor("y", (8,), "int8", scale=1.0)
    values = np.array([[0.5, 1.5, -0.5, -2.5, 126.6, 1e9, -128, -np.inf]])
    found, _, _ = run(tactics.find("pointwise"), node, [x, y], 1, [values])
    assert found["y"].tolist() == [[0, 2, 0, -2, 127, 127, -127, -127]]


@pytest.mark.parametrize("columns", [1, 10, 31, 33, 100])
def test_softmax(columns):
    node = Node("y", "softmax", ("x",), (Slice("y", 0, columns),))
    values = generator().uniform(-90, 90, (5, columns))
    graph = [tensor("x", (columns,)), tensor("y", (columns,))]
    found, expected, _ = run(tactics.find("softmax"), node, graph, 5, [values])
    np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-5, atol=1e-7)


FUNCTIONS = {**dict.fromkeys(UNARY, 1), **dict.fromkeys(BINARY, 2)}


@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_of_elements(op):
    rng = generator()
    x, other, y = tensor("x", (5, 3, 7)), tensor("other", (5, 1, 7)), tensor("y", (5, 3, 7))
    positive = op in ("log", "sqrt", "pow")
    values = [rng.uniform(0.1 if positive else -4, 4, (2, *t.shape)) for t in (x, other)]
    names, count = ("x", "other"), FUNCTIONS[op]
    node = Node("y", op, names[:count], (Slice("y", 0, 5),))
    found, expected, _ = run(tactics.find("elementwise"), node, [x, other, y][:count] + [y], 2, values[:count])
    np.testing.assert_allclose(found["y"], expected["y"], rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("op", ["min", "max", "clip", "relu"])
def test_a_nan_stays_one(op):
    x = y = tensor("x", (4,))
    y = tensor("y", (4,))
    node = Node("y", op, ("x", "x") if op in BINARY else ("x",), (Slice("y", 0, 4),))
    given = np.array([[np.nan, 1, -1, np.nan]])
    tactic = tactics.find("pointwise" if op == "relu" else "elementwise")
    found, _, _ = run(tactic, node, [x, y], 1, [given] * len(node.inputs))
    assert np.isnan(found["y"][0, [0, 3]]).all()


@pytest.mark.parametrize("shape", [(6,), (5, 7), (3, 1, 5), (2, 3, 4, 5), (2, 1, 3, 2, 4)])
def test_copies_of_any_shape(shape):
    rng = generator()
    axes, values = len(shape), rng.standard_normal((2, *shape))
    order = tuple(int(axis) for axis in rng.permutation(axes))
    steps = tuple(-1 if size > 2 else 1 for size in shape)
    starts = tuple(size - 1 if size > 2 else 0 for size in shape)
    wide = tuple(size if size > 1 else 3 for size in shape)
    for op, attributes in {
        "transpose": {"order": order},
        "slice": {"starts": starts, "steps": steps, "shape": tuple(max(size - 1, 1) for size in shape)},
        "expand": {"shape": wide},
    }.items():
        size = OPERATORS[op].shape([shape], attributes, {})
        y = tensor("y", size)
        node = Node("y", op, ("x",), (Slice("y", 0, y.channels),), attributes)
        check(node, [tensor("x", shape), y], [values])


@pytest.mark.parametrize("op", ["sigmoid", "softmax", "reduce_sum"])
def test_what_takes_rows_refuses_channels_last(op):
    node = Node("y", op, ("x",), (Slice("y", 0, 6),))
    made = [tensor(name, (6, 5, 4), layout="NHWC") for name in ("x", "y")]
    (layer,) = layers(one_node_graph(node, made), 1)
    with pytest.raises(tactics.NoTactic, match="it takes NCHW, and x is NHWC"):
        tactics.candidates(layer)


def test_axes_along_which_all_goes_on_evenly_become_one():
    assert element_tactics.joined((2, 3, 4, 5), [(60, 20, 5, 1)]) == ((120,), [(1,)])
    assert element_tactics.joined((2, 3, 1, 5), [(15, 5, 5, 1), (3, 1, 0, 0)]) == ((6, 5), [(5, 1), (1, 0)])
    assert element_tactics.joined((1, 1), [(1, 1)]) == ((1,), [(0,)])


@pytest.mark.parametrize("shape", [(40,), (5, 33), (2, 3, 7)])
def test_what_is_computed_of_rows(shape):
    rng = generator()
    x, values = tensor("x", shape), [rng.uniform(0.5, 1.5, (2, *shape))]
    whole = tensor("y", shape)
    weights = {"gamma": rng.standard_normal(shape[-1]), "beta": rng.standard_normal(shape[-1])}
    for op, given in (("softmax", {}), ("layer_norm", weights)):
        check(Node("y", op, ("x",), (Slice("y", 0, whole.channels),), {}, given), [x, whole], values)
    for op in REDUCED:
        y = tensor("y", (*shape[:-1], 1))
        check(Node("y", op, ("x",), (Slice("y", 0, y.channels),)), [x, y], values)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (17, 5, 33), (16, 32, 16)])
def test_matmul(sizes):
    (m, k, n), rng = sizes, generator()
    tensors = [tensor("a", (3, m, k)), tensor("b", (3, k, n)), tensor("y", (3, m, n))]
    values = [rng.uniform(-1, 1, (2, *t.shape)) for t in tensors[:2]]
    check(Node("y", "matmul", ("a", "b"), (Slice("y", 0, 3),)), tensors, values)


@pytest.mark.parametrize("mask", [None, (1, False), (2, True)])
@pytest.mark.parametrize("sizes", [(5, 40, 8, 8), (5, 1, 3, 1), (17, 65, 40, 140)])
def test_attention(sizes, mask):
    (s, t, d, e), rng = sizes, generator()
    tensors = [tensor("q", (2, s, d)), tensor("k", (2, t, d)), tensor("v", (2, t, e))]
    tensors += [tensor("mask", (mask[0], s if mask[1] else 1, t))] if mask else []
    values = [rng.standard_normal((2, *one.shape)) for one in tensors]
    if mask:
        values[3][..., ::3] = -np.inf
        values[3][..., -1] = 0
    node = Node("y", "attention", tuple(one.name for one in tensors), (Slice("y", 0, 2),), {"scale": 0.3})
    check(node, [*tensors, tensor("y", (2, s, e))], values)


@pytest.mark.skipif(by_kernels() is None, reason="no lab offers kernels for attention")
@pytest.mark.parametrize("sizes", [(5, 40, 32), (70, 33, 64)])
def test_attention_by_another_labs_kernels(sizes):
    """By the kernels for attention that are offered, in float16."""
    (s, t, d), rng = sizes, generator()
    tensors = [tensor(name, (2, n, d), "float16") for name, n in (("q", s), ("k", t), ("v", t), ("y", s))]
    values = [rng.standard_normal((2, *one.shape)) for one in tensors[:3]]
    node = Node("y", "attention", ("q", "k", "v"), (Slice("y", 0, 2),), {"scale": 0.3, "precision": "float16"})
    (layer,) = layers(one_node_graph(node, tensors), 2)
    able = tactics.candidates(layer)
    assert [tactic.name for tactic in able] == ["attention_mma", "attention_wgmma"]
    for tactic in able[: 2 if backend.name() != "gpu" or hopper.available() else 1]:
        found, expected, graph = run(tactic, node, tensors, 2, values)
        assert_near(found, expected, graph, 2.0**-10)  # weights are rounded to float16


def test_copies_carry_float16():
    values = [generator().standard_normal((2, 3, 5, 4))]
    for op, given, shape in (
        ("transpose", {"order": (2, 0, 1)}, (4, 3, 5)),
        ("slice", {"starts": (1, 0, 3), "steps": (1, 2, -1), "shape": (2, 3, 4)}, (2, 3, 4)),
    ):
        tensors = [tensor("x", (3, 5, 4), "float16"), tensor("y", shape, "float16")]
        assert check(Node("y", op, ("x",), (Slice("y", 0, shape[0]),), given), tensors, values) == ["elementwise"]


@pytest.mark.parametrize(("dtype", "layout"), SAME)
@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_lrn(size, dtype, layout):
    """Channels one by one, and eight at a time."""
    for c in (6, 24):
        given = {"size": size, "alpha": 0.5, "beta": 0.75, "bias": 2.0}
        node = Node("y", "lrn", ("x",), (Slice("y", 0, c),), given)
        x, y = (tensor(name, (c, 3, 5), dtype, layout) for name in ("x", "y"))
        check(node, [x, y], [generator().uniform(-2, 2, (2, c, 3, 5))])


@pytest.mark.parametrize(("precision", "layout"), [("float32", "NCHW"), ("float32", "NHWC"), ("float16", "NHWC")])
@pytest.mark.parametrize(("groups", "each"), [(8, 1), (8, 2), (2, 6)])
def test_groups_of_channels(groups, each, precision, layout):
    """Depthwise, two filters for each channel, and groups of four channels."""
    rng = generator()
    filters = rng.uniform(-1, 1, (groups * each, 8 // groups, 3, 3)).astype(np.float32)
    weights = {"filters": filters, "bias": rng.uniform(-1, 1, groups * each).astype(np.float32)}
    given = {"padding": (1, 0, 1, 2), "stride": (2, 1), "dilation": (1, 2), "relu": True, "precision": precision}
    node = Node("y", "cbr", ("x", "other"), (Slice("y", 3, groups * each),), given, weights)
    size = node.operator.shape([(8, 7, 6)], node.attributes, weights)
    tensors = [tensor("x", (8, 7, 6), precision, layout), tensor("other", size, precision, layout)]
    tensors.append(tensor("y", (size[0] + 5, *size[1:]), precision, layout))
    assert check(node, tensors, [rng.uniform(-1, 1, (2, *t.shape)) for t in tensors[:2]]) == ["grouped"]


@pytest.mark.parametrize("precision", LAYOUTS)
def test_rows_of_features_are_pixels(precision):
    """A dense layer of a sequence, with a residual, spread over a slice of wider rows and rows of its own."""

    def outputs(_size, precision, _layout):
        parts = Slice("wide", 3, 8), Slice("alone", 0, 4)
        return parts, [tensor("wide", (9, 16), precision), tensor("alone", (9, 4), precision)]

    case = {"c": 16, "k": 12, "h": 1, "w": 1, "r": 1}
    node, tensors, values = cbr(case, precision, "NCHW", outputs=outputs, residual=True)
    rng = generator()
    tensors[:2] = tensor("x", (9, 16), precision, scale=1 / 127), tensor("other", (9, 12), precision)
    values = [rng.uniform(-1, 1, (2, *t.shape)) for t in tensors[:2]]
    assert len(check(node, tensors, values, SOME)) >= 2


def test_results_are_the_same_from_run_to_run():
    node, tensors, values = cbr(CASES["long vectors, several tiles"], "float32", "NHWC")
    tactic = tactics.find("f32_16x16_in_8")
    first, second = (run(tactic, node, tensors, 2, values)[0]["y"] for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_lanes_read_and_write_side_by_side():
    """Few sectors per request: 4 for 32 floats; more where a warp's lanes begin a new row of channels."""
    case = {"c": 32, "k": 32, "h": 8, "w": 8, "r": 3, "padding": (1, 1, 1, 1)}
    for precision, layout, name, loads, stores in (
        ("float32", "NCHW", "f32_16x16_in_8", 8, 4),
        ("float32", "NCHW", "pixels_32x4_in_16", 4, 4),
        ("float32", "NHWC", "f32_16x16_in_8", 5, 4),
        ("float16", "NHWC", "f16_mma_16x16_in_2", 18, 2.1),
        ("int8", "NHWC", "i8_mma_16x8_in_8", 18, 4),
    ):
        node, tensors, values = cbr(case, precision, layout)
        with profile() as p:
            run(tactics.find(name), node, tensors, 2, values)
        counts = p[-1].counts
        assert counts.global_load_sectors <= loads * counts.global_load_requests, name
        assert counts.global_store_sectors <= stores * counts.global_store_requests, name


def test_the_tactics_of_a_layer_and_why_others_refuse():
    node, tensors, _ = cbr(CASES["odd sizes"], "int8", "NHWC")
    (layer,) = layers(one_node_graph(node, tensors), 1)
    assert {t.name.partition("_")[0] for t in tactics.candidates(layer)} == {"f32"}
    node, tensors, _ = cbr(CASES["words of four"], "int8", "NHWC")
    (layer,) = layers(one_node_graph(node, tensors), 1)
    assert tactics.candidates(layer)[0].name.startswith("i8_mma")
    assert tactics.candidates(layer, capability=70)[0].name.startswith("dp4a")
    assert tactics.candidates(layer, capability=60)[0].name.startswith("f32")
    parts = tuple(Slice(f"y{i}", 0, 4) for i in range(5))
    spread = Node("y", "cbr", node.inputs, parts, node.attributes, node.weights)
    made = [tensor(f"y{i}", (4, 5, 5), "int8", "NHWC") for i in range(5)]
    (layer,) = layers(one_node_graph(spread, [tensors[0], *made]), 1)
    with pytest.raises(tactics.NoTactic, match=r"no tactic can run y \(cbr, batch 1\).* writes 5 slices, and kernels"):
        tactics.candidates(layer)


def test_the_registry_is_open_and_names_are_unique():
    mine = Tactic("mine", ("relu",), lambda _: "", lambda _: {}, lambda *_: [])
    tactics.register(mine)
    try:
        with pytest.raises(ValueError, match="there is a tactic 'mine' already"):
            tactics.register(mine)
        tactics.register(mine, replace=True)
        assert tactics.find("mine") is mine
    finally:
        tactics.forget("mine")
    with pytest.raises(ValueError, match="there is no tactic 'mine'; there are f32_16x16_in_8"):
        tactics.find("mine")
    assert other_tactics.BLOCK % 32 == 0
