# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: every wrong value is the right one cut to a whole number

from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = int(a[i] * b[i])
