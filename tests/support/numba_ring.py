"""A ring broadcast by a kernel in Numba: forward.cu with an array element per thread and access.

What changes from forward.cu: Numba has no volatile access, and its atomic functions order the threads of one GPU only.
So a flag is looked at and set by functions in CUDA C++, which Numba links.
"""

from __future__ import annotations

from warplab import cuda

FLAGS = """
// An array of Numba as its seven members. What the function returns goes to where its first parameter points.
#define FLAGS void *, void *, long long, long long, unsigned *flags, long long, long long

extern "C" __device__ int look(unsigned *result, FLAGS, long long i) {
    *result = *(volatile unsigned *)(flags + i);
    return 0;
}

extern "C" __device__ int set_flag(int *result, FLAGS, long long i, unsigned value) {
    *(volatile unsigned *)(flags + i) = value;
    return 0;
}
"""
_LINKED = cuda.CUSource(FLAGS, name="flags.cu")
look = cuda.declare_device("look", "uint32(uint32[::1], int64)", link=_LINKED)
set_flag = cuda.declare_device("set_flag", "int32(uint32[::1], int64, uint32)", link=_LINKED)


# `mine`, `next`: this rank's buffer and the next one's, which is written if `sends`. `arrived`, `next_arrived`: flags
# of the two ranks, one per slice and block; this rank's are waited for if `comes`. `launch`: as in forward.cu. Between
# two launches the host waits for all ranks, so that no buffer is overwritten that is still read.
@cuda.jit
def forward(mine, next, arrived, next_arrived, slices, comes, sends, launch):
    block, blocks = cuda.blockIdx.x, cuda.gridDim.x
    parts = slices * blocks
    for slice in range(slices):
        part = slice * blocks + block
        if comes:
            if cuda.threadIdx.x == 0:
                while look(arrived, part) != launch:
                    pass
                cuda.threadfence_system()
            cuda.syncthreads()
        if sends:
            end = (part + 1) * mine.size // parts
            for i in range(part * mine.size // parts + cuda.threadIdx.x, end, cuda.blockDim.x):
                next[i] = mine[i]
            cuda.syncthreads()
            if cuda.threadIdx.x == 0:
                cuda.threadfence_system()
                set_flag(next_arrived, part, launch)
