"""Lab 01's kernels on a GPU: equal to the simulator, as fast as a copy."""

import numpy as np
import pytest

from kernels.vector_multiply import KERNELS
from kernels.vector_multiply.measurements import kernel_table
from kernels.vector_multiply.product import BLOCK
from tests.support.random_inputs import generator
from warplab import cp
from warplab.hardware import backend
from warplab.launch import simulate

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _on_a_gpu():
    assert backend.name() == "gpu", f"these tests measure a GPU; {backend.reason()}"


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", [1, 3, 33, 1027, 2**17 + 5])
def test_gpu_and_simulator_agree_bit_for_bit(name, n):
    rng = generator()
    a, b = (rng.standard_normal(n, dtype=np.float32) for _ in range(2))
    on_gpu = cp.full(n, np.nan, np.float32)
    simulated = np.full(n, np.nan, np.float32)
    chosen = KERNELS[name]
    chosen.launch(chosen.blocks(n, BLOCK), BLOCK, chosen.arguments(cp.asarray(a), cp.asarray(b), on_gpu))
    grid = (chosen.blocks(n, BLOCK), 1, 1)
    simulate.simulate(chosen.function(), grid, (BLOCK, 1, 1), chosen.arguments(a, b, simulated))
    np.testing.assert_array_equal(cp.asnumpy(on_gpu).view(np.uint32), simulated.view(np.uint32))
    np.testing.assert_array_equal(simulated, a * b)


def test_the_best_kernel_reaches_the_copy():
    rows = kernel_table()["rows"]
    assert len(rows) == len(KERNELS) + 2
    assert all(row["correct"] for row in rows)
    ratios = {row["kernel"]: row["ratio_to_copy"] for row in rows if row["language"] != "library"}
    assert max(ratios.values()) >= 1.0, ratios
