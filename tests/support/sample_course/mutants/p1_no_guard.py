# problem: multiply
# loses: multiply-guard
# reason: wrote \d+ elements past the end of \w+: \d+ threads

from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    i = cuda.grid(1)
    c[i] = a[i] * b[i]
