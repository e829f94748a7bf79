"""Whole kernels from both compilers on the simulator: results, counters, chunks, control flow."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda, float32

from tests.support.ptx_harness import get, put
from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

VECTOR = """
extern "C" __global__ void multiply(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] * b[i];
}
extern "C" __global__ void grid_stride(const float* a, const float* b, float* c, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) c[i] = a[i] * b[i];
}
extern "C" __global__ void by_four(const float4* a, const float4* b, float4* c, int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n4) {
        float4 x = a[i], y = b[i];
        c[i] = make_float4(x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w);
    }
}
extern "C" __global__ void strided(const float* a, float* c, int n, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i * stride];
}
extern "C" __global__ void backwards(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[n - 1 - i];
}
"""
TILED = """
extern "C" __global__ void matmul(const float* A, const float* B, float* C, int n) {
    __shared__ float a[16][16], b[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
    float sum = 0;
    for (int t = 0; t < n / 16; t++) {
        a[ty][tx] = A[y * n + t * 16 + tx];
        b[ty][tx] = B[(t * 16 + ty) * n + x];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += a[ty][k] * b[k][tx];
        __syncthreads();
    }
    C[y * n + x] = sum;
}
extern "C" __global__ void reverse(const int* in, int* out, int n) {
    extern __shared__ int tile[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    tile[t] = i < n ? in[i] : -1;
    __syncthreads();
    if (i < n) out[i] = tile[blockDim.x - 1 - t];
}
__device__ __constant__ int weights[4] = {3, 1, 4, 1};
__device__ int total = 5;
extern "C" __global__ void constants(int* out) {
    int i = threadIdx.x;
    out[i] = weights[i & 3] * total;
}
extern "C" __global__ void collatz(const int* start, int* steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = start[i], k = 0;
    while (v != 1) { v = (v & 1) ? 3 * v + 1 : v / 2; k++; }
    steps[i] = k;
}
extern "C" __global__ void local_array(const int* in, int* out, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, a[8];
    for (int j = 0; j < 8; j++) a[j] = in[(i * 3 + j) & 63] * j;
    out[i] = a[(k + i) & 7];
}
__global__ void fences(int* a) {
    a[threadIdx.x] = 1; __threadfence(); __syncwarp(); __threadfence_block(); a[threadIdx.x] += 1;
}
"""


def kernel(name: str, code: str = VECTOR) -> CudaSource:
    return CudaSource(code, name)


@pytest.fixture
def vectors():
    rng = np.random.default_rng(20)
    n = 1000 + 29
    a, b = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)
    return n, a, b, np.full(n, np.nan, np.float32)


@pytest.mark.parametrize("options", [{}, {"checks": False}, {"checks": False, "counters": False}])
def test_vector_multiply(vectors, options):
    n, a, b, c = vectors
    simulate(kernel("multiply"), 9, 128, (a, b, c, np.int32(n)), **options)
    np.testing.assert_array_equal(c, a * b)


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (1, 32), (3, 33), (7, 256), (2, 1024)])
def test_grid_stride_is_right_for_any_grid(vectors, grid, block):
    n, a, b, c = vectors
    simulate(kernel("grid_stride"), grid, block, (a, b, c, np.int32(n)))
    np.testing.assert_array_equal(c, a * b)


def test_chunks_give_the_same_result_and_counts(vectors):
    n, a, b, c = vectors
    whole = simulate(kernel("multiply"), 9, 128, (a, b, c, np.int32(n)), chunk_lanes=1 << 20)
    once = c.copy()
    c[:] = np.nan
    parts = simulate(kernel("multiply"), 9, 128, (a, b, c, np.int32(n)), chunk_lanes=256)
    np.testing.assert_array_equal(c, once)
    assert parts.counts == whole.counts
    assert parts.lines == whole.lines
    assert parts.footprint == whole.footprint


def test_numba_kernel():
    @cuda.jit
    def scale(a, factor):
        i = cuda.grid(1)
        if i < a.size:
            a[i] *= factor

    a = np.arange(100, dtype=np.float64)
    simulate(scale, 4, 32, (a, 2.5))
    np.testing.assert_array_equal(a, np.arange(100) * 2.5)


@pytest.mark.parametrize("n", [16, 64])
def test_tiled_matmul_in_both_languages(n):
    @cuda.jit
    def matmul(A, B, C):
        a = cuda.shared.array((16, 16), float32)
        b = cuda.shared.array((16, 16), float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = float32(0)
        for t in range(cuda.gridDim.x):
            a[ty, tx] = A[y, t * 16 + tx]
            b[ty, tx] = B[t * 16 + ty, x]
            cuda.syncthreads()
            for k in range(16):
                total += a[ty, k] * b[k, tx]
            cuda.syncthreads()
        C[y, x] = total

    rng = np.random.default_rng(20)
    A, B = rng.random((n, n), dtype=np.float32), rng.random((n, n), dtype=np.float32)
    C = np.full((n, n), np.nan, np.float32)
    D = C.copy()
    grid = (n // 16, n // 16)
    first = simulate(matmul, grid, (16, 16), (A, B, C))
    second = simulate(CudaSource(TILED, "matmul"), grid, (16, 16), (A, B, D, np.int32(n)))
    want = A.astype(np.float64) @ B
    np.testing.assert_allclose(C, want, rtol=1e-5)
    np.testing.assert_array_equal(C, D)
    for profile in (first, second):
        tiles = n // 16
        assert profile.counts.global_load_requests == tiles**3 * 2 * 8
        assert profile.counts.shared_store_requests == tiles**3 * 2 * 8
        # ptxas puts four neighbours of a row of A into one load.
        assert profile.counts.shared_load_requests == tiles**3 * (16 + 16 // 4) * 8
        assert profile.counts.barriers == tiles**3 * 2 * 8
        assert profile.counts.flops_f32 == 2 * n**3
        assert profile.counts.warp_efficiency == 1


def test_dynamic_shared_memory():
    a = np.arange(128, dtype=np.int32)
    out = np.zeros_like(a)
    simulate(CudaSource(TILED, "reverse"), 2, 64, (a, out, np.int32(128)), shared_bytes=256)
    np.testing.assert_array_equal(out, a.reshape(2, 64)[:, ::-1].ravel())


def test_managed_variables():
    code = """
    __managed__ int count = 7;
    __managed__ __align__(16) float values[4];
    extern "C" __global__ void add(int* out, float* seen) {
        out[threadIdx.x] = count;
        values[threadIdx.x] += threadIdx.x;
        seen[threadIdx.x] = values[threadIdx.x];
    }"""
    out, seen = np.zeros(4, np.int32), np.zeros(4, np.float32)
    simulate(CudaSource(code, "add"), 1, 4, (out, seen))
    assert out.tolist() == [7] * 4
    assert seen.tolist() == [0, 1, 2, 3]


def test_constant_and_global_variables_and_fences():
    out = np.zeros(8, np.int32)
    profile = simulate(CudaSource(TILED, "constants"), 1, 8, (out,))
    assert out.tolist() == [15, 5, 20, 5] * 2
    assert profile.counts.global_load_requests == 1  # `total`; constants are no global loads
    simulate(CudaSource(TILED, "fences"), 1, 8, (out,))
    assert out.tolist() == [2] * 8


def test_local_memory():
    a = np.arange(64, dtype=np.int32) * 7
    out = np.zeros(64, np.int32)
    profile = simulate(CudaSource(TILED, "local_array"), 2, 32, (a, out, np.int32(3)))
    i = np.arange(64)
    j = (3 + i) & 7
    np.testing.assert_array_equal(out, a[(i * 3 + j) & 63] * j)
    assert profile.counts.local_load_requests == 2


def test_divergent_loops_finish_and_meet_again():
    start = np.arange(1, 201, dtype=np.int32)
    steps = np.zeros(200, np.int32)
    profile = simulate(CudaSource(TILED, "collatz"), 2, 128, (start, steps, np.int32(200)))

    def length(v):
        k = 0
        while v != 1:
            v, k = (3 * v + 1 if v & 1 else v // 2), k + 1
        return k

    assert steps.tolist() == [length(int(v)) for v in start]
    assert profile.counts.warp_efficiency < 0.7
    assert profile.counts.divergent_branches > 0
    longest = [max(steps[w : w + 32]) for w in range(0, 200, 32)]
    store = next(c for c in profile.lines.values() if c.global_store_requests)
    assert store.global_store_requests == len(longest)  # the lanes of each warp store together


# -- counters: what the hardware counts is known for these patterns ----------------------------------------------------


def counts(name: str, n: int, *extra, grid=4, block=64, size=None):
    a = np.zeros(size or n, np.float32)
    args = [a, a, a.copy()] if name in ("multiply", "grid_stride", "by_four") else [a, np.zeros(n, np.float32)]
    return simulate(kernel(name), grid, block, (*args, np.int32(n), *extra)).counts


def test_coalesced_access_takes_four_sectors_a_request():
    c = counts("multiply", 256)
    assert (c.global_load_requests, c.global_load_sectors) == (16, 64)
    assert (c.global_store_requests, c.global_store_sectors) == (8, 32)
    assert (c.global_load_bytes, c.global_store_bytes) == (2048, 1024)
    assert c.load_efficiency == 1
    assert c.flops_f32 == 256
    assert (c.branches, c.divergent_branches) == (0, 0)  # the guard is an exit under a predicate


def test_floating_point_operations_are_additions_and_products():
    """As in Nsight Compute's metrics, fadd + fmul + 2 ffma: a minimum is a comparison, and counts nothing."""
    code = """extern "C" __global__ void clamp(const float* x, float* y) {
        y[threadIdx.x] = fminf(fmaxf(x[threadIdx.x] * 3.0f, 0.0f), 6.0f);
    }"""
    x = np.linspace(-4, 4, 32, dtype=np.float32)
    y = np.zeros_like(x)
    assert simulate(CudaSource(code, "clamp"), 1, 32, (x, y)).counts.flops_f32 == 32
    assert y.tolist() == np.clip(x * 3, 0, 6).astype(np.float32).tolist()


def test_partial_warp():
    c = counts("multiply", 70, grid=2)
    assert (c.global_store_requests, c.global_store_sectors) == (3, 4 + 4 + 1)
    assert (c.branches, c.divergent_branches) == (0, 0)


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (4, 16), (8, 32), (32, 32)])
def test_stride_costs_sectors(stride, sectors):
    c = counts("strided", 256, np.int32(stride), size=256 * 32)
    assert c.global_load_sectors == 8 * sectors


def test_order_within_a_warp_costs_nothing():
    c = counts("backwards", 256)
    assert (c.global_load_requests, c.global_load_sectors) == (8, 32)


def test_wide_access():
    a = np.zeros(1024, np.float32)
    c = simulate(kernel("by_four"), 4, 64, (a, a, a.copy(), np.int32(256))).counts
    assert (c.global_load_requests, c.global_load_sectors) == (16, 16 * 16)
    assert c.global_store_bytes == 4096


def test_misaligned_vector_touches_five_sectors():
    device = simulator.Device(64 << 20)
    a = np.arange(300, dtype=np.float32)
    source, target = put(device, a), device.memory.allocate(1200)
    entry = kernel("strided").load()
    params = [v.to_bytes(8, "little") for v in (source + 4, target)] + [v.to_bytes(4, "little") for v in (256, 1)]
    profile = device.launch(entry, (4,), (64,), params)
    assert profile.counts.global_load_sectors == 8 * 5
    np.testing.assert_array_equal(get(device, target, 256, "f4"), a[1:257])


def test_footprint_counts_each_sector_once():
    a = np.zeros(256, np.float32)
    profile = simulate(kernel("multiply"), 4, 64, (a, a.copy(), a.copy(), np.int32(256)))
    assert profile.footprint == {"global_load_bytes": 2048, "global_store_bytes": 1024}
    profile = simulate(kernel("multiply"), 4, 64, (a, a, a.copy(), np.int32(256)))
    assert profile.footprint == {"global_load_bytes": 1024, "global_store_bytes": 1024}


def test_distinct_bytes_and_kinds_of_instruction_by_line():
    source = """extern "C" __global__ void twice(const float* a, float* c, int* count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = a[i];
    float y = a[i ^ 64];
    c[i] = x + y;
    atomicAdd(&count[0], 1);
}"""
    arrays = np.zeros(256, np.float32), np.zeros(256, np.float32), np.zeros(1, np.int32)
    profile = simulate(CudaSource(source, "twice"), 4, 64, arrays)
    lines = {line: amounts for (_, line), amounts in profile.line_footprint.items()}
    assert lines[3] == lines[4] == {"global_load_bytes": 1024}  # the same bytes, touched by two lines
    assert lines[5] == {"global_store_bytes": 1024}
    assert lines[6] == {"global_atomic_bytes": 32}
    assert profile.footprint == {"global_load_bytes": 1024, "global_store_bytes": 1024, "global_atomic_bytes": 32}
    assert profile.line_mix["kernel.cu", 5]["FP32"] == 8
    assert profile.line_mix["kernel.cu", 5]["store"] == 8
    for place, counts in profile.lines.items():
        assert sum(profile.line_mix[place].values()) == counts.warp_instructions


def test_lines_add_up_to_the_total():
    a = np.zeros(300, np.float32)
    profile = simulate(kernel("grid_stride"), 2, 64, (a, a, a.copy(), np.int32(300)))
    assert sum(profile.lines.values(), simulator.Counts()) == profile.counts
    text = profile.sources["kernel.cu"].splitlines()
    file, number = next(key for key, c in profile.lines.items() if c.global_store_requests)
    assert (file, "c[i] = a[i] * b[i]" in text[number - 1]) == ("kernel.cu", True)


def test_trace_holds_the_first_warps_addresses():
    a, b, c = (np.zeros(300, np.float32) for _ in range(3))
    profile = simulate(kernel("multiply"), 5, 64, (a, b, c, np.int32(300)), trace_warps=1)
    assert [(x.op, x.space, x.width) for x in profile.accesses] == [("load", "global", 4)] * 2 + [
        ("store", "global", 4)
    ]
    access = profile.accesses[-1]
    assert access.array == "c"
    assert ((access.address - np.uint64(access.array_start)) // 4).tolist() == list(range(32))
    assert access.thread.tolist() == list(range(32))
