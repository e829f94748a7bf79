# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: wrote nothing

from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        product = a[i] * b[i]  # noqa: F841
