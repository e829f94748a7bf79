# problem: pack
# loses: pack-right, pack-once
# reason: names lanes that have ended
from warplab import cuda


@cuda.jit
def pack(x, out, counts):
    i, lane = cuda.grid(1), cuda.laneid
    if i < x.size:
        value = x[i]
        kept = cuda.ballot_sync(ALL, value > 0)
        if value > 0:
            out[i - lane + cuda.popc(kept & ((1 << lane) - 1))] = value
        if lane == 0:
            counts[i // 32] = cuda.popc(kept)
