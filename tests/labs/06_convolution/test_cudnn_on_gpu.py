"""cuDNN on a GPU as the lab calls it: graphs and plans, the sources' search, an LSTM, a network's other layers."""

import numpy as np
import pytest

from kernels.convolution.beside import recurrent
from kernels.convolution.cudnn import layers, library
from kernels.convolution.cudnn.find import ALGORITHMS, ForwardPass
from kernels.convolution.cudnn.graph import ConvolutionGraph
from kernels.convolution.cudnn.library import CudnnError
from kernels.convolution.cudnn.plan_table import OK, choose, first_choice
from kernels.convolution.cudnn.plans import time_plans
from kernels.convolution.cudnn.rnn import Lstm
from kernels.convolution.definition import operands
from kernels.convolution.definition.geometry import PASSES, Convolution
from kernels.convolution.measured import rnn
from tests.support.random_inputs import generator
from warplab import cp
from warplab.hardware import backend

pytestmark = pytest.mark.gpu
FORMATS = (("NHWC", "float16"), ("NCHW", "float32"))
SMALL = Convolution(2, 16, 13, 11, 24, 3, 3, (1, 1), (2, 2))
MOST_ERROR = {"float16": 4e-4, "float32": 1e-3}  # float32 with TF32's 10 bits
SHAPE = (4, 16, 12, 12)


@pytest.fixture(autouse=True)
def _on_a_gpu():
    assert backend.name() == "gpu", f"these tests need a GPU; {backend.reason()}"


def random_array(shape, layout, dtype):
    n, c, h, w = shape
    values = generator().uniform(-1, 1, shape if layout == "NCHW" else (n, h, w, c))
    return cp.asarray(values.astype(dtype))


def as_nchw(array, layout):
    found = cp.asnumpy(array).astype(np.float64)
    return found if layout == "NCHW" else found.transpose(0, 3, 1, 2)


@pytest.mark.parametrize(("layout", "dtype"), FORMATS)
@pytest.mark.parametrize("kind", PASSES)
def test_the_chosen_plans_compute_the_pass(kind, layout, dtype):
    graph = ConvolutionGraph(SMALL, kind, layout, dtype, others=True)
    timed = time_plans(graph, operands.random_sets(SMALL, kind, layout, dtype, 1), runs=1, rounds=1)
    assert [row["id"] for row in timed.rows] == list(range(len(timed.rows)))
    assert len({row["plan"] for row in timed.rows}) == len(timed.rows)
    for row in (choose(timed.rows), first_choice(timed.rows)):
        assert row["relative_error"] < MOST_ERROR[dtype], row
    assert all((row["seconds"] is not None) == (row["status"] == OK) for row in timed.rows)


def test_without_tf32_float32_is_exact_to_its_rounding():
    graph = ConvolutionGraph(SMALL, "forward", "NCHW", "float32", tf32=False)
    timed = time_plans(graph, operands.random_sets(SMALL, "forward", "NCHW", "float32", 1), runs=1, finalists=0)
    able = [row for row in timed.rows if row["status"] == OK]
    assert able
    assert all(row["relative_error"] < 2e-5 for row in able)
    assert all(row["status"] == OK or row["status"].startswith("left out") for row in timed.rows)


@pytest.mark.parametrize("bias_dtype", ["float16", "float32"])
def test_bias_and_relu_are_part_of_the_graph(bias_dtype):
    kinds = {"bias": True, "relu": True, "bias_dtype": bias_dtype}
    graph = ConvolutionGraph(SMALL, "forward", "NHWC", "float16", **kinds)
    bias = operands.random_bias(SMALL, bias_dtype)
    sets = operands.random_sets(SMALL, "forward", "NHWC", "float16", 1)
    timed = time_plans(graph, sets, bias, runs=1, finalists=0, most=3)
    assert choose(timed.rows)["relative_error"] < MOST_ERROR["float16"]


def test_the_search_of_the_sources_finds_what_runs():
    x, w, y = operands.random_sets(SMALL, "forward", "NCHW", "float32", 1)[0]
    error = operands.error_of(SMALL, "forward", "NCHW", (x, w))
    with ForwardPass(SMALL, "NCHW", "float32", tensor_cores=False) as forward:
        assert forward.y_shape == SMALL.y_shape()
        rows = forward.find(x, w, y)
        assert {row["algorithm"] for row in rows} <= set(ALGORITHMS)
        able = [row for row in rows if row["status"] == OK]
        assert able
        for row in able:
            y.fill(np.nan)
            forward.run(row["algorithm"], x, w, y)
            assert error(y) < 2e-5, row
        refused = next(row for row in rows if row["status"] != OK)
        assert refused["status"].startswith("CUDNN_STATUS_")
        with pytest.raises(CudnnError, match="cudnnGetConvolutionForwardWorkspaceSize: CUDNN_STATUS"):
            forward.workspace_bytes(refused["algorithm"])


@pytest.mark.parametrize(("dtype", "most"), [("float32", 1e-5), ("float16", 2e-3)])
def test_an_lstm_layer_is_that_of_the_definition(dtype, most):
    given = rnn.weights(24, 32)
    x = generator().uniform(-1, 1, (7, 3, 24))
    arrays = [cp.asarray(array.astype(dtype)) for array in (x, *given)]
    y = cp.full((7, 3, 32), np.nan, dtype)
    with Lstm(7, 3, 24, 32, dtype=dtype, tensor_cores=dtype == "float16") as lstm:
        lstm.set_weights(*arrays[1:])
        lstm.forward(arrays[0], y)
    exact, _ = recurrent.reference(x, *given, *np.zeros((2, 3, 32)))
    assert np.linalg.norm(cp.asnumpy(y).astype(np.float64) - exact) < most * np.linalg.norm(exact)


def test_an_lstm_that_is_too_large_for_an_algorithm_is_refused():
    with pytest.raises(CudnnError, match="NOT_SUPPORTED"):
        Lstm(4, 2, 4096, 4096, algorithm="PERSIST_STATIC_SMALL_H")


@pytest.mark.parametrize(("layout", "dtype"), FORMATS)
class TestLayers:
    """Each against NumPy."""

    tolerance: float = 4e-3  # of float16 results near 1

    def test_relu(self, layout, dtype):
        x, dy = random_array(SHAPE, layout, dtype), random_array(SHAPE, layout, dtype)
        y, dx = cp.full_like(x, np.nan), cp.full_like(x, np.nan)
        with layers.Relu(SHAPE, layout, dtype) as relu:
            relu.forward(x, y)
            relu.backward(x, y, dy, dx)
        np.testing.assert_array_equal(cp.asnumpy(y), np.maximum(cp.asnumpy(x), 0))
        np.testing.assert_array_equal(cp.asnumpy(dx), np.where(cp.asnumpy(x) > 0, cp.asnumpy(dy), 0))

    def test_addition(self, layout, dtype):
        a, b = random_array(SHAPE, layout, dtype), random_array(SHAPE, layout, dtype)
        c = cp.full_like(a, np.nan)
        with layers.Add(SHAPE, layout, dtype) as add:
            add.forward(a, b, c)
        np.testing.assert_array_equal(cp.asnumpy(c), cp.asnumpy(a) + cp.asnumpy(b))

    def test_pooling(self, layout, dtype):
        x = random_array(SHAPE, layout, dtype)
        with layers.Pooling(SHAPE, layout, dtype, "max", 3, 1, 2) as pooling:
            assert pooling.y_nchw == (4, 16, 6, 6)
            y, dx = random_array(pooling.y_nchw, layout, dtype), cp.full_like(x, np.nan)
            pooling.forward(x, y)
            pooling.backward(x, y, y, dx)
        padded = np.pad(as_nchw(x, layout), ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
        np.testing.assert_array_equal(as_nchw(y, layout), windows.max((4, 5)))
        assert as_nchw(dx, layout).sum() == pytest.approx(as_nchw(y, layout).sum(), rel=1e-3)

    def test_average_pooling(self, layout, dtype):
        shape = (3, 8, 7, 7)
        x = random_array(shape, layout, dtype)
        with layers.Pooling(shape, layout, dtype, "average", 7, 0, 1) as pooling:
            y = random_array(pooling.y_nchw, layout, dtype)
            pooling.forward(x, y)
        np.testing.assert_allclose(
            as_nchw(y, layout)[..., 0, 0], as_nchw(x, layout).mean((2, 3)), atol=self.tolerance / 4
        )

    def test_softmax(self, layout, dtype):
        shape = (5, 40, 1, 1)
        x = random_array(shape, layout, dtype)
        y = cp.full_like(x, np.nan)
        with layers.Softmax(shape, layout, dtype) as softmax:
            softmax.forward(x, y)
        exponentials = np.exp(as_nchw(x, layout))
        np.testing.assert_allclose(
            as_nchw(y, layout), exponentials / exponentials.sum(1, keepdims=True), atol=self.tolerance / 4
        )

    def test_batch_norm(self, layout, dtype):
        x, dy = random_array(SHAPE, layout, dtype), random_array(SHAPE, layout, dtype)
        y, inferred, again, dx = (cp.full_like(x, np.nan) for _ in range(4))
        with layers.BatchNorm(SHAPE, layout, dtype) as norm:
            norm.scale[...], norm.bias[...] = 1.5, 0.25
            norm.infer(x, inferred)
            norm.infer(x, again, layers.SPATIAL_PERSISTENT)
            norm.forward(x, y)
            norm.backward(x, dy, dx)
            scale_gradient, bias_gradient = cp.asnumpy(norm.scale_gradient), cp.asnumpy(norm.bias_gradient)
        values, gradient = as_nchw(x, layout), as_nchw(dy, layout)
        axes = {"axis": (0, 2, 3), "keepdims": True}
        deviation = np.sqrt(values.var(**axes) + layers.EPSILON)
        normal = (values - values.mean(**axes)) / deviation
        np.testing.assert_allclose(as_nchw(y, layout), 1.5 * normal + 0.25, atol=self.tolerance)
        expected = values / np.sqrt(1 + layers.EPSILON) * 1.5 + 0.25  # statistics are 0 and 1 before training
        for found in (inferred, again):
            np.testing.assert_allclose(as_nchw(found, layout), expected, atol=self.tolerance)
        np.testing.assert_allclose(bias_gradient, gradient.sum((0, 2, 3)), atol=0.1)
        np.testing.assert_allclose(scale_gradient, (gradient * normal).sum((0, 2, 3)), atol=0.1)
        inner = gradient - gradient.mean(**axes) - normal * (gradient * normal).mean(**axes)
        np.testing.assert_allclose(as_nchw(dx, layout), 1.5 * inner / deviation, atol=2 * self.tolerance)


def test_the_versions_agree():
    assert library.version().split(".")[0] == "9"
