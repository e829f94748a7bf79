# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: only the first 32 of 1024 elements were written, as many as one block has threads

from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    i = cuda.threadIdx.x
    if i < c.size:
        c[i] = a[i] * b[i]
