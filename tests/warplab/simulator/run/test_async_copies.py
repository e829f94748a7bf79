"""Asynchronous copies and mbarriers: what they move, when it is visible, and what a kernel without its wait gets."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = r"""
#include <cuda/pipeline>
#include <cuda/barrier>
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
#define KERNEL extern "C" __global__ void
#define TILE 64
typedef unsigned long long mbarrier;

__device__ unsigned shared_address(const void* p) { return __cvta_generic_to_shared(p); }
__device__ void init(unsigned bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
}
__device__ void arrive(unsigned bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");
}
__device__ void wait(unsigned bar, int parity) {
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra DONE;\nbra AGAIN;\nDONE:\n}" :: "r"(bar), "r"(parity) : "memory");
}

// Each block sums tiles of 64 floats, the next one on its way while one is added up.
template <bool WAIT>
__device__ void double_buffered(const float* x, float* y, int tiles) {
    __shared__ alignas(16) float t[2][TILE];
    int i = threadIdx.x;
    x += blockIdx.x * tiles * TILE;
    auto fetch = [&](int tile) {
        if (i < TILE / 4) __pipeline_memcpy_async(&t[tile & 1][4 * i], &x[tile * TILE + 4 * i], 16);
        __pipeline_commit();
    };
    float sum = 0;
    fetch(0);
    for (int tile = 0; tile < tiles; tile++) {
        if (tile + 1 < tiles) fetch(tile + 1); else __pipeline_commit();
        if (WAIT || tile == 0) __pipeline_wait_prior(1);
        __syncthreads();
        sum += t[tile & 1][TILE - 1 - i];
        __syncthreads();
    }
    y[blockIdx.x * TILE + i] = sum;
}
KERNEL with_wait(const float* x, float* y, int tiles) { double_buffered<true>(x, y, tiles); }
KERNEL without_wait(const float* x, float* y, int tiles) { double_buffered<false>(x, y, tiles); }

KERNEL widths(const char* x, char* y, int sources) {
    __shared__ alignas(16) char t[32 * 28];
    int i = threadIdx.x;
    unsigned p = shared_address(t), p4 = p + 4 * i, p8 = p + 128 + 8 * i, p16 = p + 384 + 16 * i;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(p4), "l"(x + 4 * i), "r"(min(sources, 4)));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" :: "r"(p8), "l"(x + 128 + 8 * i), "r"(min(sources, 8)));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(p16), "l"(x + 384 + 16 * i), "r"(sources));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    for (int k = i; k < 32 * 28; k += 32) y[k] = t[k];
}
KERNEL guarded_tail(const float* x, float* y, int n) {  // zero fill beyond n
    __shared__ float t[TILE];
    int i = threadIdx.x;
    __pipeline_memcpy_async(&t[i], &x[i < n ? i : 0], 4, i < n ? 0 : 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    y[i] = t[i];
}
KERNEL groups(const float* x, float* y, int most) {  // four groups in flight, the oldest `most` waited for
    __shared__ float t[4][32];
    int i = threadIdx.x;
    for (int k = 0; k < 4; k++) {
        t[k][i] = -1;
        __pipeline_memcpy_async(&t[k][i], &x[32 * k + i], 4);
        __pipeline_commit();
    }
    if (most == 0) __pipeline_wait_prior(0);
    if (most == 1) __pipeline_wait_prior(1);
    if (most == 3) __pipeline_wait_prior(3);
    y[i] = t[0][i] + (most < 2 ? t[2][i] : 0) + (most < 1 ? t[3][i] : 0);
}
KERNEL too_late(const float* x, float* y) {  // group 3 is still on its way
    __shared__ float t[4][32];
    int i = threadIdx.x;
    for (int k = 0; k < 4; k++) {
        __pipeline_memcpy_async(&t[k][i], &x[32 * k + i], 4);
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    y[i] = t[3][i];
}
KERNEL no_barrier(const float* x, float* y) {  // another thread's copy
    __shared__ float t[TILE];
    int i = threadIdx.x;
    __pipeline_memcpy_async(&t[i], &x[i], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    y[i] = t[TILE - 1 - i];
}
KERNEL outside(const float* x, float* y) {
    __shared__ float t[TILE];
    __pipeline_memcpy_async(&t[threadIdx.x], &x[threadIdx.x + 1], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    y[threadIdx.x] = t[threadIdx.x];
}

KERNEL thread_pipeline(const float4* x, float4* y) {
    __shared__ float4 t[TILE];
    auto p = cuda::make_pipeline();
    p.producer_acquire();
    cuda::memcpy_async(&t[threadIdx.x], &x[threadIdx.x], cuda::aligned_size_t<16>(16), p);
    p.producer_commit();
    p.consumer_wait();
    y[threadIdx.x] = t[threadIdx.x];
    p.consumer_release();
}
KERNEL group_copy(const float* x, float* y) {
    __shared__ alignas(16) float t[TILE];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, t, x, sizeof t);
    cg::wait(block);
    y[threadIdx.x] = t[TILE - 1 - threadIdx.x];
}
#pragma nv_diag_suppress static_var_with_dynamic_init
KERNEL block_barrier(const float* x, float* y) {
    __shared__ float t[TILE];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    for (int k = 0; k < 3; k++) {
        t[threadIdx.x] = x[threadIdx.x] + k;
        bar.arrive_and_wait();
        y[threadIdx.x] = t[TILE - 1 - threadIdx.x];
        bar.arrive_and_wait();
    }
}
KERNEL barrier_copy(const float* x, float* y) {  // a bulk copy on compute capability 9.0
    __shared__ alignas(16) float t[TILE];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    auto block = cg::this_thread_block();
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(block, t, x, cuda::aligned_size_t<16>(sizeof t), bar);
    bar.arrive_and_wait();
    y[threadIdx.x] = t[TILE - 1 - threadIdx.x];
}
KERNEL block_pipeline(const float* x, float* y) {
    __shared__ alignas(16) float t[2][TILE];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto p = cuda::make_pipeline(block, &state);
    float sum = 0;
    for (int k = 0; k < 4; k++) {
        p.producer_acquire();
        cuda::memcpy_async(block, t[k & 1], x + TILE * k, cuda::aligned_size_t<16>(sizeof t[0]), p);
        p.producer_commit();
        p.consumer_wait();
        sum += t[k & 1][TILE - 1 - threadIdx.x];
        p.consumer_release();
    }
    y[threadIdx.x] = sum;
}

KERNEL specialised(const float* x, float* y, int tiles) {  // warp 1 produces, warp 0 consumes
    __shared__ float t[2][32];
    __shared__ mbarrier full[2], empty[2];
    unsigned f = shared_address(full), e = shared_address(empty);
    if (threadIdx.x == 0) for (int k = 0; k < 2; k++) { init(f + 8 * k, 32); init(e + 8 * k, 32); }
    __syncthreads();
    int lane = threadIdx.x % 32;
    for (int k = 0; k < tiles; k++) {
        int slot = k & 1, round = k / 2 & 1;
        if (threadIdx.x < 32) {
            wait(f + 8 * slot, round);
            y[32 * k + lane] = t[slot][31 - lane];
            arrive(e + 8 * slot);
        } else {
            wait(e + 8 * slot, round ^ 1);
            t[slot][lane] = x[32 * k + lane];
            arrive(f + 8 * slot);
        }
    }
}
KERNEL copies_arrive(const float* x, float* y) {  // cp.async.mbarrier.arrive.noinc
    __shared__ float t[TILE];
    __shared__ mbarrier bar;
    unsigned b = shared_address(&bar);
    if (threadIdx.x == 0) init(b, TILE);
    __syncthreads();
    __pipeline_memcpy_async(&t[threadIdx.x], &x[threadIdx.x], 4);
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(b) : "memory");
    wait(b, 0);
    y[threadIdx.x] = t[TILE - 1 - threadIdx.x];
}
KERNEL bulk(const float* x, float* y, int tiles, int expected) {
    __shared__ alignas(128) float t[2][TILE];
    __shared__ mbarrier full[2];
    unsigned f = shared_address(full);
    if (threadIdx.x == 0) for (int k = 0; k < 2; k++) init(f + 8 * k, 1);
    __syncthreads();
    auto fetch = [&](int k) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(f + 8 * (k & 1)), "r"(expected));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                     :: "r"(shared_address(t[k & 1])), "l"(x + TILE * k), "r"(f + 8 * (k & 1)) : "memory");
    };
    if (threadIdx.x == 0) fetch(0);
    for (int k = 0; k < tiles; k++) {
        if (threadIdx.x == 0 && k + 1 < tiles) fetch(k + 1);
        wait(f + 8 * (k & 1), k / 2 & 1);
        y[TILE * k + threadIdx.x] = t[k & 1][TILE - 1 - threadIdx.x];
        __syncthreads();
    }
}
KERNEL bulk_back(const float* x, float* y) {  // shared to global
    __shared__ alignas(128) float t[TILE];
    t[threadIdx.x] = 2 * x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"
                     :: "l"(y), "r"(shared_address(t)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}
__device__ void send(float* y, const float* t) {
    unsigned p = shared_address(t);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" :: "l"(y), "r"(p) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
template <int PRIOR, bool LAST>  // groups still to be read when their buffer is written again
__device__ void send_tiles(const float* x, float* y, int tiles) {
    __shared__ alignas(128) float t[2][TILE];
    for (int k = 0; k < tiles; k++) {
        if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(PRIOR) : "memory");
        __syncthreads();
        t[k & 1][threadIdx.x] = 2 * x[TILE * k + threadIdx.x];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) send(y + TILE * k, t[k & 1]);
    }
    if (LAST && threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
KERNEL send_waiting(const float* x, float* y, int tiles) { send_tiles<1, true>(x, y, tiles); }
KERNEL send_too_soon(const float* x, float* y, int tiles) { send_tiles<2, true>(x, y, tiles); }
KERNEL send_and_leave(const float* x, float* y, int tiles) { send_tiles<1, false>(x, y, tiles); }
KERNEL read_is_not_written(const float* x, volatile float* y, int tiles) {
    __shared__ alignas(128) float t[TILE];
    t[threadIdx.x] = x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x) return;
    send((float*)y, t);
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    float before = y[0];
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    y[1] = before;
    y[2] = y[0];
}
KERNEL counts(const char* x, int what) {
    __shared__ alignas(128) char t[256];
    __shared__ mbarrier bar;
    unsigned b = shared_address(&bar), to = shared_address(t) + (what == 4 ? 8 : 0);
    if (threadIdx.x) return;
    init(b, what == 0 ? 0 : 1);
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(b), "r"(what == 1 ? 1 << 20 : 64));
    if (what == 2) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" :: "r"(b), "r"(0) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(x + (what == 3 ? 8 : 0)), "r"(what == 5 ? 24 : 64), "r"(b) : "memory");
    arrive(b);
    wait(b, 0);
}
// One thread and one mbarrier, step by step: what each instruction says of its phase.
#define ARRIVE(what, more) asm volatile("mbarrier." what ".shared::cta.b64 %0, [%1]" more ";" : "=l"(state) : "r"(b));
#define PENDING asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(v) : "l"(state)); *out++ = v;
#define TEST(what, from, kind)                                                                                     \
    asm volatile("{\n.reg .pred p;\nmbarrier." what ".shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"       \
                 : "=r"(v) : "r"(b), kind(from) : "memory"); *out++ = v;
KERNEL phases(unsigned* out, int after) {
    __shared__ mbarrier bar;
    unsigned b = shared_address(&bar), v;
    unsigned long long state, first;
    init(b, 3);
    ARRIVE("arrive", "") PENDING
    first = state;
    TEST("test_wait", first, "l")
    ARRIVE("arrive.noComplete.release.cta", ", 1") PENDING
    TEST("try_wait.parity", 0, "r") TEST("try_wait.parity", 1, "r")
    ARRIVE("arrive", "") PENDING
    TEST("test_wait", first, "l") TEST("test_wait.parity", 0, "r") TEST("test_wait.parity", 1, "r")
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 64;" :: "r"(b) : "memory");  // second phase
    ARRIVE("arrive", ", 2") ARRIVE("arrive_drop", "") PENDING
    TEST("test_wait.parity", 1, "r")
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 48;" :: "r"(b) : "memory");
    TEST("test_wait.parity", 1, "r")
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "r"(b) : "memory");
    TEST("test_wait.parity", 1, "r")
    ARRIVE("arrive", "") PENDING  // the third, of two arrivals
    ARRIVE("arrive", "") PENDING
    TEST("test_wait.parity", 0, "r")
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(b) : "memory");
    if (after == 1) arrive(b);
    if (after == 3) { init(b, 2); arrive(b); ARRIVE("arrive", ", 2") }
    if (after == 2) { init(b, 1); arrive(b); TEST("test_wait.parity", 0, "r") }
}
KERNEL unfenced(const float* x, float* y, int where) {  // 1: a fence at the wrong place, 2: after the barrier
    __shared__ alignas(128) float t[TILE];
    t[threadIdx.x] = 3 * x[threadIdx.x];
    if (where == 1 && threadIdx.x == 0) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x) return;
    if (where == 2) asm volatile("fence.proxy.async;" ::: "memory");
    send(y, t);
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
KERNEL overwritten_by_tma(const float* x, float* y, int fenced) {
    __shared__ alignas(128) float t[TILE];
    __shared__ mbarrier full;
    unsigned f = shared_address(&full);
    t[threadIdx.x] = -1;
    if (threadIdx.x == 0) init(f, 1);
    if (fenced) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(f));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                     :: "r"(shared_address(t)), "l"(x), "r"(f) : "memory");
    }
    wait(f, 0);
    y[threadIdx.x] = t[threadIdx.x];
}
// Thread 0, or 32, initialises, expects and copies; what comes before the others wait or arrive?
template <int FIRST, bool MEET, bool ARRIVE>
__device__ void started(const float* x, float* y) {
    __shared__ alignas(128) float t[TILE];
    __shared__ mbarrier full;
    unsigned f = shared_address(&full);
    if (threadIdx.x == FIRST) {
        init(f, ARRIVE ? TILE : 1);
        if (!ARRIVE) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(f));
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                         :: "r"(shared_address(t)), "l"(x), "r"(f) : "memory");
        }
    }
    if (MEET) __syncthreads();
    if (ARRIVE) arrive(f);
    wait(f, 0);
    y[threadIdx.x] = ARRIVE ? 1 : t[threadIdx.x];
}
KERNEL start_and_copy(const float* x, float* y) { started<0, true, false>(x, y); }
KERNEL start_and_arrive(const float* x, float* y) { started<32, true, true>(x, y); }
KERNEL copy_at_once(const float* x, float* y) { started<0, false, false>(x, y); }
KERNEL copy_at_once_by_warp_1(const float* x, float* y) { started<32, false, false>(x, y); }
KERNEL arrive_at_once(const float* x, float* y) { started<0, false, true>(x, y); }
// What lies between mbarrier.init and the copy that reports to it? 1: fence.mbarrier_init; 2: fence.proxy.async by that
// thread; 3: by the one that copies, after a barrier; 4, too early; 5, by another.
KERNEL fenced(const float* x, float* y, int how) {
    __shared__ alignas(128) float t[TILE];
    __shared__ mbarrier full;
    unsigned f = shared_address(&full);
    if (how == 4) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (threadIdx.x == 0) {
        init(f, 1);
        if (how == 1) asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (how == 2 && threadIdx.x == 0 || how == 5 && threadIdx.x == 1)
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 32) {
        if (how == 3) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(f));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                     :: "r"(shared_address(t)), "l"(x), "r"(f) : "memory");
    }
    wait(f, 0);
    y[threadIdx.x] = t[threadIdx.x];
}
KERNEL not_initialised(float* y) {
    __shared__ mbarrier bar;
    arrive(shared_address(&bar));
    y[threadIdx.x] = 1;
}
KERNEL one_too_few(float* y) {
    __shared__ mbarrier bar;
    unsigned b = shared_address(&bar);
    if (threadIdx.x == 0) init(b, 33);
    __syncthreads();
    arrive(b);
    wait(b, 0);
    y[threadIdx.x] = 1;
}
KERNEL tensor_map(const float* map) {
    __shared__ alignas(128) float t[TILE];
    __shared__ mbarrier bar;
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
                 :: "r"(shared_address(t)), "l"(map), "r"(0), "r"(shared_address(&bar)) : "memory");
}
"""
TILE = 64


def run(name, grid, block, *args, **options):
    return simulate(CudaSource(SOURCE, name), grid, block, args, **options)


def numbers(n: int) -> np.ndarray:
    return np.arange(1, n + 1, dtype=np.float32)


def reversed_tiles(x: np.ndarray, tile: int) -> np.ndarray:
    return x.reshape(-1, tile)[:, ::-1].reshape(-1)


# -- cp.async ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tiles", [1, 2, 5])
def test_double_buffered_tiles(tiles):
    blocks = 3
    x, y = numbers(blocks * tiles * TILE), np.zeros(blocks * TILE, np.float32)
    profile = run("with_wait", blocks, TILE, x, y, np.int32(tiles))
    want = x.reshape(blocks, tiles, TILE).sum(axis=1)[:, ::-1]
    assert y.tolist() == want.reshape(-1).tolist()
    # Sixteen lanes of one warp copy 16 bytes each.
    assert profile.counts.global_load_requests == blocks * tiles
    assert profile.counts.global_load_sectors == blocks * tiles * TILE * 4 // 32
    # ncu counts the writing side by itself; half a warp takes two wavefronts for 16 bytes per lane.
    assert profile.counts.shared_store_requests == 0
    assert profile.counts.shared_copy_requests == blocks * tiles
    assert profile.counts.shared_copy_wavefronts == 2 * blocks * tiles


def test_a_missing_wait_is_caught_in_the_second_round_too():
    x, y = numbers(4 * TILE), np.zeros(TILE, np.float32)
    run("without_wait", 1, TILE, x[:TILE], y, np.int32(1))
    with pytest.raises(simulator.UninitializedRead, match=r"is still being copied \(line \d+\)") as caught:
        run("without_wait", 1, TILE, x, y, np.int32(4))
    assert "wait" in caught.value.reason
    assert "sum +=" in caught.value.source


def test_a_missing_wait_shows_in_the_results_without_checks():
    x, y = numbers(4 * TILE), np.zeros(TILE, np.float32)
    run("without_wait", 1, TILE, x, y, np.int32(4), checks=False)
    assert (y != x.reshape(4, TILE).sum(axis=0)[::-1]).all()


@pytest.mark.parametrize("sources", [16, 12, 6, 3, 0])
def test_widths_and_zero_fill(sources):
    x, y = np.arange(896).astype(np.int8), np.full(896, 99, np.int8)
    profile = run("widths", 1, 32, x, y, np.int32(sources))
    want = x.copy()
    for start, end, width in ((0, 128, 4), (128, 384, 8), (384, 896, 16)):
        want[start:end].reshape(-1, width)[:, sources:] = 0
    assert y.tolist() == want.tolist()
    assert (profile.counts.global_load_requests, profile.counts.global_load_sectors) == ((3, 28) if sources else (0, 0))


def test_a_source_of_no_bytes_is_not_read():
    n = 40
    y = np.zeros(TILE, np.float32)
    run("guarded_tail", 1, TILE, numbers(n), y, np.int32(n))
    assert y.tolist() == [*range(1, n + 1), *[0] * (TILE - n)]


@pytest.mark.parametrize("most", [0, 1, 3])
def test_groups(most):
    x, y = numbers(128), np.zeros(32, np.float32)
    run("groups", 1, 32, x, y, np.int32(most))
    groups = x.reshape(4, 32)
    assert y.tolist() == sum(groups[k] for k in {0: (0, 2, 3), 1: (0, 2), 3: (0,)}[most]).tolist()


def test_a_later_group_is_not_there_yet():
    with pytest.raises(simulator.UninitializedRead, match="still being copied"):
        run("too_late", 1, 32, numbers(128), np.zeros(32, np.float32))


def test_the_copies_of_others_need_a_barrier():
    with pytest.raises(simulator.DataRace, match="shared memory"):
        run("no_barrier", 1, TILE, numbers(TILE), np.zeros(TILE, np.float32))


def test_copies_are_checked():
    with pytest.raises(simulator.IllegalAddress, match="4 bytes past the end of an array"):
        run("outside", 1, TILE, numbers(TILE), np.zeros(TILE, np.float32))


# -- what CUDA C++ makes of them ---------------------------------------------------------------------------------------


def test_pipeline_of_a_thread():
    x, y = numbers(4 * TILE), np.zeros(4 * TILE, np.float32)
    run("thread_pipeline", 1, TILE, x, y)
    assert y.tolist() == x.tolist()


@pytest.mark.parametrize("name", ["group_copy", "barrier_copy", "copies_arrive"])
def test_copies_by_a_block(name):
    x, y = numbers(TILE), np.zeros(TILE, np.float32)
    run(name, 2, TILE, x, y)
    assert y.tolist() == x[::-1].tolist()


def test_barrier_of_a_block():
    x, y = numbers(TILE), np.zeros(TILE, np.float32)
    run("block_barrier", 1, TILE, x, y)
    assert y.tolist() == (x[::-1] + 2).tolist()


def test_pipeline_of_a_block():
    x, y = numbers(4 * TILE), np.zeros(TILE, np.float32)
    run("block_pipeline", 1, TILE, x, y)
    assert y.tolist() == x.reshape(4, TILE).sum(axis=0)[::-1].tolist()


# -- mbarrier ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tiles", [1, 2, 7])
def test_producer_and_consumer(tiles):
    x, y = numbers(32 * tiles), np.zeros(32 * tiles, np.float32)
    run("specialised", 1, 64, x, y, np.int32(tiles))
    assert y.tolist() == reversed_tiles(x, 32).tolist()


@pytest.mark.parametrize("tiles", [1, 2, 5])
def test_bulk_copies(tiles):
    x, y = numbers(TILE * tiles), np.zeros(TILE * tiles, np.float32)
    run("bulk", 1, TILE, x, y, np.int32(tiles), np.int32(256))
    assert y.tolist() == reversed_tiles(x, TILE).tolist()


def test_bulk_copy_to_global_memory():
    x, y = numbers(TILE), np.zeros(TILE, np.float32)
    run("bulk_back", 1, TILE, x, y)
    assert y.tolist() == (2 * x).tolist()


def test_tiles_sent_from_two_buffers():
    x, y = numbers(5 * TILE), np.zeros(5 * TILE, np.float32)
    run("send_waiting", 1, TILE, x, y, np.int32(5))
    assert y.tolist() == (2 * x).tolist()
    x, y = numbers(TILE), np.zeros(TILE, np.float32)
    run("read_is_not_written", 1, TILE, x, y, np.int32(1))
    assert y.tolist() == [1, 0, 1, *x[3:].tolist()]


def test_a_buffer_must_have_been_read_before_it_is_written_again():
    x, y = numbers(5 * TILE), np.zeros(5 * TILE, np.float32)
    with pytest.raises(simulator.SimulatorError, match="written while a bulk copy still had to read it") as caught:
        run("send_too_soon", 1, TILE, x, y, np.int32(5))
    assert "bulk.global.shared" in caught.value.source
    assert caught.value.array == "t"
    run("send_too_soon", 1, TILE, x, y, np.int32(5), checks=False)
    assert y.reshape(5, TILE).tolist() == (2 * x).reshape(5, TILE)[[2, 3, 4, 3, 4]].tolist()


def test_a_block_must_not_leave_its_copies_behind():
    x, y = numbers(TILE), np.zeros(TILE, np.float32)
    with pytest.raises(simulator.SimulatorError, match="may still read its shared memory"):
        run("send_and_leave", 1, TILE, x, y, np.int32(1))
    run("send_and_leave", 1, TILE, x, y, np.int32(1), checks=False)
    assert y.tolist() == (2 * x).tolist()


def test_bytes_that_never_come():
    x, y = numbers(TILE), np.zeros(TILE, np.float32)
    with pytest.raises(simulator.DivergentBarrier, match="wait for ever at an mbarrier: 16 bytes"):
        run("bulk", 1, TILE, x, y, np.int32(1), np.int32(272))
    with pytest.raises(simulator.DivergentBarrier, match="wait for ever at an mbarrier: 128 bytes too many have come"):
        run("bulk", 1, TILE, x, y, np.int32(1), np.int32(128))


def test_arrivals_that_never_come():
    with pytest.raises(simulator.DivergentBarrier, match="wait for ever at an mbarrier: 1 arrivals") as caught:
        run("one_too_few", 1, 32, np.zeros(32, np.float32))
    assert caught.value.line is not None


def test_an_mbarrier_must_be_initialised():
    with pytest.raises(simulator.UninitializedRead, match="not initialised"):
        run("not_initialised", 1, 32, np.zeros(32, np.float32))


@pytest.mark.parametrize("name", ["copy_at_once", "copy_at_once_by_warp_1", "arrive_at_once"])
def test_an_mbarrier_is_initialised_before_others_use_it(name):
    x, y = numbers(TILE), np.zeros(TILE, np.float32)
    with pytest.raises(simulator.DataRace, match=r"uses .* `full`\), which thread .* initialised at line") as caught:
        run(name, 1, TILE, x, y)
    assert "mbarrier.init" in SOURCE.splitlines()[caught.value.other_line - 1]
    assert "a __syncthreads() must follow" in caught.value.reason
    run("start_and_copy", 1, TILE, x, y)
    assert y.tolist() == x.tolist()
    run("start_and_arrive", 1, TILE, x, y)
    assert y.all()


def test_a_copy_by_tma_over_an_ordinary_store():
    x, y = numbers(TILE), np.zeros(TILE, np.float32)
    run("overwritten_by_tma", 1, TILE, x, y, np.int32(1))
    assert y.tolist() == x.tolist()
    with pytest.raises(simulator.MissingProxyFence, match=r"writes over byte 0 .* \(element 0 of `t`\)") as caught:
        run("overwritten_by_tma", 1, TILE, x, y, np.int32(0))
    assert "t[threadIdx.x] = -1" in SOURCE.splitlines()[caught.value.other_line - 1]


@pytest.mark.parametrize("how", range(6))
def test_an_mbarrier_that_tma_may_not_see(how):
    """Only if asked for: libcu++ and Triton leave the fence out."""
    x, y = numbers(TILE), np.zeros(TILE, np.float32)
    run("fenced", 1, TILE, x, y, np.int32(how))
    assert y.tolist() == x.tolist()
    if how in (1, 2, 3):
        run("fenced", 1, TILE, x, y, np.int32(how), fenced_barriers=True)
        return
    with pytest.raises(simulator.MissingProxyFence, match=r"reports to .* `full`\), which thread .* init") as caught:
        run("fenced", 1, TILE, x, y, np.int32(how), fenced_barriers=True)
    assert "mbarrier.init" in SOURCE.splitlines()[caught.value.other_line - 1]


def test_phases_of_an_mbarrier():
    out = np.full(20, 9, np.uint32)
    run("phases", 1, 1, out, np.int32(2))
    first = [3, 0, 2, 0, 1, 1, 1, 1, 0]  # of a new mbarrier, the phase of parity 1 counts as over
    second = [1, 0, 0, 1]
    third = [2, 1, 1]
    assert out.tolist() == [*first, *second, *third, 1, 9, 9, 9]
    with pytest.raises(simulator.UninitializedRead, match="not initialised"):
        run("phases", 1, 1, out, np.int32(1))
    with pytest.raises(simulator.SimulatorError, match="more arrivals at an mbarrier than it expects"):
        run("phases", 1, 1, out, np.int32(3))


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        (0, simulator.SimulatorError, r"`mbarrier\.init.*` with a count of 0"),
        (1, simulator.SimulatorError, "1,048,576 bytes are announced at an mbarrier"),
        (2, simulator.SimulatorError, r"`mbarrier\.arrive.*` with a count of 0"),
        (3, simulator.MisalignedAddress, "a load of 16 bytes at 0x"),
        (4, simulator.MisalignedAddress, r"a store of 16 bytes at byte 8 of shared memory"),
        (5, simulator.MisalignedAddress, r"cp\.async\.bulk of 24 bytes"),
    ],
)
def test_counts_and_addresses_that_do_not_fit(what, error, message):
    with pytest.raises(error, match=message):
        run("counts", 1, 32, np.zeros(256, np.int8), np.int32(what))
    run("counts", 1, 32, np.zeros(256, np.int8), np.int32(9))


def test_what_is_no_tensor_map_is_refused():
    with pytest.raises(simulator.SimulatorError, match="there is no tensor map at 0x") as caught:
        run("tensor_map", 1, 32, numbers(64))
    assert "__grid_constant__" in caught.value.reason


def test_a_store_that_tma_does_not_see_yet():
    """An ordinary store, a barrier, and no fence.proxy.async before TMA reads what was stored."""
    x, y = numbers(TILE), np.zeros(TILE, np.float32)
    with pytest.raises(
        simulator.MissingProxyFence, match=r"`cp\.async\.bulk.*reads byte 0 .* \(element 0 of `t`\)"
    ) as caught:
        run("unfenced", 1, TILE, x, y, np.int32(0))
    assert "t[threadIdx.x] = 3" in SOURCE.splitlines()[caught.value.other_line - 1]
    assert caught.value.other_thread == ((0, 0, 0), (3, 0, 0))
    with pytest.raises(simulator.MissingProxyFence):  # of the thread that copies, before the barrier
        run("unfenced", 1, TILE, x, y, np.int32(1))
    run("unfenced", 1, TILE, x, y, np.int32(2))
    assert y.tolist() == (3 * x).tolist()
    run("unfenced", 1, TILE, x, y, np.int32(0), checks=False)
