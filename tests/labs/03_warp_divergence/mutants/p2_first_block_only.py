# problem: mixed
# loses: mixed-right, mixed-uniform, mixed-budget
# reason: only the first \d+ of 1\d\d\d elements were written

from warplab import cuda


@cuda.jit
def mixed(x, out):
    t = cuda.threadIdx.x
    odd = t // 32 % 2
    i = t // 64 * 64 + 2 * (t % 32) + odd
    if i < out.size:
        if odd:
            out[i] = fold(x[i])
        else:
            out[i] = stir(x[i])
