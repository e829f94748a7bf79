"""Likely causes of missing and wrong values: where a failure says to look."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.support.kernel_checks import PRODUCT, cuda_kernel, failure, failure_on_one_warp
from warplab import checks
from warplab.checks import Case
from warplab.checks.cases import cover_tiles, distinct, summable
from warplab.launch.kernel_source import CudaSource


def turned(rng, size):
    rows, columns = size
    a = distinct(rng, rows * columns).reshape(rows, columns)
    return Case({"a": a, "t": None, "rows": np.int32(rows), "columns": np.int32(columns)}, {"t": a.T.copy()})


def turning(body: str) -> CudaSource:
    place = "int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;"
    return cuda_kernel(place + body, "const float* a, float* t, int rows, int columns")


@pytest.mark.parametrize(
    ("body", "said", "look_at"),
    [
        ("if (x < columns && y < rows) t[x * rows + y] = a[y * columns + x];", "", ""),
        (
            "if (x < columns - 1 && y < rows) t[x * rows + y] = a[y * columns + x];",
            r"in t, 33 of 1320 elements were never written, the first at \[39, 0\] \(40 × 33 elements\)\.",
            r"should write \[39, 0\] to \[39, 32\]: how do they find their row and column",
        ),
        (
            "if (x < columns && y < rows) t[x * rows + y] = a[(rows - 1 - y) * columns + x];",
            r"t is wrong in 1280 of 1320 elements, the first at \[0, 0\]\.",
            r"the index: element \[0, 0\] holds the right value of element \[0, 32\]",
        ),
        (
            "if (x < columns) t[x * rows + y] = a[y * columns + x];",
            r"a load of a\[1320\] reaches past the end of a \(1320 elements\)\.",
            r"and the guard.*: is each index",
        ),
    ],
)
def test_grids_and_arrays_of_two_dimensions(body, said, look_at):
    launch = {"sizes": [(3, 5), (33, 40)], "launches": [cover_tiles((32, 8))]}
    if not said:
        return checks.kernel(turning(body), turned, **launch)
    error = failure(turning(body), turned, **launch)
    assert re.search(said, str(error)), error
    assert re.search(look_at, error.look_at), error
    assert "size 33 × 40, 2 × 5 blocks of 32 × 8 threads, seed" in error.where


def test_a_byte_holds_another_elements_value_by_chance():
    def truncated(rng, n):
        x = rng.uniform(-127, 127, n).astype(np.float32)
        return checks.Case({"a": x, "t": None, "n": np.int32(n)}, {"t": np.rint(x).astype(np.int8)})

    body = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) t[i] = (signed char)a[i];"
    kernel = cuda_kernel(body, "const float* a, signed char* t, int n")
    assert "holds the right value of" not in failure(kernel, truncated, sizes=[2000]).look_at


def test_a_right_value_of_another_element_may_be_chance():
    def few_values(rng, n):
        a = rng.integers(0, 4, n).astype(np.float32)
        return Case({"a": a, "s": None}, {"s": 2 * a})

    wrong = cuda_kernel("s[threadIdx.x] = 2 * a[threadIdx.x] + 2 * (threadIdx.x == 7);", "const float* a, float* s")
    shifted = cuda_kernel("s[threadIdx.x] = 2 * a[(threadIdx.x + 1) % 64];", "const float* a, float* s")
    zeros = cuda_kernel("s[threadIdx.x] = threadIdx.x < 32 ? 0 : 2 * a[threadIdx.x];", "const float* a, float* s")
    launch = {"sizes": [64], "launches": [(1, 64)]}
    assert failure(wrong, few_values, **launch).look_at.startswith("the expression")
    assert failure(zeros, few_values, **launch).look_at.startswith("the expression")
    assert failure(shifted, few_values, **launch).look_at.startswith("the index")


def test_a_wrong_sum_is_not_the_last_element():
    def summed(rng, n):
        a = summable(rng, n)
        return Case({"a": a, "s": np.zeros(1, np.float32)}, {"s": a.sum(keepdims=True)})

    wrong = cuda_kernel("atomicAdd(s, a[0]);", "const float* a, float* s")
    error = failure(wrong, summed, sizes=[64], launches=[(1, 64)])
    assert error.look_at == "which elements go into the single result, and whether each does so exactly once"


def test_a_sum_without_atomics_is_explained():
    def summed(rng, n):
        a = np.arange(1, n + 1, dtype=np.float32)
        return Case({"a": a, "s": np.zeros(1, np.float32)}, {"s": a.sum(keepdims=True)})

    lost = cuda_kernel("s[0] += a[blockIdx.x];", "const float* a, float* s")
    error = failure(lost, summed, sizes=[4], launches=[(4, 1)])
    assert "warps store to it 4 times and no atomic operation is used" in error.look_at


@pytest.mark.parametrize(
    ("condition", "index", "launch", "look_at"),
    [
        ("threadIdx.x == 0", "0", (1, 128), "where each warp stores its own result: its number is threadIdx.x / 32"),
        (
            "threadIdx.x == 0",
            "threadIdx.x",
            (4, 32),
            "where each block stores its own result: its number is blockIdx.x",
        ),
    ],
)
def test_one_result_for_each_warp_or_block(condition, index, launch, look_at):
    def largest(rng, n):
        a = rng.integers(-1000, 0, n).astype(np.int32)
        return Case({"a": a, "s": None}, {"s": a[::32].copy()})

    body = f"int i = blockIdx.x * blockDim.x + threadIdx.x; if ({condition}) s[{index}] = a[i];"
    error = failure(cuda_kernel(body, "const int* a, int* s"), largest, sizes=[128], launches=[launch])
    assert error.look_at.startswith(look_at)


def test_warps_that_store_to_one_place_of_shared_memory_are_told_of_the_index():
    body = "__shared__ volatile float part[2]; int t = threadIdx.x; if (t % 32 == 0) part[t % 32] = a[t];"
    body += "c[t] = a[t] * b[t];"
    error = failure(cuda_kernel(body), PRODUCT, sizes=[64], launches=[(1, 64)])
    assert "Both store to one element: is the index right?" in str(error)


def test_a_vote_without_sync_is_named():
    error = failure_on_one_warp("    out[threadIdx.x] = __ballot(a[threadIdx.x] > 0);")
    assert "GPUs since Volta have it with a mask alone: write __ballot_sync" in str(error)


def test_sums_of_blocks_that_lack_the_last_step_of_a_loop():
    def summed(rng, n):
        a = summable(rng, n)
        return Case({"a": a, "s": None}, {"s": a.reshape(-1, 64).sum(axis=1)})

    body = """\
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = a[64 * blockIdx.x + t];
    for (int half = 32; half > 1; half /= 2) {
        __syncthreads();
        if (t < half) tile[t] += tile[t + half];
    }
    if (t == 0) s[blockIdx.x] = tile[0];"""
    error = failure(
        cuda_kernel(body, "const float* a, float* s"), summed, sizes=[640], launches=[(10, 64)], limits={"atomics": 0}
    )
    assert error.look_at.endswith("does the loop over shared memory make its last step?")


def test_a_wrong_value_from_a_tile_points_to_the_tile():
    body = """\
    __shared__ float tile[32];
    int t = threadIdx.x;
    tile[t] = 3 * a[t] + 100;
    __syncthreads();
    out[t] = 2 * tile[t];"""
    assert "including those that the block copies into shared memory" in failure_on_one_warp(body).look_at
    assert "shared memory" not in failure_on_one_warp("    out[threadIdx.x] = 3 * a[threadIdx.x] + 100;").look_at


def test_elements_that_are_left_out_for_their_value():
    def signed(rng, n):
        a = distinct(rng, n) - np.float32(5)
        return Case({"a": a, "c": None, "n": np.int32(n)}, {"c": np.maximum(a, np.float32(0))})

    kernel = cuda_kernel(
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n && a[i] > 0) c[i] = a[i];",
        "const float* a, float* c, int n",
    )
    error = failure(kernel, signed, seed=1)
    assert error.kind == "not written"
    assert "the condition before the store" in error.look_at
    assert "whatever its value" in error.look_at


def test_two_results_have_no_tail():
    def halves(rng, n):
        a = summable(rng, n)
        return Case({"a": a, "out": None}, {"out": np.array([a[::2].sum(), a[1::2].sum()])})

    kernel = cuda_kernel(
        "float sum = 0; for (int i = 0; i < 32; i++) sum += a[i]; if (threadIdx.x < 2) out[threadIdx.x] = sum;",
        "const float* a, float* out",
    )
    error = failure(kernel, halves, sizes=[32], launches=[(1, 32)], seed=1)
    assert error.kind == "wrong result"
    assert error.look_at == "which elements go into each result, and whether each does so exactly once"


@pytest.mark.parametrize(
    ("other", "look_at"),
    [
        ("a[i % 32 == 31 ? i : i + 1]", "lane 31 of each warp, the only one that is wrong"),
        ("a[i < 3 ? i : (i + 1) % 32 + i / 32 * 32]", "the first 3 elements, the only ones that are wrong"),
    ],
)
def test_wrong_elements_that_lie_together(other, look_at):
    def turned_warps(rng, n):
        a = distinct(rng, n)
        return Case({"a": a, "c": None}, {"c": a + np.roll(a.reshape(-1, 32), -1, axis=1).ravel()})

    kernel = cuda_kernel(f"int i = blockIdx.x * 32 + threadIdx.x; c[i] = a[i] + {other};", "const float* a, float* c")
    error = failure(kernel, turned_warps, sizes=[128], launches=[(4, 32)], seed=1)
    assert error.look_at.startswith(look_at)
