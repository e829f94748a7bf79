"""Blocks that wait for one another: cooperative launches, and the last block that finishes the work of all."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import simulator
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
KERNEL rotate_in_place(int* a, int rounds) {
    auto grid = cg::this_grid();
    int n = grid.size(), i = grid.thread_rank();
    for (int k = 0; k < rounds; k++) {
        int next = a[(i + 1) % n];
        grid.sync();
        a[i] = next;
        grid.sync();
    }
}
KERNEL one_sync_too_few(int* a) {
    auto grid = cg::this_grid();
    int next = a[(grid.thread_rank() + 1) % grid.size()];
    a[grid.thread_rank()] = next;
    grid.sync();
}
KERNEL some_leave(int* a) {
    if (blockIdx.x == 1) return;
    a[blockIdx.x] = 1;
    cg::this_grid().sync();
}
template <bool FENCE> __device__ void last_block_adds(const int* x, int* partial, int* count, int* sum) {
    __shared__ bool last;
    partial[blockIdx.x * blockDim.x + threadIdx.x] = 2 * x[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {  // for all of its block
        if (FENCE) __threadfence();
        last = atomicAdd(count, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        int s = 0;
        for (int k = 0; k < gridDim.x; k++) s += partial[k * blockDim.x + threadIdx.x];
        atomicAdd(sum, s);
    }
}
KERNEL last_block(const int* x, int* partial, int* count, int* sum) { last_block_adds<true>(x, partial, count, sum); }
KERNEL no_fence(const int* x, int* partial, int* count, int* sum) { last_block_adds<false>(x, partial, count, sum); }
""".replace("KERNEL", 'extern "C" __global__ void')


def test_grid_sync():
    kernel = cp.RawKernel(SOURCE, "rotate_in_place", enable_cooperative_groups=True)
    a = cp.asarray(np.arange(4 * 48, dtype=np.int32))
    kernel((4,), (48,), (a, np.int32(3)))
    assert cp.asnumpy(a).tolist() == np.roll(np.arange(4 * 48), -3).tolist()
    module = cp.RawModule(code=SOURCE, enable_cooperative_groups=True)
    module.get_function("rotate_in_place")((4,), (48,), (a, np.int32(1)))
    assert cp.asnumpy(a).tolist() == np.roll(np.arange(4 * 48), -4).tolist()


def test_blocks_of_more_than_a_chunk_run_together():
    a = np.arange(40 * 1000, dtype=np.int32)
    simulate(CudaSource(SOURCE, "rotate_in_place"), 40, 1000, (a, np.int32(1)), cooperative=True, chunk_lanes=2000)
    assert a.tolist() == np.roll(np.arange(40 * 1000), -1).tolist()


def test_a_missing_grid_sync_is_a_race():
    with pytest.raises(simulator.DataRace, match="array `a`"):
        simulate(CudaSource(SOURCE, "one_sync_too_few"), 4, 32, (np.arange(128, dtype=np.int32),), cooperative=True)


def test_what_a_cooperative_launch_needs():
    a = np.arange(64, dtype=np.int32)
    with pytest.raises(simulator.SimulatorError, match="enable_cooperative_groups=True"):
        simulate(CudaSource(SOURCE, "rotate_in_place"), 2, 32, (a, np.int32(1)))
    with pytest.raises(simulator.InvalidLaunch, match="an H100 holds 270,336 threads"):
        simulate(CudaSource(SOURCE, "rotate_in_place"), 300, 1024, (a, np.int32(1)), cooperative=True)
    with pytest.raises(simulator.InstructionLimit, match="does not end"):
        simulate(CudaSource(SOURCE, "some_leave"), 3, 1, (a,), cooperative=True, path_limit=20_000)


def test_the_last_block():
    """A fence by one thread, after a barrier, is one for all threads of its block."""
    x = np.arange(6 * 64, dtype=np.int32)
    for chunk in (1 << 15, 64):
        count, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
        source = CudaSource(SOURCE, "last_block")
        simulate(source, 6, 64, (x, np.zeros_like(x), count, total), chunk_lanes=chunk)
        assert total[0] == 2 * x.sum()
    with pytest.raises(simulator.DataRace, match="array `partial`"):
        simulate(CudaSource(SOURCE, "no_fence"), 6, 64, (x, np.zeros_like(x), count * 0, total))


@cuda.jit
def numba_rotate(a, rounds):
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    for _ in range(rounds):
        following = a[(i + 1) % a.size]
        grid.sync()
        a[i] = following
        grid.sync()


@cuda.jit
def numba_some_leave(a):
    grid = cuda.cg.this_grid()
    if cuda.threadIdx.x < 2:
        a[cuda.grid(1)] = 1
        grid.sync()
    else:
        cuda.syncthreads()


def test_numba():
    a = np.arange(3 * 40)
    numba_rotate[3, 40](a, 2)
    assert a.tolist() == np.roll(np.arange(3 * 40), -2).tolist()
    with pytest.raises(simulator.DivergentBarrier):
        numba_some_leave[2, 32](a)
