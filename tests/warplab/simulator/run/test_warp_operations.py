"""Warp-wide instructions against their definition in Python, in whole and partial warps, converged and not."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define KERNEL extern "C" __global__ void
KERNEL shuffles(const int* x, int* out, int n, int k, int width) {
    int i = threadIdx.x, v = x[i];
    out[i] = __shfl_down_sync(0xffffffff, v, k, width);
    out[n + i] = __shfl_up_sync(0xffffffff, v, k, width);
    out[2 * n + i] = __shfl_xor_sync(0xffffffff, v, k, width);
    out[3 * n + i] = __shfl_sync(0xffffffff, v, k, width);
}
KERNEL votes(const int* x, unsigned* out, int n) {
    int i = threadIdx.x, v = x[i];
    out[i] = __ballot_sync(0xffffffff, v > 2);
    out[n + i] = __any_sync(0xffffffff, v > 6);
    out[2 * n + i] = __all_sync(0xffffffff, v >= 0);
    out[3 * n + i] = __match_any_sync(0xffffffff, v);
    int same;
    out[4 * n + i] = __match_all_sync(0xffffffff, v / 100, &same);
    out[5 * n + i] = same;
    out[6 * n + i] = __reduce_add_sync(0xffffffff, v);
    out[7 * n + i] = __reduce_max_sync(0xffffffff, v);
    out[8 * n + i] = __reduce_min_sync(0xffffffff, -v);
    out[9 * n + i] = __reduce_xor_sync(0xffffffff, (unsigned)v);
}
KERNEL divergent(const int* x, unsigned* out) {
    int i = threadIdx.x;
    unsigned odd = __ballot_sync(0xffffffff, i & 1);
    if (i & 1) out[i] = __ballot_sync(odd, x[i] > 2); else out[i] = __activemask();
}
KERNEL missing(unsigned* out) {
    if (threadIdx.x < 16) out[threadIdx.x] = __ballot_sync(0xffffffff, 1);
    __syncthreads();
}
KERNEL passed_shuffle(unsigned* out) {  // nothing after the branch waits for anyone
    unsigned v = threadIdx.x;
    if (v < 16) v += __shfl_down_sync(0xffffffff, v, 8);
    out[threadIdx.x] = v;
}
KERNEL passed_syncwarp(unsigned* out) {
    if (threadIdx.x < 16) {
        out[threadIdx.x] = 1;
        __syncwarp();
    }
    out[threadIdx.x + 32] = 2;
}
KERNEL unnamed(unsigned* out, unsigned mask, int sync) {
    if (sync) __syncwarp(mask);
    out[threadIdx.x] = sync ? 0 : __shfl_sync(mask, threadIdx.x, 0);
}
KERNEL other_syncwarp(unsigned* out) {  // one for each side
    if (threadIdx.x < 16) {
        out[threadIdx.x] = 1;
        __syncwarp();
    } else {
        out[threadIdx.x] = 2;
        __syncwarp();
    }
    out[threadIdx.x + 32] = out[31 - threadIdx.x];
}
KERNEL ended_elsewhere(unsigned* out, int what) {  // the upper half does something else and ends
    unsigned v = threadIdx.x;
    if (v >= 16) {
        out[v] = 0;
        return;
    }
    if (what == 0) v = __match_any_sync(0xffffffff, v);
    if (what == 1) v = __shfl_xor_sync(0xffffffff, v, 1);
    if (what == 2) v = __ballot_sync(0xffffffff, v & 1);
    if (what == 3) __syncwarp();
    if (what == 4) __syncwarp(0xffff);
    out[threadIdx.x] = v;
}
KERNEL elects(const int* x, unsigned* out) {  // the lanes of each value of x elect one of them
    unsigned lane, yes, mask = __match_any_sync(0xffffffff, x[threadIdx.x]);
    for (int k = 0; k < 3; k++)
        if (x[threadIdx.x] == k) {
            asm volatile("{ .reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p; }"
                         : "=r"(lane), "=r"(yes) : "r"(mask));
            out[threadIdx.x] = 2 * lane + yes;
        }
}
KERNEL some_ended(unsigned* out) {
    if (threadIdx.x >= 20) return;
    out[threadIdx.x] = __ballot_sync(0xffffffff, 1);
}
KERNEL warp_sum(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0;
    for (int k = 16; k; k /= 2) v += __shfl_down_sync(0xffffffff, v, k);
    if ((i & 31) == 0) out[i / 32] = v;
}
KERNEL tiles(const int* x, int* out) {
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int v = x[threadIdx.x];
    for (int k = 4; k; k /= 2) v += tile.shfl_down(v, k);
    v = tile.shfl(v, 0);
    tile.sync();
    out[threadIdx.x] = v;
}
KERNEL coalesced(const int* x, int* out) {
    out[threadIdx.x] = -1;
    if (x[threadIdx.x] > 2) {
        auto group = cg::coalesced_threads();
        out[threadIdx.x] = 100 * group.size() + group.thread_rank();
    }
}
"""
FULL = 0xFFFFFFFF


def run(name, grid, block, *args, **options):
    return simulate(CudaSource(SOURCE, name), grid, block, args, **options)


def source_lane(mode: str, lane: int, k: int, width: int) -> int:
    """CUDA C++ Programming Guide, "Warp Shuffle Functions"."""
    start = lane // width * width
    source = {"down": lane + k, "up": lane - k, "xor": lane ^ k, "idx": start + k % width}[mode]
    inside = source < start + width if mode != "up" else source >= start
    return source if inside else lane


@pytest.mark.parametrize("threads", [32, 96])
@pytest.mark.parametrize(("k", "width"), [(1, 32), (5, 32), (16, 32), (3, 8), (1, 4), (0, 2), (31, 32)])
def test_shuffles(threads, k, width):
    x = np.random.default_rng(20).integers(-1000, 1000, threads, dtype=np.int32)
    out = np.zeros(4 * threads, np.int32)
    run("shuffles", 1, threads, x, out, np.int32(threads), np.int32(k), np.int32(width))
    for row, mode in zip(out.reshape(4, threads), ("down", "up", "xor", "idx"), strict=True):
        want = [x[i // 32 * 32 + source_lane(mode, i % 32, k, width)] for i in range(threads)]
        assert row.tolist() == want, mode


@pytest.mark.parametrize("threads", [32, 64, 45, 7])
def test_votes_matches_and_reductions(threads):
    x = np.random.default_rng(20).integers(0, 8, threads, dtype=np.int32)
    out = np.zeros(10 * threads, np.uint32)
    run("votes", 1, threads, x, out, np.int32(threads))
    out = out.reshape(10, threads)
    for i in range(threads):
        warp = x[i // 32 * 32 : i // 32 * 32 + 32].tolist()
        live = (1 << len(warp)) - 1
        assert out[0, i] == sum(1 << k for k, v in enumerate(warp) if v > 2)
        assert out[1, i] == any(v > 6 for v in warp)
        assert out[2, i] == 1
        assert out[3, i] == sum(1 << k for k, v in enumerate(warp) if v == x[i])
        assert (out[4, i] & live, out[5, i]) == (live, 1)
        assert out[6, i] == sum(warp)
        assert out[7, i] == max(warp)
        assert np.int32(out[8, i].astype(np.int64) - (1 << 32 if out[8, i] >> 31 else 0)) == -max(warp)
        assert out[9, i] == np.bitwise_xor.reduce(warp)


def test_divergent_lanes_with_their_own_mask():
    x = np.arange(32, dtype=np.int32) % 5
    out = np.zeros(32, np.uint32)
    run("divergent", 1, 32, x, out)
    even = sum(1 << k for k in range(0, 32, 2))
    odd = sum(1 << k for k in range(1, 32, 2) if x[k] > 2)
    assert out.tolist() == [odd if k & 1 else even for k in range(32)]


def test_lanes_that_never_come():
    out = np.zeros(32, np.uint32)
    with pytest.raises(
        simulator.DivergentWarp, match="waits for lanes of its mask that never come: 16 to 31\n"
    ) as caught:
        run("missing", 1, 32, out)
    assert caught.value.line is not None


@pytest.mark.parametrize("kernel", ["passed_shuffle", "passed_syncwarp"])
def test_lanes_that_went_past(kernel):
    out = np.zeros(64, np.uint32)
    with pytest.raises(simulator.DivergentWarp, match="waits for lanes of its mask that never come: 16 to 31\n"):
        run(kernel, 1, 32, out)
    run(kernel, 1, 32, out, checks=False)  # as a GPU, which waits for them until they have ended


@pytest.mark.parametrize(("sync", "name"), [(0, "shfl"), (1, "__syncwarp")])
def test_a_lane_must_be_in_its_own_mask(sync, name):
    out = np.zeros(32, np.uint32)
    said = rf"lane 16 calls `{name}` with the mask 0x0000ffff, which does not name it\n"
    with pytest.raises(simulator.DivergentWarp, match=said) as caught:
        run("unnamed", 1, 32, out, np.uint32(0xFFFF), np.int32(sync))
    assert caught.value.thread == (16, 0, 0)
    run("unnamed", 1, 16, out, np.uint32(0xFFFF), np.int32(sync))
    run("unnamed", 1, 32, out, np.uint32(0xFFFFFFFF), np.int32(sync))


def test_syncwarp_may_stand_in_each_branch():
    out = np.zeros(64, np.uint32)
    run("other_syncwarp", 1, 32, out)
    assert out.tolist() == [1] * 16 + [2] * 16 + [2] * 16 + [1] * 16


def test_lanes_that_have_ended_are_not_waited_for():
    out = np.zeros(32, np.uint32)
    run("some_ended", 1, 32, out)
    assert out.tolist() == [(1 << 20) - 1] * 20 + [0] * 12


@pytest.mark.parametrize(("what", "name"), [(0, "match"), (1, "shfl"), (2, "vote"), (3, "__syncwarp")])
def test_lanes_that_ended_elsewhere(what, name):
    out = np.zeros(32, np.uint32)
    with pytest.raises(simulator.DivergentWarp, match=f"`{name}` waits for lanes .* never come: 16 to 31\n") as caught:
        run("ended_elsewhere", 1, 32, out, np.int32(what))
    assert caught.value.thread == (0, 0, 0)
    run("ended_elsewhere", 1, 32, out, np.int32(what), checks=False)
    run("ended_elsewhere", 1, 16, out, np.int32(what))
    run("ended_elsewhere", 1, 32, out, np.int32(4))


def test_one_lane_is_elected():
    """PTX ISA, "elect.sync": one lane of the mask, and all are told which; the simulator takes the lowest."""
    x = np.random.default_rng(20).integers(0, 3, 64, dtype=np.int32)
    out = np.zeros(64, np.uint32)
    run("elects", 1, 64, x, out)
    for i in range(64):
        warp = x[i // 32 * 32 : i // 32 * 32 + 32].tolist()
        assert out[i] == 2 * warp.index(x[i]) + (warp.index(x[i]) == i % 32)


def test_warp_sum():
    x = np.random.default_rng(20).integers(0, 100, 100).astype(np.float32)
    out = np.zeros(4, np.float32)
    run("warp_sum", 2, 64, x, out, np.int32(100))
    assert out.tolist() == [x[k : k + 32].sum() for k in range(0, 128, 32)]


def test_cooperative_groups():
    x = np.arange(64, dtype=np.int32) % 7
    out = np.zeros(64, np.int32)
    run("tiles", 1, 64, x, out)
    assert out.tolist() == np.repeat(x.reshape(-1, 8).sum(axis=1), 8).tolist()
    run("coalesced", 1, 64, x, out)
    for i in range(64):
        warp = x[i // 32 * 32 : i // 32 * 32 + 32] > 2
        rank = int(warp[: i % 32].sum())
        assert out[i] == (100 * int(warp.sum()) + rank if x[i] > 2 else -1)
