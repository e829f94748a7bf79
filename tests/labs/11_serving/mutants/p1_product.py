# problem: add
# loses: add-right
# reason: the expression that computes


@cuda.jit
def add(a, b, c):
    """c[i] = a[i] + b[i], one thread per element."""
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] * b[i]
