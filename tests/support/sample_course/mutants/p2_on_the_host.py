# problem: multiply-any-grid
# loses: any-grid-right, any-grid-frugal
# reason: runs on the host


def multiply_any_grid(a, b, c):
    for i in range(c.size):
        c[i] = a[i] * b[i]
