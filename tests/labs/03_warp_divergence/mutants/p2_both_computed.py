# problem: mixed
# loses: mixed-budget
# reason: too many warp instructions

from warplab import cuda


@cuda.jit
def mixed(x, out):
    i = cuda.grid(1)
    if i < out.size:
        even, odd = stir(x[i]), fold(x[i])
        out[i] = odd if i % 2 else even
