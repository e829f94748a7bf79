"""Lab 04's kernels on a GPU: equal to the simulator, right at any shape, and as fast as the lab says beside cuBLAS."""

import numpy as np
import pytest

from kernels.matmul import STEPS, matmul
from kernels.matmul.autotune import candidates
from kernels.matmul.ladder import launch_tuned, tuned_grid
from kernels.matmul.launches import LAUNCHES
from kernels.matmul.measured_shapes import KERNELS
from kernels.matmul.measurements import FAST, LARGE_SIDE, SIDE, ladder
from kernels.matmul.multiply import EVERY_SHAPE
from kernels.matmul.shape_rule import TILES
from kernels.matmul.split_k import Plan, function_of, launch
from warpcourse.bench.measured_plans import compared, plain
from warplab import cp
from warplab.hardware import backend
from warplab.launch.simulate import simulate

pytestmark = pytest.mark.gpu
AT_LEAST = 0.92  # of cuBLAS, in the same run
# Step 10: few tiles and a long k, few rows, rows that no float4 fits; of cuBLASLt's fastest algorithm, L2 cold.
DEEP, DEEP_AT_LEAST = ((128, 128, 65536), (512, 512, 16384), (16, 8192, 8192), (4095, 4097, 4093)), 0.8


@pytest.fixture(autouse=True)
def _on_a_gpu():
    assert backend.name() == "gpu", f"these tests measure a GPU; {backend.reason()}"


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.name)
def test_gpu_and_simulator_agree_bit_for_bit(launch):
    arguments = [cp.asarray(x) if isinstance(x, np.ndarray) else x for x in launch.arguments]
    launch.kernel()(launch.grid, launch.block, tuple(arguments), shared_mem=launch.shared_bytes)
    mine = [x.copy() if isinstance(x, np.ndarray) else x for x in launch.arguments]
    simulate(launch.kernel(), launch.grid, launch.block, tuple(mine), shared_bytes=launch.shared_bytes)
    np.testing.assert_array_equal(cp.asnumpy(arguments[2]).view(np.uint32), mine[2].view(np.uint32))


@pytest.mark.parametrize("name", [*STEPS, EVERY_SHAPE])
@pytest.mark.parametrize("shape", [(1, 1, 1), (127, 129, 33), (1000, 1004, 1008), (333, 777, 555), (3, 2049, 4097)])
def test_any_shape(name, shape):
    m, n, k = shape
    a, b = (cp.random.uniform(-1, 1, size, dtype=np.float32) for size in ((m, k), (k, n)))
    out = cp.full((m, n), np.nan, np.float32)
    matmul(a, b, out, kernel=name)
    a, b = a.astype(np.float64), b.astype(np.float64)
    assert bool((cp.abs(out - a @ b) <= 2.0**-24 * (k + 1) * (cp.abs(a) @ cp.abs(b))).all())


def test_every_candidate_of_the_autotuner_is_right():
    m, n, k = 300, 404, 77
    a, b = (cp.random.uniform(-1, 1, size, dtype=np.float32) for size in ((m, k), (k, n)))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    tried = candidates()[::7]
    assert len(tried) > 8
    for sizes in tried:
        for aligned in (True, False):
            out = cp.full((m, n), np.nan, np.float32)
            launch_tuned(sizes, aligned, a, b, out)
            assert float(cp.abs(out - expected).max()) < 1e-4, sizes


@pytest.mark.parametrize("side", [SIDE, LARGE_SIDE])
def test_the_last_step_comes_near_cublas(side):
    result = ladder(side, FAST, rounds=5, runs=2)
    rows = {row["name"]: row for row in result["rows"]}
    assert all(row["correct"] for row in rows.values())
    assert rows["tuned"]["ratio_to_cublas"] >= AT_LEAST
    assert rows["tuned"]["tflops"] <= result["peak_tflops"]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("tiles", TILES, ids=str)
def test_parts_are_added_as_in_the_simulator_bit_for_bit(tiles, parts):
    m, n, k = 70, 68, 256
    random = np.random.default_rng(parts)
    a, b = (random.random(shape, dtype=np.float32) for shape in ((m, k), (k, n)))
    plan, out = Plan(tiles, parts), cp.full((m, n), np.nan, np.float32)
    launch(cp.asarray(a), cp.asarray(b), out, plan)
    (blocks,), mine = tuned_grid(tiles, m, n), np.full((m, n), np.nan, np.float32)
    sums, counters = np.zeros(blocks * parts * tiles.bm * tiles.bn, np.float32), np.zeros(blocks, np.uint32)
    arguments = a, b, mine, sums, counters, *map(np.int32, (m, n, k, n))
    function = function_of(plan, 4, c_aligned=True)
    simulate(function, (blocks, 1, parts), tiles.threads, arguments, shared_bytes=tiles.shared_bytes)
    np.testing.assert_array_equal(cp.asnumpy(out).view(np.uint32), mine.view(np.uint32))


def test_few_tiles_and_a_long_k_come_near_cublaslt():
    KERNELS.prepare(plain(DEEP))
    for row in compared(KERNELS, plain(DEEP), ("cold",)):
        assert row["correct"], row
        assert row["cold"]["ratio"] >= DEEP_AT_LEAST, row
