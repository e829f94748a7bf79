# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: the input a was modified

from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        a[i] *= b[i]
        c[i] = a[i]
