# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: only the first 1000 of 1024 elements(.|\n)*is a size hard-coded

from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    i = cuda.grid(1)
    if i < 1000:
        c[i] = a[i] * b[i]
