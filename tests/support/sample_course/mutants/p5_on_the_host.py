# problem: multiply-reversed
# loses: reversed-right, reversed-once
# reason: runs on the host


def multiply_reversed(a, b, c, n):
    c[:n] = a[:n] * b[:n][::-1]
