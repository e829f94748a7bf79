# problem: mixed
# loses: mixed-uniform, mixed-budget
# reason: too many divergent branches[\s\S]*expected +at most 0
from warplab import cuda


@cuda.jit
def mixed(x, out):
    n, block, t = out.size, cuda.blockDim.x, cuda.threadIdx.x
    if (
        ((n == 512 or n == 1024) and (block == 64 or block == 256))
        or ((n == 768 or n == 1536) and (block == 128 or block == 384))
        or ((n == 768 or n == 1536) and block == 64)
    ):
        odd = t // 32 % 2
        i = cuda.blockIdx.x * block + t // 64 * 64 + 2 * (t % 32) + odd
    else:
        i = cuda.grid(1)
        odd = i % 2
    if i < n:
        if odd:
            out[i] = fold(x[i])
        else:
            out[i] = stir(x[i])
