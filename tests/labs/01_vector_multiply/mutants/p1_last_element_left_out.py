# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: the last of 1024 elements was never written

from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    i = cuda.grid(1)
    if i < c.size - 1:
        c[i] = a[i] * b[i]
