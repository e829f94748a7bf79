"""The check of matrix products on tensor cores: their exact number, shape and types."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import checks
from warplab.launch.kernel_source import CudaSource

HEAD = """
#include <mma.h>
using namespace nvcuda::wmma;
extern "C" __global__ void sums(const half* a, float* out)
{
    fragment<matrix_a, 16, 16, 16, half, row_major> x;
    fragment<matrix_b, 16, 16, 16, half, col_major> y;
    fragment<accumulator, 16, 16, 16, float> sum;
    load_matrix_sync(x, a, 16);
    load_matrix_sync(y, a, 16);
    fill_fragment(sum, 0.0f);
"""
PRODUCT = "    mma_sync(sum, x, y, sum);\n"
TAIL = "    store_matrix_sync(out, sum, 16, mem_row_major);\n}\n"
NAME = "m16n16k16.f32.f16"
ORDINARY = """
extern "C" __global__ void sums(const unsigned* a, float* out) { out[threadIdx.x] = 2 * a[threadIdx.x]; }
"""


def case(products: int):
    def make_case(rng, n):
        a = (rng.integers(-8, 9, (16, 16)) / 4).astype(np.float16)
        whole = a.astype(np.float32)
        return checks.Case({"a": a, "out": None}, {"out": products * (whole @ whole.T)})

    return make_case


def run(products: int, wanted) -> None:
    kernel = CudaSource(HEAD + products * PRODUCT + TAIL, "sums")
    checks.kernel(kernel, case(products), sizes=(16,), launches=[(1, 32)], products=wanted)


@pytest.mark.parametrize("wanted", [{NAME: 2}, {NAME: lambda n: n // 8}])
def test_the_right_number_passes(wanted):
    run(2, wanted)


@pytest.mark.parametrize(
    ("products", "wanted", "message"),
    [
        (3, {NAME: 2}, f"too many matrix products.*\n.*2 of {NAME}\n.*3 of {NAME}"),
        (1, {NAME: 2}, f"too few matrix products.*\n.*2 of {NAME}\n.*1 of {NAME}"),
        (1, {"m16n8k16.f32.f16": 2}, f"another kind.*\n.*2 of m16n8k16.f32.f16\n.*1 of {NAME}"),
        (1, {}, f"another kind.*\n.*none\n.*1 of {NAME}"),
    ],
)
def test_another_number_or_kind_fails(products, wanted, message):
    with pytest.raises(checks.CheckFailed, match=message) as caught:
        run(products, wanted)
    assert caught.value.kind == "limit"
    assert message.split(".*")[0] in caught.value.missed


def test_a_kernel_of_ordinary_cores_fails():
    def make_case(rng, n):
        a = rng.integers(0, 100, n).astype(np.uint32)
        return checks.Case({"a": a, "out": None}, {"out": 2 * a.astype(np.float32)})

    kernel = CudaSource(ORDINARY, "sums")
    checks.kernel(kernel, make_case, sizes=(32,), launches=[(1, 32)], products={})
    with pytest.raises(checks.CheckFailed, match=r"tensor cores do nothing.(\n.*)+ordinary cores"):
        checks.kernel(kernel, make_case, sizes=(32,), launches=[(1, 32)], products={NAME: 1})


def test_an_array_of_halves_asks_for_half():
    kernel = CudaSource('extern "C" __global__ void sums(const float* a, float* out) { out[0] = a[0]; }', "sums")
    with pytest.raises(checks.CheckFailed, match=r"must be half\*"):
        checks.kernel(kernel, case(1), sizes=(16,), launches=[(1, 32)])


@pytest.mark.filterwarnings("error")
def test_a_wrong_value_beyond_the_range_of_half_warns_of_nothing():
    def make_case(rng, n):
        a = rng.integers(0, 100, n).astype(np.uint32)
        return checks.Case({"a": a, "out": None}, {"out": a.astype(np.float32) + 2**20})

    with pytest.raises(checks.CheckFailed, match="out is wrong"):
        checks.kernel(CudaSource(ORDINARY, "sums"), make_case, sizes=(32,), launches=[(1, 32)])
