# problem: multiply
# loses: multiply-guard
# reason: wrote one element past the end of c, index \d+ of an array of \d+

from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    i = cuda.grid(1)
    if i <= c.size:
        c[i] = a[i] * b[i]
