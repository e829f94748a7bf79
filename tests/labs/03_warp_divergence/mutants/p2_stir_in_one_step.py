# problem: mixed
# loses: mixed-right, mixed-uniform, mixed-budget
# reason: out is wrong in
from warplab import cuda

FACTOR = 5**32 % 65536
TERM = 3 * sum(5**k for k in range(32)) % 65536


@cuda.jit
def mixed(x, out):
    t = cuda.threadIdx.x
    odd = t // 32 % 2
    i = cuda.blockIdx.x * cuda.blockDim.x + t // 64 * 64 + 2 * (t % 32) + odd
    if i < out.size:
        if odd:
            out[i] = fold(x[i])
        else:
            out[i] = (FACTOR * x[i] + TERM) % 65536
