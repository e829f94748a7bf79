# problem: pack
# loses: pack-right, pack-once, pack-budget
# reason: out is wrong|counts is wrong|elements of out
from warplab import cuda


@cuda.jit
def pack(x, out, counts):
    i, lane = cuda.grid(1), cuda.laneid
    value = x[i] if i < x.size else 0
    keep = value > 0
    kept = cuda.ballot_sync(cuda.activemask(), keep)
    if keep:
        out[i - lane + cuda.popc(kept & ((1 << lane) - 1))] = value
    if lane == 0 and i < x.size:
        counts[i // 32] = cuda.popc(kept)
