# problem: mixed
# loses: mixed-right, mixed-uniform, mixed-budget
# reason: out is wrong in \d+ of \d+ elements, the first at index 1\.

from warplab import cuda


@cuda.jit
def mixed(x, out):
    i = cuda.grid(1)
    if i < out.size:
        if i // 32 % 2:
            out[i] = fold(x[i])
        else:
            out[i] = stir(x[i])
