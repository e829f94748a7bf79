# problem: mixed
# loses: mixed-uniform, mixed-budget
# reason: too many divergent branches

from warplab import cuda


@cuda.jit
def mixed(x, out):
    i = cuda.grid(1)
    if i < out.size:
        if i % 2 == 0:
            out[i] = stir(x[i])
        else:
            out[i] = fold(x[i])
