# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: one thread does too much of the work
from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    first = cuda.grid(1)
    if first % 4 == 0:
        for i in range(first, min(first + 4, c.size)):
            c[i] = a[i] * b[i]
