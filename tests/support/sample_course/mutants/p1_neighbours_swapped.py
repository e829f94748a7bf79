# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: element 0 holds the right value of element 1

from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        j = min(i ^ 1, c.size - 1)
        c[i] = a[j] * b[j]
