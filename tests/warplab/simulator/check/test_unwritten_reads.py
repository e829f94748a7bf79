"""A local array's element that was never set: an error if, and only if, the result depends on it."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = r"""
#define KERNEL extern "C" __global__ void
KERNEL one_is_missing(const int* x, int* o, int n) {
    int own[8];
    for (int i = 0; i < 8; i++) if (i != n) own[i] = x[i];
    o[threadIdx.x] = own[(threadIdx.x * n) % 8];
}
KERNEL sums(const int* x, int* o, int n) {
    int own[8];
    for (int i = 0; i < 8; i++) own[(i * n) % 8] += x[i];
    o[threadIdx.x] = own[threadIdx.x];
}
KERNEL set_first(const int* x, int* o, int n) {
    int own[8] = {};
    for (int i = 0; i < 8; i++) own[(i * n) % 8] += x[i];
    o[threadIdx.x] = own[threadIdx.x];
}
KERNEL thrown_away(const int* x, int* o, int n) {
    volatile int own[8];
    for (int i = 0; i < 8; i++) if (i != n) own[i] = x[i];
    int value = own[threadIdx.x];
    o[threadIdx.x] = threadIdx.x == n ? -1 : value;
}
struct Padded { char letter; int number; };
KERNEL padding(const int* x, int* o, int n) {
    Padded own[4];
    for (int i = 0; i < 4; i++) own[(i * n) % 4].letter = own[(i * n) % 4].number = x[i];
    Padded copy = own[(threadIdx.x * n) % 4];
    o[threadIdx.x] = copy.letter + copy.number;
}
KERNEL as_an_index(const int* x, int* o, int n) {
    int own[8];
    for (int i = 0; i < 4; i++) own[(i * n) % 4] = i;
    o[threadIdx.x] = x[own[(threadIdx.x * n) % 8] & 7];
}
KERNEL shared_used(const int* x, int* o, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    o[threadIdx.x] = s[threadIdx.x + n];
}
KERNEL shared_thrown_away(const int* x, int* o, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    int next = ((volatile int*)s)[threadIdx.x + 1];
    o[threadIdx.x] = threadIdx.x + 1 < n ? 0 : s[threadIdx.x] + (threadIdx.x > 99) * next;
}
"""


def run(name, n=3, threads=8, **options):
    x, o = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    simulate(CudaSource(SOURCE, name), 1, threads, (x, o, np.int32(n)), **options)
    return o


@pytest.mark.parametrize(("kernel", "line"), [("one_is_missing", 6), ("sums", 10), ("as_an_index", 34)])
def test_a_result_that_depends_on_an_unset_element(kernel, line):
    with pytest.raises(simulator.UninitializedRead, match="local memory was never written") as caught:
        run(kernel)
    assert caught.value.line == line
    assert "not zeros" in str(caught.value)


@pytest.mark.parametrize("kernel", ["set_first", "thrown_away", "padding"])
def test_what_does_not_matter_is_silent(kernel):
    with_checks = run(kernel)
    assert np.array_equal(with_checks, run(kernel, checks=False))


def test_without_checks_nothing_is_said():
    run("one_is_missing", checks=False)


def test_unwritten_shared_memory_that_is_not_used():
    with pytest.raises(simulator.UninitializedRead, match="shared memory"):
        run("shared_thrown_away")
    run("shared_thrown_away", used_reads_only=True)
    with pytest.raises(simulator.UninitializedRead, match=r"shared memory \(element 8 of `s`\) was never written"):
        run("shared_used", n=1, used_reads_only=True)


def test_a_sort_of_cub_reads_past_its_keys_and_throws_it_away():
    code = """
    #include <cub/block/block_merge_sort.cuh>
    struct Less { __device__ bool operator()(int a, int b) const { return a < b; } };
    extern "C" __global__ void sort(int* x) {
        using Sort = cub::BlockMergeSort<int, 64, 4>;
        __shared__ Sort::TempStorage place;
        int keys[4];
        for (int i = 0; i < 4; i++) keys[i] = x[threadIdx.x * 4 + i];
        Sort(place).Sort(keys, Less());
        for (int i = 0; i < 4; i++) x[threadIdx.x * 4 + i] = keys[i];
    }"""
    shuffled = np.random.default_rng(20).permutation(256).astype(np.int32)
    with pytest.raises(simulator.UninitializedRead, match="shared memory"):
        simulate(CudaSource(code, "sort"), 1, 64, (shuffled.copy(),))
    simulate(CudaSource(code, "sort"), 1, 64, (shuffled,), used_reads_only=True)
    assert np.array_equal(shuffled, np.arange(256))
