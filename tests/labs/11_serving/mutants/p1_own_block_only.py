# problem: add
# loses: add-right
# reason: as many as one block has threads


@cuda.jit
def add(a, b, c):
    """c[i] = a[i] + b[i], one thread per element."""
    i = cuda.threadIdx.x
    if i < c.size:
        c[i] = a[i] + b[i]
