"""Lab 03's teaching kernels in Numba; each is the step of the same name in CUDA C++, where its header is.

Numba passes arrays with their shape, so counts need no argument. Measured as there: n = 2^28,
NVIDIA H100 80GB HBM3, 2026-11-21.
"""

import numpy as np
from numba import int32, uint32

from warplab import cuda

ALL = 0xFFFFFFFF  # the mask of a whole warp
BINS = 256


# order.cu: B needs what X computes. One warp.
@cuda.jit
def ordered(read, value):
    result = cuda.shared.array(1, int32)
    lane = cuda.threadIdx.x
    if lane < 4:
        cuda.syncwarp()
        read[lane] = result[0]  # B
    else:
        result[0] = value  # X
        cuda.syncwarp()
    cuda.syncwarp()


# order.cu: B waits for X by itself. Numba has no volatile loads; an atomic that adds 0 reads what others wrote.
@cuda.jit
def handshake(read, value):
    result = cuda.shared.array(1, int32)
    ready = cuda.shared.array(1, int32)
    lane = cuda.threadIdx.x
    if lane == 0:
        ready[0] = 0
    cuda.syncwarp()
    if lane < 4:
        while cuda.atomic.add(ready, 0, 0) == 0:
            pass
        read[lane] = cuda.atomic.add(result, 0, 0)  # B
    else:
        cuda.atomic.exch(result, 0, value)  # X
        cuda.threadfence_block()
        cuda.atomic.exch(ready, 0, 1)


# paths.cu with two ways: by lane with shift = 0, by warp with shift = 5.
@cuda.jit
def two_paths(x, out, steps, shift):
    i = cuda.grid(1)
    if i < out.size:
        y = x[i]
        if (i >> shift) % 2 == 0:
            for _ in range(steps):
                y = np.float32(0.5) * y + np.float32(1)
        else:
            for _ in range(steps):
                y = np.float32(0.5) * y + np.float32(2)
        out[i] = y


# tasks.cu 1: task order[i] needs trips[order[i]] passes.
@cuda.jit
def uneven(trips, order, out):
    i = cuda.grid(1)
    if i < order.size:
        task = order[i]
        y = np.float32(0)
        for _ in range(trips[task]):
            y = np.float32(0.5) * y + np.float32(1)
        out[task] = y


# tasks.cu 2: steps from first + order[i] to 1.
@cuda.jit
def collatz(first, order, out):
    i = cuda.grid(1)
    if i < order.size:
        task = order[i]
        value = np.uint64(first) + np.uint64(task)
        steps = 0
        while value != 1:
            if value & np.uint64(1):
                value = np.uint64(3) * value + np.uint64(1)
            else:
                value >>= np.uint64(1)
            steps += 1
        out[task] = steps


# tasks.cu 7: one warp per row.
@cuda.jit
def row_sums_warp(start, value, out):
    row, lane = cuda.grid(1) // 32, cuda.laneid
    if row < out.size:  # the same for all lanes
        total = int32(0)
        for k in range(start[row] + lane, start[row + 1], 32):
            total += value[k]
        for k in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(ALL, total, k)
        if lane == 0:
            out[row] = total


# primitives.cu 1: sums of each 32 neighbours. All lanes take part, those past the end with 0.
@cuda.jit
def warp_sums(x, out):
    i = cuda.grid(1)
    total = x[i] if i < x.size else int32(0)
    for k in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(ALL, total, k)
    if cuda.laneid == 0 and i < x.size:
        out[i // 32] = total


# primitives.cu 2: inclusive scans of each 32 neighbours.
@cuda.jit
def warp_scans(x, out):
    i, lane = cuda.grid(1), cuda.laneid
    total = x[i] if i < x.size else int32(0)
    for k in (1, 2, 4, 8, 16):
        before = cuda.shfl_up_sync(ALL, total, k)
        if lane >= k:
            total += before
    if i < x.size:
        out[i] = total


# histogram.cu 1. Reached: 3.889 GB/s on uniform data and 1.455 on skewed.
@cuda.jit
def histogram_global(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i], 1)


# histogram.cu 2. Reached: 4.242 GB/s on uniform data and 15.45 on skewed.
@cuda.jit
def histogram_matched(x, bins):
    i = cuda.grid(1)
    lanes = cuda.ballot_sync(ALL, i < x.size)
    if i < x.size:
        byte = x[i]
        alike = cuda.match_any_sync(lanes, int32(byte))
        if cuda.laneid == cuda.ffs(alike) - 1:
            cuda.atomic.add(bins, byte, cuda.popc(alike))


# histogram.cu 4. Reached: 947.5 GB/s on uniform data and 948.5 on skewed.
@cuda.jit
def histogram_shared(x, bins):
    own = cuda.shared.array(BINS, uint32)
    for k in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        own[k] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(own, x[i], 1)
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        cuda.atomic.add(bins, k, own[k])


# append.cu 1. Reached: 177, 226 and 280 GB/s with 10, 50 and 90 % kept.
@cuda.jit
def append(x, threshold, out, count):
    i = cuda.grid(1)
    if i < x.size and x[i] > threshold:
        out[cuda.atomic.add(count, 0, 1)] = x[i]


# append.cu 2: one atomic per warp. Reached: 171, 226 and 280 GB/s with 10, 50 and 90 % kept.
@cuda.jit
def append_ballot(x, threshold, out, count):
    i, lane = cuda.grid(1), cuda.laneid
    keep = i < x.size and x[i] > threshold
    kept = cuda.ballot_sync(ALL, keep)
    first = np.int64(0)
    if lane == 0:
        first = np.int64(cuda.atomic.add(count, 0, cuda.popc(kept)))
    first = cuda.shfl_sync(ALL, first, 0)
    if keep:
        below = kept & ((uint32(1) << lane) - 1)
        out[first + cuda.popc(below)] = x[i]
