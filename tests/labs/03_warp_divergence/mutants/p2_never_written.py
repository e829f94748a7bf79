# problem: mixed
# loses: mixed-right, mixed-uniform, mixed-budget
# reason: wrote nothing

from warplab import cuda


@cuda.jit
def mixed(x, out):
    i = cuda.grid(1)
    if i < out.size:
        result = stir(x[i]) if i % 2 == 0 else fold(x[i])  # noqa: F841
