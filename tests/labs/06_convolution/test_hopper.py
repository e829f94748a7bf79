"""Step 5 and the gradient of x on Hopper: what the kernel compiles to, what it computes in the simulator with stand-ins
for TMA and wgmma, and what it refuses."""

import re

import numpy as np
import pytest

from kernels.convolution import hopper_kernel, hopper_tiles, reference
from kernels.convolution.geometry import Convolution
from kernels.convolution.hopper_backward_data import BACKWARD_DATA
from kernels.convolution.hopper_forward import FORWARD
from kernels.convolution.hopper_tiles import Tiles
from tests.support.hopper_stand_in import STAND_IN, encoded
from warplab import cp
from warplab.bench import hopper
from warplab.compile import nvrtc
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

(STEP,), (GRADIENT,) = FORWARD, BACKWARD_DATA
SMALL = Tiles(64, 64, 1, 2, 1)


@pytest.fixture
def in_simulator(monkeypatch):
    """Launches run in the simulator."""

    class Function:
        def __init__(self, file, entry, options):
            options = *STAND_IN, *hopper.include(), *options
            self.source = CudaSource(file.read_text(encoding="utf-8"), entry, options, file.name)

        def __call__(self, grid, block, arguments, shared_bytes):
            simulate(self.source, grid, block, arguments, shared_bytes=shared_bytes + 1024, counters=False)

    monkeypatch.setattr(hopper, "encoded", encoded)
    monkeypatch.setattr(hopper, "kernel", Function)
    monkeypatch.setattr(hopper, "multiprocessors", lambda: 2)


def half(random, shape):
    return random.uniform(-1, 1, shape).astype(np.float16)


def check(found, exact, depth):
    bound = 2.0**-11 * np.abs(exact) + 2.0**-20 * depth + 2.0**-24
    wrong = ~(np.abs(found - exact) <= bound)
    first = np.argwhere(wrong)[0] if wrong.any() else None
    assert not wrong.any(), (
        f"{wrong.sum()} of {wrong.size} are wrong, the first at {first}: {found[tuple(first)]}, not {exact[tuple(first)]}"
    )


CASES = {
    "1x1": Convolution(1, 8, 9, 8, 16, 1, 1),
    "1x1, stride 2": Convolution(2, 16, 7, 6, 8, 1, 1, stride=(2, 2)),
    "3x3": Convolution(2, 8, 6, 7, 72, 3, 3, padding=(1, 1)),
    "3x3, stride 2": Convolution(1, 72, 9, 8, 8, 3, 3, padding=(1, 1), stride=(2, 2)),
    "padding 2, dilation 2": Convolution(1, 8, 7, 7, 8, 3, 3, padding=(2, 2), dilation=(2, 2)),
    "uneven": Convolution(1, 8, 9, 10, 8, 2, 3, padding=(0, 2), stride=(3, 1), dilation=(1, 3)),
    "padding beyond the filter": Convolution(1, 8, 3, 3, 8, 2, 2, padding=(3, 2), stride=(2, 1)),
}


@pytest.mark.parametrize("conv", CASES.values(), ids=CASES)
def test_forward_in_the_simulator(in_simulator, conv):
    random = np.random.default_rng(conv.depth)
    x, w = half(random, conv.x_shape("NHWC")), half(random, conv.w_shape("NHWC"))
    bias = random.uniform(-1, 1, conv.k).astype(np.float32)
    y = cp.asarray(np.full(conv.y_shape("NHWC"), np.nan, np.float16))
    STEP.launch(cp.asarray(x), cp.asarray(w), y, conv, cp.asarray(bias), True, tiles=SMALL)
    check(cp.asnumpy(y), np.maximum(reference.forward(x, w, conv, "NHWC") + bias, 0), conv.depth)


@pytest.mark.parametrize("conv", CASES.values(), ids=CASES)
def test_the_gradient_of_x_in_the_simulator(in_simulator, conv):
    random = np.random.default_rng(conv.depth)
    dy, w = half(random, conv.y_shape("NHWC")), half(random, conv.w_shape("NHWC"))
    dx = cp.asarray(np.full(conv.x_shape("NHWC"), np.nan, np.float16))
    GRADIENT.launch(cp.asarray(dy), cp.asarray(w), dx, conv, tiles=SMALL)
    check(cp.asnumpy(dx), reference.backward_data(dy, w, conv, "NHWC"), conv.k * conv.r * conv.s)
