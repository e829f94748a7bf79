"""Shared-memory wavefronts and bank conflicts of patterns whose cost is known, and the other counters of a launch."""

from __future__ import annotations

import numpy as np
import pytest

from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = """
extern "C" __global__ void stride(float* out, int k, int offset) {
    __shared__ float s[2048];
    for (int i = threadIdx.x; i < 2048; i += blockDim.x) s[i] = i;
    __syncthreads();
    out[threadIdx.x] = s[(threadIdx.x * k + offset) & 2047];
}
extern "C" __global__ void store(float* out, int k) {
    __shared__ float s[2048];
    s[threadIdx.x * k] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x * k];
}
extern "C" __global__ void wide2(float* out) {
    __shared__ float2 s[64];
    s[threadIdx.x] = make_float2(threadIdx.x, 1);
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1].x + s[threadIdx.x ^ 1].y;
}
extern "C" __global__ void wide4(float* out) {
    __shared__ float4 s[64];
    s[threadIdx.x] = make_float4(threadIdx.x, 1, 2, 3);
    __syncthreads();
    float4 v = s[threadIdx.x ^ 1];
    out[threadIdx.x] = v.x + v.y + v.z + v.w;
}
extern "C" __global__ void column(float* out) {
    __shared__ float s[32][33];
    s[threadIdx.y][threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = s[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void bytes(float* out) {
    __shared__ unsigned char s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
template <int BYTES> __device__ void copy_with_strides(const char* x, char* y, int from, int to) {
    extern __shared__ int4 shared[];
    char* t = (char*)shared;
    int i = threadIdx.x;
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 :: "r"((unsigned)__cvta_generic_to_shared(t + to * i)), "l"(x + from * i), "n"(BYTES) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    y[i] = t[to * i];
}
extern "C" __global__ void copy4(const char* x, char* y, int from, int to) { copy_with_strides<4>(x, y, from, to); }
extern "C" __global__ void copy8(const char* x, char* y, int from, int to) { copy_with_strides<8>(x, y, from, to); }
extern "C" __global__ void copy16(const char* x, char* y, int from, int to) { copy_with_strides<16>(x, y, from, to); }
"""


def run(name, block, *args, **options):
    return simulate(CudaSource(SOURCE, name), 1, block, (np.zeros(1024, np.float32), *map(np.int32, args)), **options)


def of_line(profile, text):
    source = SOURCE.splitlines()
    return next(c for (_, line), c in profile.lines.items() if text in source[line - 1])


@pytest.mark.parametrize(
    ("k", "wavefronts"),
    [(0, 1), (1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1), (31, 1), (48, 16)],
)
def test_stride(k, wavefronts):
    for offset in (0, 1, 7):
        c = of_line(run("stride", 64, k, offset), "* k + offset")
        assert (c.shared_load_requests, c.shared_load_wavefronts) == (2, 2 * wavefronts)
        assert c.shared_load_conflicts == 2 * (wavefronts - 1)
    if 0 < k <= 32:
        c = of_line(run("store", 64, k), "s[threadIdx.x * k] = ")
        assert (c.shared_store_requests, c.shared_store_wavefronts) == (2, 2 * wavefronts)


@pytest.mark.parametrize(("kernel", "words"), [("wide2", 2), ("wide4", 4)])
def test_wide_accesses_take_a_wavefront_a_word_and_have_no_conflict(kernel, words):
    c = run(kernel, 64).counts
    assert (c.shared_store_requests, c.shared_store_wavefronts, c.shared_store_conflicts) == (2, 2 * words, 0)
    assert (c.shared_load_wavefronts, c.shared_load_conflicts) == (2 * words, 0)


def test_padding_removes_conflicts():
    c = run("column", (32, 32)).counts
    assert (c.shared_load_wavefronts, c.shared_store_wavefronts) == (32, 32)
    assert (c.shared_load_conflicts, c.shared_store_conflicts) == (0, 0)


def test_bytes_of_one_word_share_its_bank():
    c = run("bytes", 64).counts
    assert (c.shared_load_requests, c.shared_load_wavefronts, c.shared_load_conflicts) == (2, 2, 0)


@pytest.mark.parametrize(
    ("nbytes", "source", "target", "wavefronts"),
    [
        (4, 4, 4, 1),
        (4, 4, 8, 2),
        (4, 4, 128, 32),
        (4, 4, 132, 1),  # rows of 33 words
        (8, 8, 8, 2),
        (8, 8, 16, 4),
        (16, 16, 16, 4),
        (16, 16, 32, 8),
        (16, 16, 128, 32),
        (16, 16, 144, 4),  # rows of 128 bytes with padding
        (16, 32, 16, 8),  # the source has the conflicts
        (16, 256, 16, 32),
        (4, 128, 4, 32),
        (4, 0, 4, 32),  # all read one word, each by itself
        (16, 0, 16, 32),
    ],
)
def test_bank_conflicts_of_cp_async(nbytes, source, target, wavefronts):
    """As Nsight Compute read them on an H100 (evidence/counters/ncu.json)."""
    arguments = np.zeros(64 * 256 + 16, np.int8), np.ones(64, np.int8), np.int32(source), np.int32(target)
    counts = simulate(CudaSource(SOURCE, f"copy{nbytes}"), 1, 64, arguments, shared_bytes=64 * 144).counts
    assert (counts.shared_copy_requests, counts.shared_copy_wavefronts) == (2, 2 * wavefronts)
    assert counts.shared_copy_conflicts == 2 * (wavefronts - nbytes // 4)


PREDICATED = """
#define KERNEL extern "C" __global__ void
#define SETUP __shared__ float s[256]; int t = threadIdx.x, i = blockIdx.x * 256 + t; float v = 0;
KERNEL load(const float* x, float* o, int n) {
    SETUP
    s[t] = x[i];
    __syncthreads();
    if (t < n) v = s[255 - t];
    o[i] = v;
}
KERNEL store(const float* x, float* o, int n) {
    SETUP
    s[t] = 1;
    __syncthreads();
    v = x[i];
    if (t < n) s[t] = v;
    __syncthreads();
    o[i] = s[255 - t];
}
KERNEL global_load(const float* x, float* o, int n) { SETUP if (t < n) v = x[i]; o[i] = v; }
KERNEL branch(const float* x, float* o, int n) {
    SETUP
    s[t] = x[i];
    __syncthreads();
    if (t < n) { v = s[255 - t]; for (int k = 1; k < n; k++) v = v * s[(t + k) % 256] + s[k % 256]; }
    o[i] = v;
}
KERNEL tree(const float* x, float* o, int n) {
    SETUP
    s[t] = x[i];
    __syncthreads();
    for (int k = 128; k > 0; k /= 2) { if (t < k) s[t] += s[t + k]; __syncthreads(); }
    if (t == 0) o[blockIdx.x] = s[0];
}
"""


@pytest.mark.parametrize(
    ("kernel", "n", "loads", "stores", "global_loads"),
    [
        ("load", 40, 32, 32, 32),
        ("load", 256, 32, 32, 32),
        ("store", 40, 32, 64, 8),
        ("store", 256, 32, 64, 32),
        ("global_load", 40, 0, 0, 8),
        ("branch", 40, 632, 32, 32),
        ("tree", 40, 516, 288, 32),
    ],
)
def test_instructions_whose_predicate_is_off_in_a_warp(kernel, n, loads, stores, global_loads):
    """Counted in shared memory, and no request in global memory: as ncu read them on an H100 80GB HBM3, 2026-11-23."""
    arguments = np.ones(1024, np.float32), np.zeros(1024, np.float32), np.int32(n)
    counts = simulate(CudaSource(PREDICATED, kernel), 4, 256, arguments).counts
    assert (counts.shared_load_requests, counts.shared_store_requests) == (loads, stores)
    assert counts.global_load_requests == global_loads


def test_mix_adds_up_to_the_instructions():
    profile = run("wide4", 64)
    assert sum(profile.mix.values()) == profile.counts.warp_instructions
    assert profile.mix["FP32"] > 0
    assert profile.mix["synchronisation"] == 2
