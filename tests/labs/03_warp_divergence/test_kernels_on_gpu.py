"""Lab 03's kernels on a GPU: equal to the simulator, branches that wait for each other, as fast as the libraries."""

import numpy as np
import pytest

from kernels.warp_divergence import cub_reference, divergence, order, selection
from kernels.warp_divergence.kernel_table import BLOCK, blocks, kernel
from kernels.warp_divergence.launches import LAUNCHES
from kernels.warp_divergence.measurements import histogram_table, selection_table
from tests.support.random_inputs import generator
from warplab import cp
from warplab.hardware import backend
from warplab.launch.simulate import simulate

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _on_a_gpu():
    assert backend.name() == "gpu", f"these tests measure a GPU; {backend.reason()}"


def on_gpu(launch):
    """The launch's arrays after it ran on the GPU."""
    arguments = [cp.asarray(x) if isinstance(x, np.ndarray) else x for x in launch.arguments]
    compiled = launch.kernel()
    if hasattr(compiled, "__getitem__"):
        compiled[launch.grid, launch.block](*arguments)
    else:
        compiled(launch.grid, launch.block, tuple(arguments), shared_mem=launch.shared_bytes)
    return [cp.asnumpy(x) for x in arguments if isinstance(x, cp.ndarray)]


def simulated(launch):
    arguments = tuple(x.copy() if isinstance(x, np.ndarray) else x for x in launch.arguments)
    simulate(launch.kernel(), launch.grid, launch.block, arguments, shared_bytes=launch.shared_bytes)
    return [x for x in arguments if isinstance(x, np.ndarray)]


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.name)
def test_gpu_and_simulator_agree_bit_for_bit(launch):
    for mine, theirs in zip(simulated(launch), on_gpu(launch), strict=True):
        if "append" in launch.name:  # which element comes where depends on which warp is first
            mine, theirs = np.sort(mine), np.sort(theirs)
        np.testing.assert_array_equal(theirs.reshape(-1).view(np.uint8), mine.reshape(-1).view(np.uint8))


def test_the_sides_of_a_branch_wait_for_each_other():
    when, _ = order.run("cuda_branch")
    assert order.sequence(when) in ("ABXYZ", "XYABZ")
    for name in ("ordered", "in_turn", "handshake"):
        when, read = order.run(f"cuda_{name}")
        sequence = order.sequence(when)
        assert read.tolist() == [order.VALUE] * order.READERS, name
        assert sequence.index("X") < sequence.index("B"), sequence
        assert sequence[-1] == "Z"
    assert order.sequence(order.run("cuda_in_turn")[0]) == "AXBYZ"


@pytest.mark.parametrize("name", ["numba_ordered", "numba_handshake"])
def test_so_they_do_in_numba(name):
    read = cp.zeros(order.READERS, np.int32)
    kernel(name).launch(1, 32, (read, np.int32(7)))
    assert read.tolist() == [7] * order.READERS


def test_ways_by_lane_cost_their_number():
    from warpcourse.bench.timing import time_gpu

    x = cp.asarray(generator().random(2**22, dtype=np.float32))
    arguments = {by: divergence.paths_arguments(x, x.copy(), by, 256) for by in divergence.SHIFTS}
    chosen = kernel("cuda_paths<8>")
    seconds = {
        by: time_gpu(lambda *a: chosen.launch(blocks(2**22), BLOCK, a), [some]).seconds
        for by, some in arguments.items()
    }
    assert 6 < seconds["lane"] / seconds["warp"] < 9


def test_the_histogram_is_as_fast_as_the_libraries():
    table = histogram_table()
    assert all(row["correct"] for row in table["rows"])
    best = [row for row in table["rows"] if row["name"] == "cuda_histogram_columns"]
    assert len(best) == 2
    assert all(row["ratio_to_cupy"] >= 1 for row in best)
    assert table["cub"] is None or all(row["ratio_to_cub"] >= 1 for row in best)


def test_the_selection_is_as_fast_as_the_libraries():
    table = selection_table()
    assert all(row["correct"] for row in table["rows"])
    best = [row for row in table["rows"] if row["name"] == "cuda_pipelined"]
    assert len(best) == 3
    assert all(row["ratio_to_cupy"] >= 1 for row in best)
    assert table["cub"] is None or all(row["ratio_to_cub"] >= 1 for row in best)


def test_cub_is_called_rightly():
    if not cub_reference.available():
        pytest.skip("there is no nvcc to compile CUB with")
    x = cp.asarray(generator().integers(-50, 50, 10_001, dtype=np.int32))
    out, count = cp.full(x.size, -99, np.int32), cp.zeros(1, np.uint64)
    cub_reference.select(x, 10, out, count)()
    expected = cp.asnumpy(x)[cp.asnumpy(x) > 10]
    np.testing.assert_array_equal(cp.asnumpy(out)[: int(count[0])], expected)
    selection.plan(x, 10, out, count, "cuda_pipelined")()
    np.testing.assert_array_equal(cp.asnumpy(out)[: int(count[0])], expected)
