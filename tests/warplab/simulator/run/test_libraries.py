"""The libraries of CUDA C++ (cooperative groups, CUB, cuda::std, libcu++, cuRAND) on the simulator, against NumPy.

All checks are on: none of this is taken for a mistake.
"""

from __future__ import annotations

import numpy as np
import pytest

from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

START = """
#define KERNEL extern "C" __global__ void
#define ME threadIdx.x
"""
GROUPS = (
    START
    + r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/latch>
namespace cg = cooperative_groups;
#pragma nv_diag_suppress static_var_with_dynamic_init

KERNEL reduce(const int* x, const double* d, int* out, double* most) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto eight = cg::tiled_partition<8>(warp);
    out[ME] = cg::reduce(warp, x[ME], cg::plus<int>()) + cg::reduce(eight, x[ME], cg::less<int>())
             + 1000 * cg::reduce(eight, x[ME], cg::bit_xor<int>());
    most[ME] = cg::reduce(warp, d[ME], cg::greater<double>())
              + cg::reduce(eight, d[ME], [](double a, double b) { return a < b ? a : b; });
}
KERNEL scan(const int* x, int* out, int* total) {
    __shared__ int s;
    if (ME == 0) s = 100;
    __syncthreads();
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto four = cg::tiled_partition<4>(warp);
    out[ME] = cg::inclusive_scan(warp, x[ME]) + 1000 * cg::exclusive_scan(four, x[ME], cg::plus<int>());
    cuda::atomic_ref<int, cuda::thread_scope_block> sum(s);
    int before = cg::exclusive_scan_update(warp, sum, x[ME], cg::plus<int>());
    if (ME == 40) total[1] = before;
    cg::reduce_update_async(four, sum, x[ME], cg::plus<int>());
    __syncthreads();
    if (ME == 0) total[0] = s;
}
KERNEL together(const int* x, int* out, int* count) {
    out[ME] = -1;
    if (x[ME] & 1) {
        auto g = cg::coalesced_threads();
        int first = 0;
        if (g.thread_rank() == 0) first = atomicAdd(count, g.size());
        out[ME] = g.shfl(first, 0) + g.thread_rank() + 1000 * g.shfl_down(x[ME], 1) + 1000000 * g.shfl(x[ME], 2);
    }
}
KERNEL by_label(const int* x, int* out) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto label = cg::labeled_partition(warp, x[ME] % 3);
    out[ME] = cg::reduce(label, x[ME], cg::plus<int>()) + 1000 * label.thread_rank() + 100000 * label.size();
    auto half = cg::binary_partition(warp, x[ME] > 50);
    out[ME] += 10000000 * half.size();
}
KERNEL one_of_them(int* out) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    cg::invoke_one(warp, [&] { atomicAdd(out, 1); });
    out[1 + ME] = cg::invoke_one_broadcast(warp, [&] { return 7; });
}
KERNEL copies(const int* x, int* out) {  // of a warp, whose lanes all copy something; and of two odd lengths
    __shared__ alignas(16) int s[256];
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int start = 32 * warp.meta_group_rank();
    cg::memcpy_async(warp, s + start, x + start, cuda::aligned_size_t<16>(128));
    cg::wait(warp);
    out[ME] = s[ME ^ 1];
    block.sync();
    cg::memcpy_async(block, s, x, 37 * sizeof(int));
    cg::memcpy_async(block, s + 37, x + 101, 27 * sizeof(int));
    cg::wait(block);
    if (ME < 64) out[ME] += 1000 * s[63 - ME];
}
KERNEL arrive_then_wait(int* x) {
    __shared__ int s[64];
    auto block = cg::this_thread_block();
    s[ME] = x[ME];
    auto token = block.barrier_arrive();
    int own = 3 * ME;
    block.barrier_wait(cuda::std::move(token));
    x[ME] = s[63 - ME] + own;
}
KERNEL producers(const int* x, int* out) {  // warp 0 copies for warp 1
    __shared__ int s[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto pipe = cuda::make_pipeline(cg::this_thread_block(), &state, 32);
    int sum = 0;
    for (int k = 0; k < 4; k++) {
        if (ME < 32) {
            pipe.producer_acquire();
            for (int j = ME; j < 64; j += 32) cuda::memcpy_async(&s[k & 1][j], x + 64 * k + j, sizeof(int), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            sum += s[k & 1][63 - ME] + s[k & 1][ME];
            pipe.consumer_release();
        }
    }
    if (ME >= 32) out[ME - 32] = sum;
    pipe.quit();
}
KERNEL latch_and_semaphore(int* out) {
    typedef cuda::latch<cuda::thread_scope_block> Latch;
    typedef cuda::counting_semaphore<cuda::thread_scope_block, 2> Semaphore;
    __shared__ alignas(Latch) char a[sizeof(Latch)];
    __shared__ alignas(Semaphore) char b[sizeof(Semaphore)];
    __shared__ int s[64];
    Latch& latch = *(Latch*)a;
    Semaphore& two = *(Semaphore*)b;
    if (ME == 0) { new (&latch) Latch(64); new (&two) Semaphore(2); }
    __syncthreads();
    s[ME] = ME;
    latch.arrive_and_wait();
    out[ME] = s[63 - ME];
    two.acquire();
    atomicAdd(out + 64, 1);
    two.release();
}
"""
)
CUB = (
    START
    + r"""
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

template <cub::BlockReduceAlgorithm A> __device__ int total(int v) {
    using Reduce = cub::BlockReduce<int, 128, A>;
    __shared__ typename Reduce::TempStorage storage;
    int sum = Reduce(storage).Sum(v);
    __syncthreads();
    return sum + Reduce(storage).Reduce(v, [](int a, int b) { return a > b ? a : b; }, 77);
}
KERNEL reduce(const int* x, int* out) {
    int a = total<cub::BLOCK_REDUCE_RAKING>(x[ME]), b = total<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(x[ME]);
    if (ME == 0) { out[0] = a; out[1] = b; }
}
KERNEL scan(const int* x, int* out) {  // 4 a thread, by way of shared memory
    using Load = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Scan = cub::BlockScan<int, 128, cub::BLOCK_SCAN_RAKING>;
    using Store = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_TRANSPOSE>;
    __shared__ union { Load::TempStorage load; Scan::TempStorage scan; Store::TempStorage store; } s;
    int v[4];
    Load(s.load).Load(x, v, 500, 1);
    __syncthreads();
    Scan(s.scan).ExclusiveSum(v, v);
    __syncthreads();
    Store(s.store).Store(out, v, 510);
}
KERNEL sort(const float* x, float* out, int* places) {
    using Sort = cub::BlockRadixSort<float, 128, 2, int>;
    __shared__ Sort::TempStorage s;
    float keys[2] = {x[2 * ME], x[2 * ME + 1]};
    int values[2] = {int(2 * ME), int(2 * ME + 1)};
    Sort(s).SortDescending(keys, values);
    for (int k = 0; k < 2; k++) { out[2 * ME + k] = keys[k]; places[2 * ME + k] = values[k]; }
}
KERNEL histogram(const unsigned char* x, unsigned* out) {
    using Histogram = cub::BlockHistogram<unsigned char, 128, 2, 256, cub::BLOCK_HISTO_ATOMIC>;
    __shared__ Histogram::TempStorage s;
    __shared__ unsigned bins[256];
    unsigned char v[2] = {x[2 * ME], x[2 * ME + 1]};
    Histogram(s).Histogram(v, bins);
    __syncthreads();
    for (int k = ME; k < 256; k += 128) out[k] = bins[k];
}
KERNEL warps(const int* x, int* sums, double* running) {
    using Reduce = cub::WarpReduce<int, 16>;
    using Scan = cub::WarpScan<double>;
    __shared__ Reduce::TempStorage s[8];
    __shared__ Scan::TempStorage t[4];
    int sum = Reduce(s[ME / 16]).Sum(x[ME]);
    if (ME % 16 == 0) sums[ME / 16] = sum;
    Scan(t[ME / 32]).InclusiveSum(x[ME] + 0.5, running[ME]);
}
"""
)
STANDARD = (
    START
    + r"""
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/bitset>
#include <cuda/std/complex>
#include <cuda/std/mdspan>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/std/tuple>
namespace st = cuda::std;

KERNEL containers(const int* x, int* out) {
    st::array<int, 8> a;
    for (int k = 0; k < 8; k++) a[k] = x[k] * ME;
    int sum = 0;
    for (int v : st::span<const int>(x, 32).subspan(2)) sum += v;
    st::optional<int> odd;
    if (x[ME] & 1) odd = x[ME];
    auto [first, second] = st::make_tuple(x[ME], 2.5f);
    out[ME] = a[ME & 7] + sum + odd.value_or(-1) + int(first * second);
}
KERNEL bits(const unsigned* x, unsigned* out) {
    unsigned v = x[ME];
    st::bitset<64> b(v);
    b.set(40);
    out[ME] = st::popcount(v) + 100 * st::countl_zero(v) + 10000 * st::countr_zero(v) + 1000000 * (b << 2).count()
             + st::rotl(v, 7) + st::bit_ceil(v >> 16);
}
KERNEL complex(const double2* x, double2* out) {
    st::complex<double> z(x[ME].x, x[ME].y), w = st::exp(z) * st::sqrt(z) / (z + 2.0);
    out[ME] = make_double2(w.real() + st::abs(z), w.imag() + st::arg(z));
}
KERNEL matrix(float* x) {
    st::mdspan<float, st::extents<int, 4, 8>> m(x);
    m(ME / 8, ME % 8) = 2 * m(ME / 8, ME % 8) + m.extent(0);
}
"""
)
RANDOM = np.random.default_rng(0)
X = RANDOM.integers(0, 100, 256).astype("i4")


def run(code: str, name: str, threads: int, *args: np.ndarray) -> None:
    simulate(CudaSource(code, name), 1, threads, args)


def spread(function, x: np.ndarray, size: int) -> np.ndarray:
    """`function` of each tile of `size` threads, for each of its threads."""
    return np.repeat(function(x.reshape(-1, size), axis=1), size)


def test_groups_reduce():
    x, d, out, most = X[:64], RANDOM.normal(size=64), np.zeros(64, "i4"), np.zeros(64)
    run(GROUPS, "reduce", 64, x, d, out, most)
    want = spread(np.sum, x, 32) + spread(np.min, x, 8) + 1000 * spread(np.bitwise_xor.reduce, x, 8)
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(most, spread(np.max, d, 32) + spread(np.min, d, 8))


def test_groups_scan():
    x, out, total = X[:64], np.zeros(64, "i4"), np.zeros(2, "i4")
    run(GROUPS, "scan", 64, x, out, total)
    running = np.cumsum(x.reshape(-1, 32), axis=1).ravel()
    np.testing.assert_array_equal(out, running + 1000 * (np.cumsum(x.reshape(-1, 4), axis=1).ravel() - x))
    first, second = x[:32].sum(), x[32:].sum()
    before = running[40] - x[40]
    assert total[0] == 100 + 2 * (first + second)
    assert total[1] in (100 + before, 100 + first + before)  # whichever warp comes first


def test_groups_of_threads_that_happen_to_be_together():
    x, out, count = X[:64], np.zeros(64, "i4"), np.zeros(1, "i4")
    run(GROUPS, "together", 64, x, out, count)
    want, start = np.full(64, -1), 0
    for warp in (0, 32):
        odd = [k for k in range(warp, warp + 32) if x[k] & 1]
        for rank, k in enumerate(odd):
            want[k] = start + rank + 1000 * x[odd[min(rank + 1, len(odd) - 1)]] + 1000000 * x[odd[2]]
        start += len(odd)
    np.testing.assert_array_equal(out, want)
    assert count[0] == start


def test_groups_by_label():
    x, out = X[:32], np.zeros(32, "i4")
    run(GROUPS, "by_label", 32, x, out)
    for k in range(32):
        same = np.flatnonzero(x % 3 == x[k] % 3)
        want = x[same].sum() + 1000 * list(same).index(k) + 100000 * same.size
        assert out[k] == want + 10000000 * np.count_nonzero((x > 50) == (x[k] > 50))
    out = np.zeros(65, "i4")
    run(GROUPS, "one_of_them", 64, out)
    assert out.tolist() == [2, *[7] * 64]


def test_groups_copy_and_wait():
    out = np.zeros(256, "i4")
    run(GROUPS, "copies", 256, X, out)
    want = X.reshape(-1, 2)[:, ::-1].ravel().copy()
    want[:64] += 1000 * np.concatenate((X[:37], X[101:128]))[::-1]
    np.testing.assert_array_equal(out, want)
    x = X[:64].copy()
    run(GROUPS, "arrive_then_wait", 64, x)
    np.testing.assert_array_equal(x, X[:64][::-1] + 3 * np.arange(64))


def test_pipelines_latches_and_semaphores():
    out = np.zeros(32, "i4")
    run(GROUPS, "producers", 64, X, out)
    tiles = X.reshape(4, 64)
    np.testing.assert_array_equal(out, tiles[:, 31::-1].sum(axis=0) + tiles[:, 32:].sum(axis=0))
    out = np.zeros(65, "i4")
    run(GROUPS, "latch_and_semaphore", 64, out)
    assert out.tolist() == [*range(63, -1, -1), 64]


def test_cub_blocks():
    x = np.concatenate((X, X[::-1])).astype("i4")
    out = np.zeros(2, "i4")
    run(CUB, "reduce", 128, x, out)
    assert out.tolist() == [x[:128].sum() + x[:77].max()] * 2
    out = np.full(512, -1, "i4")
    run(CUB, "scan", 128, x, out)
    padded = np.where(np.arange(512) < 500, x, 1)
    np.testing.assert_array_equal(out[:510], (np.cumsum(padded) - padded)[:510])
    assert out[510:].tolist() == [-1, -1]
    keys = RANDOM.normal(size=256).astype("f4")
    ordered, places = np.zeros(256, "f4"), np.zeros(256, "i4")
    run(CUB, "sort", 128, keys, ordered, places)
    np.testing.assert_array_equal(places, np.argsort(-keys, kind="stable"))
    np.testing.assert_array_equal(ordered, keys[places])
    values, bins = X.astype("u1"), np.zeros(256, "u4")
    run(CUB, "histogram", 128, values, bins)
    np.testing.assert_array_equal(bins, np.bincount(values, minlength=256))


def test_cub_warps():
    sums, running = np.zeros(8, "i4"), np.zeros(128)
    run(CUB, "warps", 128, X, sums, running)
    np.testing.assert_array_equal(sums, X[:128].reshape(8, 16).sum(axis=1))
    np.testing.assert_array_equal(running, np.cumsum(X[:128].reshape(4, 32) + 0.5, axis=1).ravel())


def test_standard_containers():
    x, out, lane = X[:32], np.zeros(32, "i4"), np.arange(32)
    run(STANDARD, "containers", 32, x, out)
    want = x[lane & 7] * lane + x[2:].sum() + np.where(x & 1, x, -1) + (x * 2.5).astype(int)
    np.testing.assert_array_equal(out, want)
    m = np.arange(32, dtype="f4")
    run(STANDARD, "matrix", 32, m)
    np.testing.assert_array_equal(m, 2 * np.arange(32) + 4)


def test_standard_bits():
    x, out = RANDOM.integers(1, 1 << 32, 32, dtype="u4"), np.zeros(32, "u4")
    run(STANDARD, "bits", 32, x, out)
    for value, seen in zip(x.tolist(), out.tolist(), strict=True):
        ceiling = 1 << max(0, (value >> 16) - 1).bit_length()
        want = value.bit_count() + 100 * (32 - value.bit_length()) + 10000 * ((value & -value).bit_length() - 1)
        want += 1000000 * (value.bit_count() + 1) + (value << 7 | value >> 25) % (1 << 32) + ceiling
        assert seen == want % (1 << 32)


def test_standard_complex():
    x, out = RANDOM.normal(size=(32, 2)), np.zeros((32, 2))
    run(STANDARD, "complex", 32, x, out)
    z = x[:, 0] + 1j * x[:, 1]
    w = np.exp(z) * np.sqrt(z) / (z + 2)
    np.testing.assert_allclose(out, np.stack((w.real + abs(z), w.imag + np.angle(z)), axis=1), rtol=1e-13)


CURAND = (
    START
    + r"""
#include <curand_kernel.h>
KERNEL known(unsigned long long seed, uint4* out) {
    curandStatePhilox4_32_10_t state;
    curand_init(seed, 0, 0, &state);
    *out = curand4(&state);
}
template <typename State> __device__ void draw(float* uniform, float* normal) {
    State state;
    curand_init(2026ull, ME, 0ull, &state);
    for (int i = 0; i < 16; i++) {
        uniform[i * 256 + ME] = curand_uniform(&state);
        normal[i * 256 + ME] = curand_normal(&state);
    }
}
KERNEL xorwow(float* uniform, float* normal) { draw<curandState>(uniform, normal); }
KERNEL philox(float* uniform, float* normal) { draw<curandStatePhilox4_32_10_t>(uniform, normal); }
KERNEL mrg(float* uniform, float* normal) { draw<curandStateMRG32k3a>(uniform, normal); }
"""
)


def test_philox_gives_the_known_answer():
    """Random123's file of known answers has it: philox4x32, 10 rounds, counter and key 0."""
    out = np.zeros(4, np.uint32)
    simulate(CudaSource(CURAND, "known"), 1, 1, (np.uint64(0), out))
    assert [f"{word:08x}" for word in out] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


@pytest.mark.parametrize("name", ["xorwow", "philox", "mrg"])
def test_curands_generators_have_the_right_moments(name):
    uniform, normal = np.zeros(16 * 256, np.float32), np.zeros(16 * 256, np.float32)
    simulate(CudaSource(CURAND, name), 1, 256, (uniform, normal))
    assert uniform.min() > 0
    assert uniform.max() <= 1
    assert abs(uniform.mean() - 0.5) < 4 * np.sqrt(1 / 12 / uniform.size)
    assert abs(normal.mean()) < 4 / np.sqrt(normal.size)
    assert abs(normal.var() - 1) < 4 * np.sqrt(2 / normal.size)
    assert len(np.unique(uniform)) > 0.99 * uniform.size  # each thread has a sequence of its own
