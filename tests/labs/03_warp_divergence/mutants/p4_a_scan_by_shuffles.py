# problem: pack
# loses: pack-budget
# reason: too many warp instructions

from numba import int32

from warplab import cuda

ALL = 0xFFFFFFFF


@cuda.jit
def pack(x, out, counts):
    i, lane = cuda.grid(1), cuda.laneid
    value = x[i] if i < x.size else 0
    keep = value > 0
    total = int32(keep)
    for k in (1, 2, 4, 8, 16):
        before = cuda.shfl_up_sync(ALL, total, k)
        if lane >= k:
            total += before
    if keep:
        out[i - lane + total - 1] = value
    total = cuda.shfl_sync(ALL, total, 31)
    if lane == 0 and i < x.size:
        counts[i // 32] = total
