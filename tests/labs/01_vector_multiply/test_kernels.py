"""Lab 01's kernels on the active backend: bit for bit NumPy's product, nothing written outside."""

import inspect

import numpy as np
import pytest

from kernels.vector_multiply import KERNELS, numba_kernels, recordings
from kernels.vector_multiply.product import BLOCK, CUDA, SOURCES
from tests.support.random_inputs import generator
from warplab import cp

SIZES = (0, 1, 2, 3, 4, 5, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1000, 1023, 5000)
GUARD = 32  # elements before and after each array; a multiple of 4, so that views stay aligned to 16 bytes
GRID_STRIDE = [name for name in KERNELS if "grid_stride" in name]


def multiply(a, b, out, name, block=BLOCK, blocks=None):
    kernel = KERNELS[name]
    if out.size:  # a grid of no blocks is an invalid launch
        kernel.launch(blocks or kernel.blocks(out.size, block), block, kernel.arguments(a, b, out))


def run(name, n, **launch):
    """(result, expected, guard bands) of one launch on fresh random data; the output is poisoned with NaN."""
    rng = generator()
    a, b = (rng.standard_normal(n, dtype=np.float32) for _ in range(2))
    whole = cp.asarray(np.full(n + 2 * GUARD, np.nan, np.float32))
    out = whole[GUARD : GUARD + n]
    multiply(cp.asarray(a), cp.asarray(b), out, name, **launch)
    host = cp.asnumpy(whole)
    return host[GUARD : GUARD + n], a * b, np.concatenate([host[:GUARD], host[GUARD + n :]])


def check(name, n, **launch):
    result, expected, guards = run(name, n, **launch)
    np.testing.assert_array_equal(result.view(np.uint32), expected.view(np.uint32))
    assert np.isnan(guards).all(), "the kernel wrote outside its array"


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", SIZES)
def test_product_is_numpys(name, n):
    check(name, n)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("block", [1, 31, 32, 33, 100, 1024])
def test_any_block_size(name, block):
    check(name, 1027, block=block)


@pytest.mark.parametrize("name", GRID_STRIDE)
@pytest.mark.parametrize("blocks", [1, 2, 3, 50])
def test_a_grid_stride_kernel_is_right_for_any_grid(name, blocks):
    check(name, 1027, block=64, blocks=blocks)


@pytest.mark.parametrize("name", KERNELS)
def test_in_place(name):
    a, b = (generator().standard_normal(1027, dtype=np.float32) for _ in range(2))
    on_a = cp.asarray(a)
    multiply(on_a, cp.asarray(b), on_a, name)
    np.testing.assert_array_equal(cp.asnumpy(on_a), a * b)


def test_the_headers_of_the_kernels_give_the_recorded_bandwidths():
    sources = {"CUDA C++": SOURCES.text(CUDA), "Numba": inspect.getsource(numba_kernels)}
    recorded = recordings.recorded("kernel_table")
    rows = [row for row in recorded.value["rows"] if row["kernel"] in KERNELS]
    assert len(rows) == len(KERNELS)
    for row in rows:
        reached = f"Reached: {row['gbps']:.0f} GB/s, {row['ratio_to_copy']:.2f} of the copy"
        assert reached in sources[row["language"]], f"{row['kernel']}: {reached}"
    for source in sources.values():
        assert recorded.origin in source
