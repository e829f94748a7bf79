# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: one thread does too much of the work|data race
from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    for i in range(c.size):
        c[i] = a[i] * b[i]
