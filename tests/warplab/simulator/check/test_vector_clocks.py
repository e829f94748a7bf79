"""Races between threads that something weaker than a barrier of the block orders: mbarriers, named barriers, flags.

Each mistake has a mended twin, which stays silent.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.race_twins import compare_races
from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = r"""
#include <cuda/atomic>
#define KERNEL extern "C" __global__ void
#define T threadIdx.x
#define ROUNDS 4
typedef unsigned long long mbarrier;

__device__ unsigned place(const void* p) { return __cvta_generic_to_shared(p); }
__device__ void start(mbarrier* bar, int count) {
    if (T == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(place(bar)), "r"(count) : "memory");
    __syncthreads();
}
__device__ void arrive(mbarrier* bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(place(bar)) : "memory");
}
__device__ void wait(mbarrier* bar, int parity) {
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra DONE;\nbra AGAIN;\nDONE:\n}" :: "r"(place(bar)), "r"(parity) : "memory");
}

// Warp 0 writes for warp 1, round after round.
template <bool FULL, bool EMPTY, bool JOIN, bool ONE = true>
__device__ void produce_and_consume(const int* x, int* y) {
    __shared__ int s[32];
    __shared__ mbarrier full, empty;
    start(&full, ONE ? 1 : 32);
    start(&empty, 32);
    for (int k = 0; k < ROUNDS; k++) {
        if (T < 32) {
            if (EMPTY) wait(&empty, k & 1 ^ 1);
            s[T] = x[32 * k + T];
            if (JOIN) __syncwarp();
            if (!ONE || T == 0) arrive(&full);
        } else {
            if (FULL) wait(&full, k & 1);
            y[32 * k + T - 32] = s[63 - T];
            arrive(&empty);
        }
    }
}
KERNEL pipe(const int* x, int* y) { produce_and_consume<true, true, true>(x, y); }
KERNEL all_arrive(const int* x, int* y) { produce_and_consume<true, true, false, false>(x, y); }
KERNEL no_wait_for_full(const int* x, int* y) { produce_and_consume<false, true, true>(x, y); }
KERNEL no_wait_for_empty(const int* x, int* y) { produce_and_consume<true, false, true>(x, y); }
KERNEL elected_without_syncwarp(const int* x, int* y) { produce_and_consume<true, true, false>(x, y); }

template <bool WAIT> __device__ void third_warp(int* y) {  // warps 0 and 1 know of each other, warp 2 does not
    __shared__ int s[64];
    __shared__ mbarrier bar;
    start(&bar, 64);
    if (T < 64) { s[T] = T; arrive(&bar); wait(&bar, 0); y[T] = s[63 - T]; }
    else { if (WAIT) wait(&bar, 0); y[T] = s[T - 64]; }
}
KERNEL third_waits(int* y) { third_warp<true>(y); }
KERNEL third_does_not(int* y) { third_warp<false>(y); }

template <bool JOIN> __device__ void one_waits(int* y) {  // for its warp
    __shared__ int s[32];
    __shared__ mbarrier bar;
    start(&bar, 32);
    if (T < 32) { s[T] = T; arrive(&bar); }
    else { if (T == 32) wait(&bar, 0); if (JOIN) __syncwarp(); y[T - 32] = s[63 - T]; }
}

template <bool EARLY> __device__ void twice_read(int* y) {  // by two warps, of which each must have read both times
    __shared__ int s[32];
    __shared__ mbarrier full, empty;
    start(&full, 32);
    start(&empty, 64);
    for (int k = 0; k < ROUNDS; k++) {
        if (T < 32) { wait(&empty, k & 1 ^ 1); s[T] = k + T; arrive(&full); continue; }
        wait(&full, k & 1);
        y[T - 32] = s[31 - T % 32];
        if (EARLY) arrive(&empty);
        asm volatile("" ::: "memory");
        y[T - 32] += s[31 - T % 32];
        if (!EARLY) arrive(&empty);
    }
}
KERNEL released_when_read(int* y) { twice_read<false>(y); }
KERNEL released_too_early(int* y) { twice_read<true>(y); }
KERNEL one_waits_for_its_warp(int* y) { one_waits<true>(y); }
KERNEL one_waits_alone(int* y) { one_waits<false>(y); }

template <int WARPS> __device__ void named(int* y) {
    __shared__ int s[96];
    s[T] = T;
    if (T < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
    y[T] = T < 64 ? s[(T + 32 * (WARPS - 1)) % (32 * WARPS)] : 0;
}
KERNEL two_of_three(int* y) { named<2>(y); }
KERNEL with_the_third(int* y) { named<3>(y); }

template <bool AFTER> __device__ void arrive_only(int* y) {
    __shared__ int s[32];
    if (T < 32) {
        if (!AFTER) s[T] = T;
        asm volatile("bar.arrive 1, 64;" ::: "memory");
        if (AFTER) s[T] = T;
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        y[T - 32] = s[63 - T];
    }
}
KERNEL before_it_arrives(int* y) { arrive_only<false>(y); }
KERNEL after_it_arrives(int* y) { arrive_only<true>(y); }

template <class F, class G> __device__ void message(int* y, F give, G take) {
    __shared__ int s, flag;
    if (T == 0) s = flag = 0;
    __syncthreads();
    if (T == 32) { s = 7; give(&flag); }
    if (T == 0) { while (take(&flag) == 0) { } y[0] = s; }
}
typedef cuda::atomic_ref<int, cuda::thread_scope_block> Ref;
using namespace cuda::std;
KERNEL released(int* y) {
    message(y, [](int* f) { Ref(*f).store(1, memory_order_release); },
            [](int* f) { return Ref(*f).load(memory_order_acquire); });
}
KERNEL only_relaxed(int* y) {
    message(y, [](int* f) { Ref(*f).store(1, memory_order_relaxed); },
            [](int* f) { return Ref(*f).load(memory_order_relaxed); });
}
KERNEL fenced(int* y) {
    message(y, [](int* f) { __threadfence_block(); atomicExch(f, 1); }, [](int* f) { return atomicAdd(f, 0); });
}
template <bool JOINED> __device__ void warp_to_warp(int* y) {  // each fences its own write, one tells of all
    __shared__ int s[32], flag;
    if (T == 0) flag = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = T;
        __threadfence_block();
        if (JOINED) __syncwarp();
        if (T == 0) atomicExch(&flag, 1);
    } else {
        while (atomicAdd(&flag, 0) == 0) { }
        y[T - 32] = s[63 - T];
    }
}
KERNEL fenced_and_joined(int* y) { warp_to_warp<true>(y); }
KERNEL fenced_alone(int* y) { warp_to_warp<false>(y); }
KERNEL fenced_too_early(int* y) {
    __threadfence_block();
    message(y, [](int* f) { atomicExch(f, 1); }, [](int* f) { return atomicAdd(f, 0); });
}
KERNEL global_flag(int* y) {  // y[1] is the flag
    if (T == 32) { y[2] = 7; Ref(y[1]).store(1, memory_order_release); }
    if (T == 0) { while (Ref(y[1]).load(memory_order_acquire) == 0) { } y[0] = y[2]; }
}
"""
BARRIERS = r"""
#include <cuda/barrier>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
#define KERNEL extern "C" __global__ void
#define T threadIdx.x
KERNEL tiles_of_64(int* y) {
    __shared__ cg::block_tile_memory<128> memory;
    auto tile = cg::tiled_partition<64>(cg::this_thread_block(memory));
    y[T] = cg::reduce(tile, y[T], cg::plus<int>());
    y[T] += tile.shfl(y[T], 3) + tile.any(y[T] < 0);
}
#pragma nv_diag_suppress static_var_with_dynamic_init
KERNEL block_barrier(int* y) {
    __shared__ int s[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    if (T == 0) init(&bar, 64);
    __syncthreads();
    for (int k = 0; k < 3; k++) {
        s[T] = T + k;
        bar.arrive_and_wait();
        y[T] = s[63 - T];
        bar.arrive_and_wait();
    }
}
"""


@pytest.fixture(autouse=True)
def by_code(monkeypatch):
    return compare_races(monkeypatch)


def run(name, threads, *args, code: str = SOURCE, options: tuple[str, ...] = ()):
    simulate(CudaSource(code, name, options), 1, threads, args)
    return args[-1]


def ints(n: int) -> np.ndarray:
    return np.zeros(n, "i4")


@pytest.mark.parametrize("name", ["pipe", "all_arrive"])
def test_a_pipeline_is_in_order(name, by_code):
    x = np.arange(128, dtype="i4")
    assert run(name, 64, x, ints(128)).tolist() == x.reshape(4, 32)[:, ::-1].reshape(-1).tolist()
    assert sum(by_code) > len(by_code) // 2


@pytest.mark.parametrize(
    ("name", "line", "other"),
    [
        ("no_wait_for_full", "y[32 * k", "s[T] = x["),
        ("no_wait_for_empty", "s[T] = x[", "y[32 * k"),
        ("elected_without_syncwarp", "y[32 * k", "s[T] = x["),
    ],
)
def test_what_a_pipeline_may_lack(name, line, other):
    """The order in which the simulator runs the threads may hide it or not."""
    with pytest.raises(simulator.DataRace, match="shared memory") as caught:
        run(name, 64, np.arange(128, dtype="i4"), ints(128))
    lines = SOURCE.splitlines()
    seen = {lines[caught.value.line - 1].strip()[:8], lines[caught.value.other_line - 1].strip()[:8]}
    assert seen == {line[:8], other[:8]}


@pytest.mark.parametrize(
    ("mended", "wrong", "threads", "want"),
    [
        ("third_waits", "third_does_not", 96, [*range(63, -1, -1), *range(32)]),
        ("one_waits_for_its_warp", "one_waits_alone", 64, range(31, -1, -1)),
        ("two_of_three", "with_the_third", 96, [*range(32, 64), *range(32), *[0] * 32]),
        ("before_it_arrives", "after_it_arrives", 64, range(31, -1, -1)),
        ("released_when_read", "released_too_early", 96, 2 * [*range(68, 4, -2)]),
        ("released", "only_relaxed", 64, [7]),
        ("fenced", "fenced_too_early", 64, [7]),
        ("fenced_and_joined", "fenced_alone", 64, range(31, -1, -1)),
    ],
)
def test_who_is_ordered_and_who_is_not(mended, wrong, threads, want):
    want = list(want)
    assert run(mended, threads, ints(len(want))).tolist() == want
    with pytest.raises(simulator.DataRace, match="shared memory"):
        run(wrong, threads, ints(len(want)))


def test_a_release_publishes_in_global_memory():
    assert run("global_flag", 64, ints(4)).tolist() == [7, 1, 7, 0]


@pytest.mark.parametrize("options", [("-arch=compute_75",), ()])
def test_barriers_made_of_atomics(options):
    """Before compute capability 8.0 cuda::barrier is atomic operations; groups of two warps always are."""
    y = run("tiles_of_64", 128, np.arange(128, dtype="i4"), code=BARRIERS, options=options)
    total = np.arange(128).reshape(2, 64).sum(axis=1)
    assert y.tolist() == np.repeat(2 * total, 64).tolist()
    assert run("block_barrier", 64, ints(64), code=BARRIERS, options=options).tolist() == [65 - k for k in range(64)]
