"""Clusters of thread blocks: who is where, barriers, shared memory and mbarriers of other blocks; what is checked."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.race_twins import compare_races
from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define KERNEL(x, y, z) extern "C" __global__ void __cluster_dims__(x, y, z)
typedef unsigned long long mbarrier;

__device__ unsigned shared_address(const void *p) { return __cvta_generic_to_shared(p); }
__device__ unsigned there(unsigned address, unsigned rank) {
    unsigned found;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(found) : "r"(address), "r"(rank));
    return found;
}
__device__ void init(unsigned bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void arrive(unsigned bar) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(bar) : "memory");
}
__device__ void wait(unsigned bar, int parity) {
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra DONE;\nbra AGAIN;\nDONE:\n}" :: "r"(bar), "r"(parity) : "memory");
}
#define REGISTER(k, name) asm volatile("mov.u32 %0, %%" name ";" : "=r"(v)); mine[k] = v;

__device__ void registers(unsigned *out) {
    unsigned v, *mine = out + 16 * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    REGISTER(0, "cluster_ctarank") REGISTER(1, "cluster_nctarank")
    REGISTER(2, "cluster_ctaid.x") REGISTER(3, "cluster_ctaid.y") REGISTER(4, "cluster_ctaid.z")
    REGISTER(5, "cluster_nctaid.x") REGISTER(6, "cluster_nctaid.y") REGISTER(7, "cluster_nctaid.z")
    REGISTER(8, "clusterid.x") REGISTER(9, "clusterid.y") REGISTER(10, "clusterid.z")
    REGISTER(11, "nclusterid.x") REGISTER(12, "nclusterid.y") REGISTER(13, "nclusterid.z")
    asm volatile("{\n.reg .pred p;\nmov.pred p, %%is_explicit_cluster;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(v));
    mine[14] = v;
}
KERNEL(2, 2, 1) where(unsigned *out) { registers(out); }
extern "C" __global__ void as_launched(unsigned *out) { registers(out); }

KERNEL(4, 1, 1) rotate(const int *x, int *y) {  // each block takes what the next one has loaded
    __shared__ int s[64];
    auto cluster = cg::this_cluster();
    int i = threadIdx.x, place = blockIdx.x * 64 + i;
    s[i] = x[place];
    cluster.sync();
    y[place] = cluster.map_shared_rank(s, (cluster.block_rank() + 1) % 4)[63 - i];
    cluster.sync();
}
template <bool BEGIN, bool END>
__device__ void push(const int *x, int *y) {  // the same with a store to the other block
    __shared__ int s[64];
    auto cluster = cg::this_cluster();
    int i = threadIdx.x, place = blockIdx.x * 64 + i, next = cluster.block_rank() ^ 1;
    if (BEGIN) cluster.sync();
    unsigned to = there(shared_address(s + i), next);
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(to), "r"(x[place]) : "memory");
    if (END) cluster.sync();
    y[place] = s[63 - i];
}
KERNEL(2, 1, 1) pushed(const int *x, int *y) { push<true, true>(x, y); }
KERNEL(2, 1, 1) pushed_without_a_barrier(const int *x, int *y) { push<true, false>(x, y); }
KERNEL(2, 1, 1) pushed_too_soon(const int *x, int *y) { push<false, true>(x, y); }
KERNEL(2, 1, 1) block_barrier_only(const int *x, int *y) {
    __shared__ int s[64];
    auto cluster = cg::this_cluster();
    s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    cluster.sync();
    int other = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[threadIdx.x];
    __syncthreads();
    s[threadIdx.x] = other;
    cluster.sync();
    y[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];
}
KERNEL(2, 1, 1) leaves_early(const int *x, int *y) {  // nobody waits at the end
    __shared__ int s[64];
    auto cluster = cg::this_cluster();
    s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    cluster.sync();
    y[blockIdx.x * 64 + threadIdx.x] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[threadIdx.x];
}
KERNEL(2, 1, 1) tally(int *y) {  // atomics, loads and stores by every kind of address
    __shared__ int sum, last;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) sum = 0, last = -1;
    cluster.sync();
    int rank = cluster.block_rank(), old;
    asm volatile("atom.add.shared::cluster.u32 %0, [%1], %2;" : "=r"(old) : "r"(there(shared_address(&sum), rank ^ 1)),
                 "r"(threadIdx.x + 1) : "memory");
    atomicMax(cluster.map_shared_rank(&last, rank ^ 1), (int)threadIdx.x + 100 * rank);
    cluster.sync();
    y[2 * blockIdx.x] = sum;
    y[2 * blockIdx.x + 1] = last;
}
#define ASK(k, space, address)                                                                                     \
    asm volatile("{\n.reg .pred p;\nisspacep." space " p, %1;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(v) : "l"(address)); \
    mine[k] = v;
KERNEL(2, 1, 1) kinds(unsigned *y) {
    __shared__ int s;
    auto cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), v;
    int *other = cluster.map_shared_rank(&s, rank ^ 1);
    unsigned *mine = y + 6 * blockIdx.x;
    ASK(0, "shared::cta", &s) ASK(1, "shared::cta", other) ASK(2, "shared::cluster", other) ASK(3, "shared::cluster", y)
    asm volatile("getctarank.u64 %0, %1;" : "=r"(v) : "l"(other)); mine[4] = v;
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(v) : "r"(shared_address(&s))); mine[5] = v;
    cluster.sync();
}
KERNEL(2, 1, 1) outside(int *y) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    auto cluster = cg::this_cluster();
    cluster.sync();
    y[threadIdx.x] = cluster.map_shared_rank(s, 1)[threadIdx.x + (cluster.block_rank() == 0)];
    cluster.sync();
}
KERNEL(2, 1, 1) wrong_window(int *y) {  // ld.shared reaches the own block only
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    cg::this_cluster().sync();
    int v;
    asm volatile("ld.shared::cta.u32 %0, [%1];" : "=r"(v) : "r"(there(shared_address(s + threadIdx.x), 1)) : "memory");
    y[blockIdx.x * 32 + threadIdx.x] = v;
    cg::this_cluster().sync();
}
KERNEL(2, 1, 1) rank_outside(int *y) {
    __shared__ int s;
    y[0] = there(shared_address(&s), 2);
}
// Block 1 produces, block 0 consumes: mbarriers on both sides.
template <bool WAIT>
__device__ void relay(const int *x, int *y, int tiles) {
    __shared__ int s[2][32];
    __shared__ mbarrier full[2], empty[2];
    auto cluster = cg::this_cluster();
    unsigned f = shared_address(full), e = shared_address(empty);
    int i = threadIdx.x, rank = cluster.block_rank();
    if (i == 0) for (int k = 0; k < 2; k++) { init(f + 8 * k, 32); init(e + 8 * k, 32); }
    cluster.sync();
    for (int k = 0; k < tiles; k++) {
        int slot = k & 1, round = k / 2 & 1;
        if (rank == 0) {
            wait(f + 8 * slot, round);
            y[32 * k + i] = s[slot][31 - i];
            arrive(there(e + 8 * slot, 1));
        } else {
            if (WAIT) wait(e + 8 * slot, round ^ 1);
            unsigned to = there(shared_address(&s[slot][i]), 0);
            asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(to), "r"(x[32 * k + i]) : "memory");
            arrive(there(f + 8 * slot, 0));
        }
    }
    cluster.sync();
}
KERNEL(2, 1, 1) relayed(const int *x, int *y, int tiles) { relay<true>(x, y, tiles); }
KERNEL(2, 1, 1) relayed_without_waiting(const int *x, int *y, int tiles) { relay<false>(x, y, tiles); }
// What a thread learns at an mbarrier, the others of its block learn at __syncthreads.
KERNEL(2, 1, 1) passed_on(const int *x, int *y) {
    __shared__ int s[64];
    __shared__ mbarrier full;
    auto cluster = cg::this_cluster();
    int i = threadIdx.x;
    if (i == 0) init(shared_address(&full), 1);
    cluster.sync();
    if (cluster.block_rank() == 1) {
        cluster.map_shared_rank(s, 0)[i] = x[i];
        __syncthreads();
        if (i == 0) arrive(there(shared_address(&full), 0));
    } else {
        if (i == 40) wait(shared_address(&full), 0);
        __syncthreads();
        y[i] = s[63 - i];
    }
    cluster.sync();
}
// Each thread sends to the other block with st.async, or adds there with red.async; an mbarrier there counts bytes.
template <bool ADD, bool WAIT>
__device__ void send(const unsigned *x, unsigned *y) {
    __shared__ alignas(16) unsigned s[128], sum[2];
    __shared__ mbarrier full;
    auto cluster = cg::this_cluster();
    unsigned f = shared_address(&full), other = cluster.block_rank() ^ 1;
    int i = threadIdx.x, base = blockIdx.x * 128;
    if (i == 0) {
        init(f, 1);
        sum[0] = sum[1] = 100;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" :: "r"(f) : "memory");
    }
    cluster.sync();
    if (ADD) {
        unsigned to = there(shared_address(sum + i % 2), other);
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
                     :: "r"(to), "r"(x[base + i]), "r"(there(f, other)));
    } else {
        unsigned to = there(shared_address(s + 2 * i), other);
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];"
                     :: "r"(to), "r"(x[base + 2 * i]), "r"(x[base + 2 * i + 1]), "r"(there(f, other)));
    }
    if (WAIT) wait(f, 0);
    if (ADD) y[base + i] = sum[i % 2];
    else y[base + 2 * i] = s[2 * i + 1], y[base + 2 * i + 1] = s[2 * i];
    cluster.sync();
}
KERNEL(2, 1, 1) sent(const unsigned *x, unsigned *y) { send<false, true>(x, y); }
KERNEL(2, 1, 1) sent_without_a_wait(const unsigned *x, unsigned *y) { send<false, false>(x, y); }
KERNEL(2, 1, 1) added(const unsigned *x, unsigned *y) { send<true, true>(x, y); }
template <bool ADD>
__device__ void copy_over(const int *x, int *y) {  // cp.async.bulk from block to block
    __shared__ alignas(128) int s[64], t[64];
    __shared__ mbarrier full;
    auto cluster = cg::this_cluster();
    unsigned f = shared_address(&full), other = cluster.block_rank() ^ 1;
    int i = threadIdx.x;
    s[i] = x[blockIdx.x * 64 + i];
    t[i] = 1000;
    if (i == 0) {
        init(f, 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(f) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    cluster.sync();
    unsigned to = there(shared_address(t), other), from = shared_address(s), bar = there(f, other);
    if (i == 0 && ADD)
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s32 "
                     "[%0], [%1], 256, [%2];" :: "r"(to), "r"(from), "r"(bar) : "memory");
    if (i == 0 && !ADD)
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                     :: "r"(to), "r"(from), "r"(bar) : "memory");
    wait(f, 0);
    y[blockIdx.x * 64 + i] = t[63 - i];
    cluster.sync();
}
KERNEL(2, 1, 1) copied_over(const int *x, int *y) { copy_over<false>(x, y); }
KERNEL(2, 1, 1) added_over(const int *x, int *y) { copy_over<true>(x, y); }
KERNEL(2, 1, 1) bulk_multicast(const int *x, int *y) {
    __shared__ alignas(128) int s[64];
    __shared__ mbarrier full;
    auto cluster = cg::this_cluster();
    unsigned f = shared_address(&full), rank = cluster.block_rank();
    int i = threadIdx.x;
    if (i == 0) {
        init(f, 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(f) : "memory");
    }
    cluster.sync();
    if (i == 0)  // half of it for both
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1], 128, [%2], %3;" :: "r"(shared_address(s + 32 * rank)), "l"(x + 32 * blockIdx.x),
                     "r"(f), "h"((unsigned short)3) : "memory");
    wait(f, 0);
    y[blockIdx.x * 64 + i] = s[i];
    cluster.sync();
}
KERNEL(2, 1, 1) waits_there() {
    __shared__ mbarrier bar;
    unsigned b = shared_address(&bar), rank = cg::this_cluster().block_rank();
    if (threadIdx.x == 0) init(b, 1);
    cg::this_cluster().sync();
    if (threadIdx.x == 0) arrive(b);
    cg::this_cluster().sync();
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.b64 p, [%0], 0;\n}"
                 :: "l"(cg::this_cluster().map_shared_rank(&bar, 1)) : "memory");
    cg::this_cluster().sync();
}
KERNEL(2, 1, 1) through_global(const int *x, int *y, int *z) {  // cluster.sync() orders global memory of its blocks
    auto cluster = cg::this_cluster();
    int i = threadIdx.x, rank = cluster.block_rank(), base = blockIdx.x * 64;
    y[base + i] = x[base + i];
    cluster.sync();
    z[base + i] = y[(blockIdx.x ^ 1) * 64 + 63 - i];
    cluster.sync();
    y[base + i] = rank;
}
extern "C" __global__ void unordered_global(const int *x, int *y, int *z) {
    int i = threadIdx.x, base = blockIdx.x * 64;
    y[base + i] = x[base + i];
    __syncthreads();
    z[base + i] = y[(blockIdx.x ^ 1) * 64 + 63 - i];
}
// A barrier whose arrivals are relaxed orders what was fenced before, and says that the blocks have begun.
template <bool FENCE>
__device__ void relaxed(const int *x, int *y) {
    __shared__ int s[64];
    auto cluster = cg::this_cluster();
    s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    if (FENCE) asm volatile("fence.acq_rel.cluster;" ::: "memory");
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
    y[blockIdx.x * 64 + threadIdx.x] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[63 - threadIdx.x];
    cluster.sync();
}
KERNEL(2, 1, 1) relaxed_and_fenced(const int *x, int *y) { relaxed<true>(x, y); }
KERNEL(2, 1, 1) relaxed_only(const int *x, int *y) { relaxed<false>(x, y); }
// Threads of block 1 arrive at an mbarrier of block 0.
template <bool FENCE, bool RELAXED, bool MEET>
__device__ void started(int *y) {
    __shared__ mbarrier full;
    auto cluster = cg::this_cluster();
    unsigned f = shared_address(&full);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" :: "r"(f) : "memory");
        if (FENCE) asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (RELAXED) asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
    else if (MEET) cluster.sync();
    else __syncthreads();
    if (cluster.block_rank()) arrive(there(f, 0));
    else wait(f, 0);
    y[blockIdx.x * 32 + threadIdx.x] = 1;
    cluster.sync();
}
KERNEL(2, 1, 1) started_in_order(int *y) { started<true, true, true>(y); }
KERNEL(2, 1, 1) started_after_a_barrier(int *y) { started<false, false, true>(y); }
KERNEL(2, 1, 1) started_without_a_fence(int *y) { started<false, true, true>(y); }
KERNEL(2, 1, 1) started_without_the_cluster(int *y) { started<true, false, false>(y); }
KERNEL(2, 1, 1) one_warp_stays_away() {
    if (blockIdx.x == 0 || threadIdx.x < 32) cg::this_cluster().sync();
    else while (true) __nanosleep(20);
}
KERNEL(2, 1, 1) halves_of_a_warp(int aligned) {
    if (threadIdx.x < 16) asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    else if (aligned) asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    else asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
"""


@pytest.fixture(autouse=True)
def by_code(monkeypatch):
    return compare_races(monkeypatch)


def run(name, grid, block, *args, **options):
    return simulate(CudaSource(SOURCE, name), grid, block, args, **options)


def numbers(n: int) -> np.ndarray:
    return np.arange(1, n + 1, dtype=np.int32)


# -- who is where ------------------------------------------------------------------------------------------------------


def places(grid, cluster):
    """What the registers hold, from their definitions: one row per block, in CUDA's order."""
    rows = []
    for z in range(grid[2]):
        for y in range(grid[1]):
            for x in range(grid[0]):
                own = [n % k for n, k in zip((x, y, z), cluster, strict=True)]
                rank = own[0] + cluster[0] * (own[1] + cluster[1] * own[2])
                of = [n // k for n, k in zip((x, y, z), cluster, strict=True)]
                count = [n // k for n, k in zip(grid, cluster, strict=True)]
                rows.append([rank, int(np.prod(cluster)), *own, *cluster, *of, *count, 1])
    return rows


@pytest.mark.parametrize("chunk_lanes", [1, 1 << 15])
def test_registers(chunk_lanes):
    out = np.zeros((24, 16), np.uint32)
    run("where", (4, 6, 1), 1, out, chunk_lanes=chunk_lanes)
    assert out[:, :15].tolist() == places((4, 6, 1), (2, 2, 1))


@pytest.mark.parametrize("cluster", [(2,), (1, 3, 2), (4, 1, 2)])
def test_a_launch_may_ask_for_clusters(cluster):
    grid = 4, 3, 2
    out = np.zeros((24, 16), np.uint32)
    run("as_launched", grid, 1, out, cluster=cluster, chunk_lanes=8)
    assert out[:, :15].tolist() == places(grid, (*cluster, 1, 1)[:3])


def test_without_clusters_every_block_is_one():
    out = np.zeros((24, 16), np.uint32)
    run("as_launched", (4, 3, 2), 1, out)
    want = places((4, 3, 2), (1, 1, 1))
    assert out[:, :15].tolist() == [[*row[:-1], 0] for row in want]


@pytest.mark.parametrize(
    ("name", "grid", "options", "message"),
    [
        ("where", (4, 3, 1), {}, "grid dimension y is 3, and clusters have 2 blocks along it"),
        (
            "where",
            (4, 4, 1),
            {"cluster": (2, 1, 1)},
            "clusters of 2 × 1 × 1 blocks; the kernel was compiled for 2 × 2 × 1",
        ),
        ("as_launched", (32, 1, 1), {"cluster": (16,)}, "clusters of 16 × 1 × 1 = 16 blocks; .* has 1 to 8"),
        ("as_launched", (32, 1, 1), {"cluster": (32,), "wide_clusters": True}, "32 blocks; .* has 1 to 16"),
        ("as_launched", (2, 1, 1), {"cluster": (0,)}, "clusters of 0 × 1 × 1"),
    ],
)
def test_clusters_that_no_gpu_would_launch(name, grid, options, message):
    with pytest.raises(simulator.InvalidLaunch, match=message):
        run(name, grid, 1, np.zeros((64, 16), np.uint32), **options)


# -- shared memory of other blocks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [4, 12])
def test_races_between_blocks_are_looked_for_by_code(blocks, by_code):
    test_blocks_read_what_the_next_one_has(blocks)
    assert sum(by_code) > len(by_code) // 2


@pytest.mark.parametrize("blocks", [4, 12])
def test_blocks_read_what_the_next_one_has(blocks):
    x, y = numbers(64 * blocks), np.zeros(64 * blocks, np.int32)
    run("rotate", blocks, 64, x, y, chunk_lanes=512)
    tiles = x.reshape(-1, 4, 64)
    assert y.tolist() == np.roll(tiles, -1, axis=1)[:, :, ::-1].reshape(-1).tolist()


def test_a_sample_consists_of_whole_clusters():
    blocks = 4 * 200
    x, y = numbers(64 * blocks), np.zeros(64 * blocks, np.int32)
    whole = run("rotate", blocks, 64, x, y).counts
    y[:] = 0
    sampled = run("rotate", blocks, 64, x, y, sample_blocks=48)
    written = np.flatnonzero(y.reshape(-1, 4, 64).any(axis=(1, 2)))
    assert 0 < written.size < 50
    assert (y.reshape(-1, 4, 64)[written] != 0).all()
    assert (whole.global_store_requests, whole.barriers) == (
        sampled.counts.global_store_requests,
        sampled.counts.barriers,
    )


def test_blocks_write_into_one_another():
    x, y = numbers(256), np.zeros(256, np.int32)
    run("pushed", 4, 64, x, y)
    assert y.tolist() == x.reshape(-1, 2, 64)[:, ::-1, ::-1].reshape(-1).tolist()


def test_atomics_and_generic_addresses():
    y = np.zeros(4, np.int32)
    run("tally", 2, 64, y)
    assert y.tolist() == [64 * 65 // 2, 163, 64 * 65 // 2, 63]


def test_kinds_of_addresses():
    y = np.zeros(12, np.uint32)
    run("kinds", 2, 1, y)
    assert y.tolist() == [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1]


def test_global_memory_is_in_order_after_a_barrier_of_the_cluster():
    x, y, z = numbers(256), np.zeros(256, np.int32), np.zeros(256, np.int32)
    run("through_global", 4, 64, x, y, z)
    assert z.tolist() == x.reshape(-1, 2, 64)[:, ::-1, ::-1].reshape(-1).tolist()
    with pytest.raises(simulator.DataRace, match="nothing orders the two") as caught:
        run("unordered_global", 2, 64, x[:128], y[:128], z[:128], cluster=(2,))
    assert "different blocks of a cluster" in caught.value.reason


@pytest.mark.parametrize(("name", "array"), [("pushed_without_a_barrier", "s"), ("block_barrier_only", "s")])
def test_a_missing_barrier_of_the_cluster_is_a_race(name, array):
    with pytest.raises(simulator.DataRace, match="nothing orders the two") as caught:
        run(name, 2, 64, numbers(128), np.zeros(128, np.int32))
    assert caught.value.array == array
    assert "different blocks of a cluster" in caught.value.reason
    assert caught.value.other_thread is None or caught.value.other_thread[0] != caught.value.block


def test_accesses_outside_the_other_block():
    with pytest.raises(simulator.IllegalAddress, match=r"byte 128 of shared memory \(element 32 of `s`\)") as caught:
        run("outside", 2, 32, np.zeros(32, np.int32))
    assert caught.value.thread == (31, 0, 0)
    with pytest.raises(simulator.IllegalAddress) as caught:
        run("wrong_window", 2, 32, np.zeros(64, np.int32))
    assert "needs .shared::cluster" in caught.value.reason
    with pytest.raises(simulator.SimulatorError, match="block 2 of a cluster of 2 blocks"):
        run("rank_outside", 2, 1, np.zeros(1, np.int32))


def test_blocks_must_have_begun_and_not_have_ended():
    x, y = numbers(128), np.zeros(128, np.int32)
    with pytest.raises(simulator.SimulatorError, match="which may not have begun yet") as caught:
        run("pushed_too_soon", 2, 64, x, y)
    assert "before the first such access" in caught.value.reason
    assert "asm volatile" in caught.value.source
    with pytest.raises(simulator.SimulatorError, match="which may have ended by then") as caught:
        run("leaves_early", 2, 64, x, y)
    assert "after the last such access" in caught.value.reason
    assert "map_shared_rank" in caught.value.source
    run("leaves_early", 2, 64, x, y, checks=False)
    assert y.tolist() == [*x[64:], *x[:64]]


# -- barriers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tiles", [1, 2, 7])
def test_mbarriers_across_blocks(tiles):
    x, y = numbers(32 * tiles), np.zeros(32 * tiles, np.int32)
    run("relayed", 2, 32, x, y, np.int32(tiles))
    assert y.tolist() == x.reshape(-1, 32)[:, ::-1].reshape(-1).tolist()


def test_threads_wait_at_mbarriers_of_their_own_block():
    with pytest.raises(simulator.SimulatorError, match="waits at an mbarrier of another block") as caught:
        run("waits_there", 2, 32)
    assert caught.value.block == (0, 0, 0)


def test_values_sent_with_word_to_an_mbarrier():
    x, y = numbers(512).astype(np.uint32), np.zeros(512, np.uint32)
    run("sent", 4, 64, x, y)
    assert y.tolist() == x.reshape(2, 2, 64, 2)[:, ::-1, :, ::-1].reshape(-1).tolist()
    with pytest.raises(simulator.UninitializedRead, match="is still being copied"):
        run("sent_without_a_wait", 2, 64, x, y)
    run("added", 2, 128, x, y)
    sums = x[:256].reshape(2, 64, 2).sum(axis=1)[::-1] + 100
    assert y[:256].reshape(2, 64, 2).tolist() == np.repeat(sums[:, None], 64, axis=1).tolist()


def test_bulk_copies_between_blocks():
    x, y = numbers(256), np.zeros(256, np.int32)
    run("copied_over", 4, 64, x, y)
    assert y.tolist() == x.reshape(-1, 2, 64)[:, ::-1, ::-1].reshape(-1).tolist()
    run("added_over", 4, 64, x, y)
    assert y.tolist() == (1000 + x.reshape(-1, 2, 64)[:, ::-1, ::-1].reshape(-1)).tolist()
    run("bulk_multicast", 4, 64, x, y)
    assert y.reshape(2, 2, 64).tolist() == np.repeat(x[:128].reshape(2, 1, 64), 2, axis=1).tolist()


def test_an_overwritten_slot_of_another_block():
    x, y = numbers(32 * 7), np.zeros(32 * 7, np.int32)
    with pytest.raises((simulator.DataRace, simulator.SimulatorError), match=r"nothing orders the two|more arrivals"):
        run("relayed_without_waiting", 2, 32, x, y, np.int32(7))


def test_relaxed_arrivals_at_the_clusters_barrier():
    x, y = numbers(128), np.zeros(128, np.int32)
    run("relaxed_and_fenced", 2, 64, x, y)
    assert y.tolist() == x.reshape(2, 64)[::-1, ::-1].reshape(-1).tolist()
    with pytest.raises(simulator.DataRace, match=r"which thread .* of block .* wrote"):
        run("relaxed_only", 2, 64, x, y)


@pytest.mark.parametrize("blocks", [2, 6])
def test_an_mbarrier_is_initialised_before_other_blocks_use_it(blocks):
    y = np.zeros(32 * blocks, np.int32)
    for name in ("started_in_order", "started_after_a_barrier"):
        run(name, blocks, 32, y)
        assert y.all()
    with pytest.raises(simulator.DataRace, match=r"uses .* `full`\) .*which thread .* initialised") as caught:
        run("started_without_a_fence", blocks, 32, y)
    assert "cluster.sync()" in caught.value.reason
    with pytest.raises(simulator.SimulatorError, match="may not have begun yet"):
        run("started_without_the_cluster", blocks, 32, y)


def test_what_one_thread_learns_a_barrier_passes_on():
    x, y = numbers(64), np.zeros(64, np.int32)
    run("passed_on", 2, 64, x, y)
    assert y.tolist() == x[::-1].tolist()


def test_an_aligned_barrier_of_the_cluster_alone_is_for_whole_warps():
    run("halves_of_a_warp", 2, 32, np.int32(0))
    with pytest.raises(simulator.DivergentBarrier, match="only 16 of the 32 threads of a warp reach it"):
        run("halves_of_a_warp", 2, 32, np.int32(1))


def test_a_barrier_of_the_cluster_that_some_never_reach():
    with pytest.raises(simulator.SimulatorError):
        run("one_warp_stays_away", 2, 64, path_limit=20_000)
