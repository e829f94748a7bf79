# problem: pack
# loses: pack-once, pack-budget
# reason: too many global load requests

from warplab import cuda


@cuda.jit
def pack(x, out, counts):
    i, lane = cuda.grid(1), cuda.laneid
    if i < x.size:
        first = i - lane
        before = 0
        for k in range(first, i):
            before += x[k] > 0
        if x[i] > 0:
            out[first + before] = x[i]
        if lane == 31 or i == x.size - 1:
            counts[i // 32] = before + (x[i] > 0)
