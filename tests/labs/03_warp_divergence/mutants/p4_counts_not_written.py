# problem: pack
# loses: pack-right, pack-once, pack-budget
# reason: counts: none of its|counts:

from warplab import cuda

ALL = 0xFFFFFFFF


@cuda.jit
def pack(x, out, counts):
    i, lane = cuda.grid(1), cuda.laneid
    value = x[i] if i < x.size else 0
    keep = value > 0
    kept = cuda.ballot_sync(ALL, keep)
    if keep:
        out[i - lane + cuda.popc(kept & ((1 << lane) - 1))] = value
