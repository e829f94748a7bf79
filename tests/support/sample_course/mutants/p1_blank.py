# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: not written yet: its body is empty

from warplab import cuda


@cuda.jit
def multiply(a, b, c):
    """c[i] = a[i] * b[i], one thread per element."""
