# problem: mixed
# loses: mixed-budget
# reason: too many warp instructions

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
    i = cuda.grid(1)
    if i < out.size:
        even, odd = stir(x[i]), fold(x[i])
        out[i] = odd if i % 2 else even
