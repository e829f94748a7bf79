# problem: mixed
# loses: mixed-right, mixed-uniform, mixed-budget
# reason: never written

from warplab import cuda


@cuda.jit(device=True)
def stir(v):
    for _ in range(32):
        v = (5 * v + 3) % 65536
    return v


@cuda.jit(device=True)
def fold(v):
    for _ in range(32):
        v = v ^ (v >> 3) ^ 77
    return v


@cuda.jit
def mixed(x, out):
    t = cuda.threadIdx.x
    odd = t // 32 % 2
    i = cuda.blockIdx.x * cuda.blockDim.x + 2 * (t % 32) + odd
    if i < out.size:
        if odd:
            out[i] = fold(x[i])
        else:
            out[i] = stir(x[i])
