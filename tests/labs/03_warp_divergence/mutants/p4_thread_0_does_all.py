# problem: pack
# loses: pack-right, pack-once, pack-budget
# reason: one thread does too much of the work[\s\S]*thread 0 of block 0
from warplab import cuda


@cuda.jit
def pack(x, out, counts):
    if cuda.grid(1) == 0:
        for first in range(0, x.size, 32):
            count = 0
            for i in range(first, min(first + 32, x.size)):
                if x[i] > 0:
                    out[first + count] = x[i]
                    count += 1
            counts[first // 32] = count
