"""Lab 02's kernels on a GPU: as the simulator computes, right at sizes beyond the L2, and as fast as promised."""

import numpy as np
import pytest

from kernels.memory_access import SCANS, SUMS, TRANSPOSES, library, prefix_sum, tables, total
from kernels.memory_access.transposing import fastest
from tests.support.random_inputs import generator
from warplab import cp
from warplab.hardware import backend
from warplab.launch import simulate

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _on_a_gpu():
    assert backend.name() == "gpu", f"these tests measure a GPU; {backend.reason()}"


def own(table):
    return [row for row in table["kernels"] if row["language"] != "library"]


@pytest.mark.parametrize("name", TRANSPOSES)
@pytest.mark.parametrize("shape", [(64, 64), (100, 156), (97, 101), (1, 1000), (7, 999)])
def test_transpose_is_the_simulators(name, shape):
    chosen = TRANSPOSES[name]
    if any(n % chosen.multiple for n in shape):
        assert name == "cuda_float4"
        return
    a = generator().standard_normal(shape, dtype=np.float32)
    on_gpu = cp.full(shape[::-1], np.nan, np.float32)
    chosen.queue(cp.asarray(a), on_gpu)
    simulated = np.full(shape[::-1], np.nan, np.float32)
    grid, _, shared_bytes = chosen.plan(*shape)
    simulate.simulate(chosen.function(), grid, chosen.block, chosen.arguments(a, simulated), shared_bytes=shared_bytes)
    np.testing.assert_array_equal(cp.asnumpy(on_gpu), simulated)
    np.testing.assert_array_equal(simulated, a.T)


@pytest.mark.parametrize("shape", [(16381, 20011), (20011, 16381), (3, 2**27 + 1), (2**27 + 1, 3), (2**28, 1)])
def test_transpose_of_large_matrices_of_any_shape(shape):
    a = cp.random.random(shape, dtype=cp.float32)
    out = cp.full(shape[::-1], cp.nan, cp.float32)
    TRANSPOSES[fastest(*shape)].queue(a, out)
    assert bool((out == a.T).all())


@pytest.mark.parametrize("shape", [(2**16 + 1, 2**15 + 3), (3, 2**30 + 7), (2**30 + 7, 3)])
def test_transpose_of_more_than_2_to_the_31_elements(shape):
    a = cp.arange(shape[0] * shape[1], dtype=cp.uint32).reshape(shape)
    a *= np.uint32(2654435761)  # all bits, in disorder
    out = cp.zeros(shape[::-1], cp.uint32)
    TRANSPOSES[fastest(*shape)].queue(a.view(cp.float32), out.view(cp.float32))
    assert all(bool((out[:, r] == a[r]).all()) for r in range(min(shape[0], 50)))
    assert all(bool((out[c] == a[:, c]).all()) for c in (*range(min(shape[1], 50)), shape[1] - 1))


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("n", [1, 255, 10007, 2**20 + 3, 2**28 + 1])
def test_sums(name, n):
    a = tables.exact_vector(n)
    assert float(total(a, name)[0]) == int(a.sum(dtype=cp.int64))


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("n", [1, 8191, 8192, 8193, 2**20 + 1, 2**21 + 3, 2**24 + 5, 2**28 + 3])
def test_prefix_sums(name, n):
    a = tables.exact_vector(n)
    out = cp.full(n, cp.nan, cp.float32)
    for _ in range(3):
        prefix_sum(a, out, name)
        assert bool((out == cp.cumsum(a, dtype=cp.float64)).all())


def test_transpose_reaches_the_copy():
    rows = own(tables.transpose_table())
    assert all(row["correct"] for row in rows)
    assert max(row["ratio_to_copy"] for row in rows) >= 0.95, rows


def test_sum_reaches_cub():
    rows = own(tables.sum_table())
    assert all(row["correct"] for row in rows)
    assert max(row["ratio_to_library"] for row in rows) >= 1.00, rows


@pytest.mark.skipif(library.cub_version() is None, reason=library.HINT)
def test_prefix_sum_reaches_cub():
    rows = own(tables.scan_table())
    assert all(row["correct"] for row in rows)
    assert max(row["ratio_to_library"] for row in rows) >= 1.05, rows
