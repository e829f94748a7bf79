"""Depthwise convolution and LSTM on a GPU: as in the simulator, and right at sizes of real layers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from kernels.convolution import convolve
from kernels.convolution.beside import recurrent
from kernels.convolution.definition import networks, reference
from kernels.convolution.launches import BESIDE_STEPS
from tests.support.random_inputs import generator
from warpcourse.bench.compared_launches import is_array
from warpcourse.bench.lab_kernels import launch as launched
from warplab import cp
from warplab.hardware import backend
from warplab.launch.simulate import simulate

pytestmark = pytest.mark.gpu
# exp and tanh of the GPU's units and the simulator's differ in the last bits of float32.
CLOSE = {"float16": 2.0**-10, "float32": 2.0**-20}
EXACT = ("depthwise",)
LAYOUTS = {"float16": "NHWC", "float32": "NCHW"}
LAYERS = {layer.name: layer.convolution for layer in networks.mobilenet()}


@pytest.fixture(autouse=True)
def _on_a_gpu():
    assert backend.name() == "gpu", f"these tests measure a GPU; {backend.reason()}"


def random(shape, dtype, low=-1, high=1):
    return generator().uniform(low, high, shape).astype(dtype)


@pytest.mark.parametrize("launch", BESIDE_STEPS, ids=lambda launch: launch.name)
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


@pytest.mark.parametrize("conv", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("dtype", LAYOUTS)
@pytest.mark.parametrize("kind", ["forward", "backward_data", "backward_filter"])
def test_mobilenets_layers(kind, dtype, conv):
    conv, layout = replace(conv, n=3), LAYOUTS[dtype]
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
