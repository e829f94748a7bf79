"""Lab 07's kernels on a GPU: as the simulator computes, and right beyond the L2."""

import numpy as np
import pytest

from kernels.training import bias_gelu, measurements
from tests.support.random_inputs import generator
from warplab import cp
from warplab.hardware import backend
from warplab.launch import simulate

pytestmark = pytest.mark.gpu

SHAPES = ((1, 4), (33, 36), (129, 132))


@pytest.fixture(autouse=True)
def _on_a_gpu():
    assert backend.name() == "gpu", f"these tests measure a GPU; {backend.reason()}"


def arrays(rows, columns):
    rng = generator()
    x, dy = (3 * rng.standard_normal((rows, columns), dtype=np.float32) for _ in range(2))
    return x, rng.standard_normal(columns, dtype=np.float32), dy


def simulated(kernel, *given):
    grid, _ = bias_gelu.layout(kernel, *given[0].shape)
    simulate.simulate(kernel.function(), grid, bias_gelu.BLOCK, bias_gelu.arguments(kernel, *given))


@pytest.mark.parametrize("name", bias_gelu.FORWARD)
@pytest.mark.parametrize("shape", SHAPES)
def test_forward_is_the_simulators(name, shape):
    x, bias, _ = arrays(*shape)
    y = np.full(shape, np.nan, np.float32)
    simulated(bias_gelu.FORWARD[name], x, bias, y)
    on_gpu = bias_gelu.forward(cp.asarray(x), cp.asarray(bias), cp.full(shape, cp.nan, cp.float32), name)
    # tanh ends in approximate instructions, whose last bits are the hardware's own.
    np.testing.assert_allclose(cp.asnumpy(on_gpu), y, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", bias_gelu.BACKWARD)
@pytest.mark.parametrize("shape", SHAPES)
def test_backward_is_the_simulators(name, shape):
    x, bias, dy = arrays(*shape)
    dx, dbias = np.full(shape, np.nan, np.float32), np.zeros(shape[1], np.float32)
    simulated(bias_gelu.BACKWARD[name], x, bias, dy, dx, dbias)
    there = cp.full(shape, cp.nan, cp.float32), cp.full(shape[1], cp.nan, cp.float32)
    bias_gelu.backward(*map(cp.asarray, (x, bias, dy)), *there, name)
    np.testing.assert_allclose(cp.asnumpy(there[0]), dx, rtol=5e-6, atol=2e-5)
    np.testing.assert_allclose(cp.asnumpy(there[1]), dbias, rtol=1e-5, atol=5e-5 * shape[0] ** 0.5)


def test_the_measured_ones_are_right_and_fusing_pays():
    table = measurements.kernel_table()
    rate = {(row["way"], row["name"]): row["gbps"] for row in table["kernels"]}
    assert all(row["correct"] for row in table["kernels"])
    for way in ("forward", "backward"):
        for name in bias_gelu.FORWARD:
            assert rate[way, name] > 2 * rate[way, "cupy, op by op"]
