# problem: pack
# loses: pack-once
# reason: too many shared load requests

from numba import int32

from warplab import cuda


@cuda.jit
def pack(x, out, counts):
    own = cuda.shared.array(32, int32)
    i, lane, warp = cuda.grid(1), cuda.laneid, cuda.threadIdx.x // 32
    if lane == 0:
        own[warp] = 0
    cuda.syncwarp()
    if i < x.size and x[i] > 0:
        out[i - lane + cuda.atomic.add(own, warp, 1)] = x[i]
    cuda.syncwarp()
    if lane == 0 and i < x.size:
        counts[i // 32] = own[warp]
