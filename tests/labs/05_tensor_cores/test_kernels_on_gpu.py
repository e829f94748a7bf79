"""Lab 05's kernels on a GPU: as in the simulator, right at any shape, as fast as the lab says beside the library."""

import functools

import numpy as np
import pytest

from kernels.tensor_core import STEPS, multiply, multiply_any
from kernels.tensor_core.autotune import candidates
from kernels.tensor_core.every_shape import launch as launch_by
from kernels.tensor_core.launches import LAUNCHES
from kernels.tensor_core.measured_shapes import KERNELS
from kernels.tensor_core.measurements import MOST_ERROR, checked, cublas, ladder, operands
from tests.support.machines import needs_idle_gpu
from tests.support.tensor_products import STEP_ERROR
from warpcourse.bench import hopper
from warpcourse.bench.cublaslt import WORKSPACE_BYTES, Product
from warpcourse.bench.measured_plans import compared, plain
from warplab import cp
from warplab.hardware import backend
from warplab.launch.simulate import simulate

pytestmark = pytest.mark.gpu
# Of the faster library, in the same run; with room for what the clocks do under the power limit.
LEAST = {"wmma_shared": 0.40, "mma_stages": 0.52, "wgmma_persistent": 0.97}
# Step 7: few tiles, few rows, a long k, rows that TMA cannot copy; of cuBLASLt's fastest algorithm, L2 cold.
OTHERS, OTHERS_AT_LEAST = ((1024, 1024, 1024), (16, 8192, 8192), (128, 256, 65536), (4001, 4003, 4007)), 0.65
SHAPES = ((1, 8, 8), (64, 256, 64), (127, 136, 72), (129, 264, 200), (300, 520, 1000), (1000, 1048, 4104))


@pytest.fixture(autouse=True)
def _on_a_gpu():
    assert backend.name() == "gpu", f"these tests measure a GPU; {backend.reason()}"


def available(name):
    if STEPS[name].hopper:
        try:
            hopper.require(name, "mma_stages")
        except RuntimeError as error:
            pytest.skip(str(error))
    return name


def check(name, shape, dtype):
    """A product by a step, as `check_product` checks it."""
    a, b, out = operands(*shape, dtype)
    check_product(a, b, out, lambda c: multiply(a, b, c, step=name))


def check_product(a, b, out, compute):
    """Every element within the bound of float32 sums; the result computed twice, into poisoned memory."""
    k, dtype, again = a.shape[1], out.dtype, cp.empty_like(out)
    for c in (out, again):
        c.fill(np.nan)
        compute(c)
    assert bool((out == again).all()), "the result differs from run to run"
    a, b = a.astype(np.float64), b.astype(np.float64)
    exact, size = a @ b, cp.abs(a) @ cp.abs(b)
    bound = -(-k // 16) * STEP_ERROR * size
    if dtype == np.float16:
        bound = bound + 2.0**-11 * cp.abs(exact) + 2.0**-24
    assert bool((cp.abs(out - exact) <= bound).all()), float((cp.abs(out - exact) / bound).max())


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.name)
def test_gpu_and_simulator_agree_bit_for_bit(launch):
    arguments = [cp.asarray(x) if isinstance(x, np.ndarray) else x for x in launch.arguments]
    launch.kernel()(launch.grid, launch.block, tuple(arguments), shared_mem=launch.shared_bytes)
    mine = [x.copy() if isinstance(x, np.ndarray) else x for x in launch.arguments]
    simulate(launch.kernel(), launch.grid, launch.block, tuple(mine), shared_bytes=launch.shared_bytes)
    found = cp.asnumpy(arguments[2])
    bits = f"u{found.itemsize}"
    np.testing.assert_array_equal(found.view(bits), mine[2].view(bits))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", STEPS)
def test_any_shape(name, dtype):
    for shape in SHAPES:
        check(available(name), shape, dtype)


@pytest.mark.parametrize("name", [name for name, step in STEPS.items() if not step.hopper])
def test_rows_that_no_vector_fits(name):
    for shape in ((1, 1, 1), (33, 777, 555), (3, 2049, 4097)):
        check(name, shape, np.float32)


def test_each_element_of_a_and_b_goes_to_its_place():
    """Ones in single places: a layout of shared memory that is wrong for some row, column or depth shows which."""
    for name in STEPS:
        m, n, k = 128, 256, 64
        a = cp.zeros((m, k), np.float16)
        a[cp.arange(m), cp.arange(m) * 7 % k] = 1
        b = (cp.arange(k * n) % 2039).astype(np.float16).reshape(k, n)  # whole numbers that float16 holds
        found = multiply(a, b, step=available(name))
        expected = b[cp.arange(m) * 7 % k].astype(np.float32)
        wrong = cp.argwhere(found != expected)
        assert not len(wrong), (name, len(wrong), wrong[:8].tolist())


def test_many_tiles_for_each_block_of_the_persistent_kernel():
    name = available("wgmma_persistent")
    for shape in ((4096, 4352, 64), (2176, 8200, 136), (130, 66000, 72)):
        check(name, shape, np.float16)


@pytest.mark.parametrize("name", ["mma_stages", "wgmma_persistent"])
def test_every_candidate_of_the_autotuner_is_right(name):
    a, b, c = operands(700, 1032, 520)
    for sizes in candidates()[available(name)][::5]:
        result = checked(lambda a, b, c, sizes=sizes: STEPS[name].launch(a, b, c, sizes), a, b, c)
        assert result["correct"], (sizes, result)


@pytest.mark.parametrize("transposed", ["NN", "NT", "TN", "TT"])
def test_step_7_at_any_shape(transposed):
    available("wgmma_persistent")
    for shape in (*SHAPES, (1, 1, 1), (33, 777, 555), (3, 2049, 4097), (129, 31, 5000)):
        for dtype in (np.float16, np.float32):
            a, b, out = operands(*shape, dtype)
            given = [cp.ascontiguousarray(x.T) if t == "T" else x for x, t in zip((a, b), transposed, strict=True)]
            check_product(a, b, out, functools.partial(multiply_any, *given, transposed=transposed))


def test_every_kind_of_plan_of_step_7_is_right():
    available("wgmma_persistent")
    for shape in ((300, 520, 1000), (20, 520, 3000), (257, 130, 4099)):
        plans = KERNELS.rule.plans(shape)
        KERNELS.compile_ahead((plan, shape, "NN") for plan in plans)
        a, b, out = operands(*shape, np.float16)
        for plan in plans:
            check_product(a, b, out, lambda c, a=a, b=b, plan=plan: launch_by(a, b, c, plan))


def test_step_7_comes_near_the_library_at_other_shapes():
    available("wgmma_persistent")
    KERNELS.prepare(plain(OTHERS))
    for row in compared(KERNELS, plain(OTHERS), ("cold",)):
        assert row["correct"], row
        assert row["cold"]["ratio"] >= OTHERS_AT_LEAST, row


def test_the_library_gives_several_algorithms_and_they_are_right():
    for dtype in (np.float16, np.float32):
        a, b, c = operands(520, 264, 1032, dtype)
        product = Product(520, 264, 1032, dtype)
        assert len(product.results) > 1
        assert all(result.workspace_size <= WORKSPACE_BYTES for result in product.results)
        for result in product.results:
            assert checked(functools.partial(product.launch, result=result), a, b, c)["correct"]
    a, b, c = operands(520, 264, 1032)
    assert checked(cublas, a, b, c)["relative_error"] < MOST_ERROR["float16"]


@needs_idle_gpu
def test_rates_beside_the_library_and_the_peaks():
    result = ladder(steps=[available(name) for name in LEAST], rounds=5, runs=3)
    rows, peaks = {row["name"]: row for row in result["rows"]}, result["peaks_tflops"]
    assert all(row["correct"] for row in rows.values())
    reached = {name: rows[name]["ratio_to_library"] for name in LEAST}
    assert all(reached[name] >= least for name, least in LEAST.items()), reached
    assert 0.65 * peaks["mma"] <= rows["mma_stages"]["tflops"] <= 1.05 * peaks["mma"], "the limit of mma.sync itself"
    assert rows["wgmma_persistent"]["tflops"] <= 1.05 * peaks["wgmma"]
