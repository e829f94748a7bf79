"""Depthwise convolution, pooling, softmax, LRN, dropout, batch norm and LSTM on a GPU: as in the simulator, and right
at sizes of real layers.
"""

import math

import numpy as np
import pytest

from kernels.convolution import (
    batch_norm,
    convolve,
    dropout,
    layer_reference,
    mobilenet,
    pooling,
    recurrent,
    reference,
    softmax,
)
from kernels.convolution.layer_launches import LAUNCHES
from tests.support.random_inputs import generator
from warplab import cp
from warplab.bench.compared_launches import is_array
from warplab.bench.lab_kernels import launch as launched
from warplab.hardware import backend
from warplab.launch.simulate import simulate

pytestmark = pytest.mark.gpu
# exp, tanh, powers and 1 / √x of the GPU's units and the simulator's differ in the last bits of float32.
CLOSE = {"float16": 2.0**-10, "float32": 2.0**-20}
EXACT = ("depthwise", "pooling", "dropout")
LAYOUTS = {"float16": "NHWC", "float32": "NCHW"}
LAYERS = {layer.name: layer.convolution for layer in mobilenet.layers()}


@pytest.fixture(autouse=True)
def _on_a_gpu():
    assert backend.name() == "gpu", f"these tests measure a GPU; {backend.reason()}"


def random(shape, dtype, low=-1, high=1):
    return generator().uniform(low, high, shape).astype(dtype)


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.name)
def test_gpu_and_simulator_agree(launch):
    arguments = [cp.asarray(x) if is_array(x) else x for x in launch.arguments]
    launched(launch.kernel(), launch.grid, launch.block, tuple(arguments), launch.shared_bytes)
    mine = [x.copy() if is_array(x) else x for x in launch.arguments]
    simulate(launch.kernel(), launch.grid, launch.block, tuple(mine), shared_bytes=launch.shared_bytes)
    changed = 0
    for before, found, simulated in zip(launch.arguments, arguments, mine, strict=True):
        if not is_array(before):
            continue
        changed += not np.array_equal(before, simulated)
        found = cp.asnumpy(found)
        if launch.name.startswith(EXACT):
            bits = f"u{before.itemsize}"
            np.testing.assert_array_equal(found.view(bits), simulated.view(bits))
        else:
            near = CLOSE[before.dtype.name]
            np.testing.assert_allclose(found, simulated, rtol=near, atol=near)
    assert changed, "the kernel wrote nothing"


# -- depthwise ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conv", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("dtype", LAYOUTS)
@pytest.mark.parametrize("kind", ["forward", "backward_data", "backward_filter"])
def test_mobilenets_layers(kind, dtype, conv):
    conv, layout = conv.with_batch(3), LAYOUTS[dtype]
    shapes = [shape(layout) for shape in (conv.x_shape, conv.w_shape, conv.y_shape)]
    one, two, result = {"forward": (0, 1, 2), "backward_data": (2, 1, 0), "backward_filter": (0, 2, 1)}[kind]
    first, second = random(shapes[one], dtype), random(shapes[two], dtype)
    out = cp.full(shapes[result], np.nan, dtype)
    given = {name: getattr(conv, name) for name in ("padding", "stride", "groups")} | {"layout": layout}
    more = () if kind == "forward" else (shapes[result],)
    getattr(convolve, kind)(cp.asarray(first), cp.asarray(second), *more, step="depthwise", out=out, **given)
    exact = getattr(reference, kind)(first, second, conv, layout)
    error = reference.relative_error(cp.asnumpy(out), exact)
    assert error < {"float16": 4e-4, "float32": 4e-6}[dtype], error


# -- the other layers, at sizes of real networks -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", LAYOUTS)
def test_pooling_of_resnet50s_first_layer(dtype):
    layout = LAYOUTS[dtype]
    x = random((4, 112, 112, 64) if layout == "NHWC" else (4, 64, 112, 112), dtype)
    conv = pooling.windows(x.shape, 3, 2, 1, layout)
    y, places = layer_reference.maximum(x, conv, layout)
    index = cp.full(y.shape, 251, np.uint8)
    found = pooling.maximum(cp.asarray(x), 3, 2, 1, layout=layout, index=index)
    np.testing.assert_array_equal(cp.asnumpy(found), y)
    np.testing.assert_array_equal(cp.asnumpy(index), places)
    dy = random(y.shape, dtype)
    dx = cp.asnumpy(pooling.maximum_backward(cp.asarray(dy), index, x.shape, 3, 2, 1, layout=layout))
    np.testing.assert_allclose(
        dx, layer_reference.maximum_backward(dy, places, conv, layout), rtol=CLOSE[dtype], atol=CLOSE[dtype]
    )


@pytest.mark.parametrize("columns", [1000, 32768, 50257])
@pytest.mark.parametrize("dtype", LAYOUTS)
def test_softmax_of_many_rows(dtype, columns):
    x = random((300, columns), dtype, -20, 20)
    exact = layer_reference.softmax(x)
    found = cp.asnumpy(softmax.softmax(cp.asarray(x)))
    np.testing.assert_allclose(found, exact, rtol=4 * CLOSE[dtype], atol=2.0**-24)


def test_the_mask_of_dropout_is_numpys():
    count = 2**22 + 5
    found = cp.asnumpy(dropout.dropout(cp.ones(count, np.float32), 0.25, 2**63 + 1, 2**40))
    np.testing.assert_array_equal(found != 0, dropout.mask(count, 0.25, 2**63 + 1, 2**40))


@pytest.mark.parametrize("dtype", LAYOUTS)
def test_batch_norm_of_a_batch(dtype):
    layout = LAYOUTS[dtype]
    shape, axes = ((32, 56, 56, 64), (0, 1, 2)) if layout == "NHWC" else ((32, 64, 56, 56), (0, 2, 3))
    x = (generator().standard_normal(shape) * 3 + 50).astype(dtype)
    ones, zeros = cp.ones(64, np.float32), cp.zeros(64, np.float32)
    y, mean, variance = batch_norm.training(cp.asarray(x), ones, zeros, layout=layout)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(cp.asnumpy(mean), exact.mean(axis=axes), rtol=1e-6)
    np.testing.assert_allclose(cp.asnumpy(variance), exact.var(axis=axes), rtol=1e-4)
    normal = cp.asnumpy(y).astype(np.float64)
    assert abs(normal.mean(axis=axes)).max() < 1e-3
    np.testing.assert_allclose(normal.var(axis=axes), np.ones(64), rtol=2e-3)


@pytest.mark.parametrize(
    ("method", "n", "hidden"),
    [
        *(("persistent", n, hidden) for n in (1, 8, 33, 64) for hidden in (64, 128, 256, 512, 768, 1024)),
        ("fused", 40, 1500),
        ("separate", 40, 200),
    ],
)
def test_lstm(method, n, hidden):
    steps, inputs = 30, 128
    x = random((steps, n, inputs), "float16")
    w, r = (random((4 * hidden, size), "float16") / np.float16(math.sqrt(size)) for size in (inputs, hidden))
    biases = (random(4 * hidden, "float32") for _ in range(2))
    arguments = x, w, r, *biases, random((n, hidden), "float16"), random((n, hidden), "float32")
    y, c = recurrent.lstm(*map(cp.asarray, arguments), method=method)
    exact, last = recurrent.reference(*arguments)
    np.testing.assert_allclose(cp.asnumpy(y), exact, rtol=0, atol=4e-3)
    np.testing.assert_allclose(cp.asnumpy(c), last, rtol=0, atol=8e-3)
    again, _ = recurrent.lstm(*map(cp.asarray, arguments), method=method)
    assert bool((again == y).all()), "the result differs from run to run"
