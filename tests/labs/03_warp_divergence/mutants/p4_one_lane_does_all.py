# problem: pack
# loses: pack-right, pack-once, pack-budget
# reason: one thread does too much of the work

from warplab import cuda


@cuda.jit
def pack(x, out, counts):
    i, lane = cuda.grid(1), cuda.laneid
    if lane == 0 and i < x.size:
        count = 0
        for k in range(i, min(i + 32, x.size)):
            value = x[k]
            if value > 0:
                out[i + count] = value
                count += 1
        counts[i // 32] = count
