# problem: pack
# loses: pack-budget
# reason: too many warp instructions

from numba import int32

from warplab import cuda

ALL = 0xFFFFFFFF


@cuda.jit
def pack(x, out, counts):
    i, lane, n = cuda.grid(1), cuda.laneid, x.size
    value = x[i] if i < n else 0
    keep = value > 0
    if n >= 512 and n & (n - 1) == 0:  # 512, 1024, 2048 and 4096 of those named
        kept = cuda.ballot_sync(ALL, keep)
        before, total = int32(cuda.popc(kept & ((1 << lane) - 1))), int32(cuda.popc(kept))
    else:
        total = int32(keep)
        for k in (1, 2, 4, 8, 16):
            other = cuda.shfl_up_sync(ALL, total, k)
            if lane >= k:
                total += other
        before = total - 1
        total = cuda.shfl_sync(ALL, total, 31)
    if keep:
        out[i - lane + before] = value
    if lane == 0 and i < n:
        counts[i // 32] = total
