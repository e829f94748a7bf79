# problem: pack
# loses: pack-right, pack-once
# reason: in counts, (only the first \d+ of \d+ elements were|the last of \d+ elements was never) written

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
    if lane == 31 and i < x.size:
        counts[i // 32] = cuda.popc(kept)
