"""Lab 06's portable kernels on a GPU: as in the simulator, and right on layers of ResNet-50."""

import math
from dataclasses import replace

import numpy as np
import pytest

from kernels.convolution import convolve, ladder
from kernels.convolution.definition import networks, reference
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.launches import OF_STEPS
from tests.support.random_inputs import generator
from warpcourse.bench.compared_launches import is_array
from warpcourse.bench.lab_kernels import launch as launched
from warplab import cp
from warplab.hardware import backend
from warplab.launch.simulate import simulate

pytestmark = pytest.mark.gpu
MOST_ERROR = {"float32": 4e-6, "float16": 4e-4}  # relative, of a layer's whole result
LAYERS = {str(conv): conv for conv in (replace(layer.convolution, n=1) for layer in networks.convolutions())}


@pytest.fixture(autouse=True)
def _on_a_gpu():
    assert backend.name() == "gpu", f"these tests measure a GPU; {backend.reason()}"


def normal(*shapes, dtype=np.float32):
    random = generator()
    return [random.standard_normal(shape).astype(dtype) for shape in shapes]


def parameters(conv, layout="NCHW"):
    pairs = {name: getattr(conv, name) for name in ("padding", "stride", "dilation", "groups")}
    return pairs | {"layout": layout}


@pytest.mark.parametrize("launch", OF_STEPS, ids=lambda launch: launch.name)
def test_gpu_and_simulator_agree_bit_for_bit(launch):
    arguments = [cp.asarray(x) if is_array(x) else x for x in launch.arguments]
    launched(launch.kernel(), launch.grid, launch.block, tuple(arguments), launch.shared_bytes)
    mine = [x.copy() if is_array(x) else x for x in launch.arguments]
    simulate(launch.kernel(), launch.grid, launch.block, tuple(mine), shared_bytes=launch.shared_bytes)
    changed = 0
    for before, found, simulated in zip(launch.arguments, arguments, mine, strict=True):
        if is_array(before):
            bits = f"u{before.itemsize}"
            np.testing.assert_array_equal(cp.asnumpy(found).view(bits), simulated.view(bits))
            changed += not np.array_equal(before, simulated)
    assert changed == 1, "a kernel writes one array"


FP32 = ("direct", "im2col", "implicit_gemm", "winograd", "fft")
FORWARD = [(name, "NCHW", np.float32) for name in FP32] + [("mma_nhwc", "NHWC", np.float16)]


@pytest.mark.parametrize("conv", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize(("name", "layout", "dtype"), FORWARD)
def test_layers_of_resnet50(name, layout, dtype, conv):
    if name == "winograd" and ladder.step(name).refuses(conv, layout, dtype):
        return  # not 3 × 3 with stride 1
    x, w = normal(conv.x_shape(layout), conv.w_shape(layout), dtype=dtype)
    (bias,) = normal((conv.k,))
    out = cp.full(conv.y_shape(layout), np.nan, dtype)
    arguments = (cp.asarray(array) for array in (x, w, bias))
    convolve.forward(*arguments, True, step=name, out=out, **parameters(conv, layout))
    exact = reference.forward(x, w, conv, layout) + (bias if layout == "NHWC" else bias[:, None, None])
    error = reference.relative_error(cp.asnumpy(out), np.maximum(exact, 0))
    assert error < MOST_ERROR[np.dtype(dtype).name], error


@pytest.mark.parametrize("conv", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize(
    ("name", "layout", "dtype"), [("implicit_gemm", "NCHW", np.float32), ("mma_nhwc", "NHWC", np.float16)]
)
def test_backward_passes_of_resnet50(name, layout, dtype, conv):
    shapes = conv.x_shape(layout), conv.w_shape(layout), conv.y_shape(layout)
    arrays = x, w, dy = normal(*shapes, dtype=dtype)
    on_gpu = [cp.asarray(array) for array in arrays]
    given, most = parameters(conv, layout) | {"step": name}, MOST_ERROR[np.dtype(dtype).name]
    dx = convolve.backward_data(on_gpu[2], on_gpu[1], x.shape, **given)
    assert reference.relative_error(cp.asnumpy(dx), reference.backward_data(dy, w, conv, layout)) < most
    dw, again = (convolve.backward_filter(on_gpu[0], on_gpu[2], w.shape, **given) for _ in range(2))
    assert reference.relative_error(cp.asnumpy(dw), reference.backward_filter(x, dy, conv, layout)) < most
    assert bool((dw == again).all()), "the result differs from run to run"


def test_large_batches_count_right():
    """Offsets beyond 2^31 bytes, and blocks beyond 65,535."""
    conv = Convolution(2800, 64, 56, 56, 64, 1, 1)
    assert 4 * math.prod(conv.y_shape()) > 2**31
    x = cp.random.random(conv.x_shape(), dtype=np.float32)
    (w,) = normal(conv.w_shape())
    for name in ("direct", "implicit_gemm"):
        y = convolve.forward(x, cp.asarray(w), step=name, **parameters(conv))
        last = replace(conv, n=1)
        exact = reference.forward(cp.asnumpy(x[-1:]), w, last)
        assert reference.relative_error(cp.asnumpy(y[-1:]), exact) < MOST_ERROR["float32"]
