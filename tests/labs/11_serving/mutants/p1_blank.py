# problem: add
# loses: add-right
# reason: not written yet: its body is empty


@cuda.jit
def add(a, b, c):
    """c[i] = a[i] + b[i], one thread per element."""
