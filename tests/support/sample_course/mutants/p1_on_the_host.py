# problem: multiply
# loses: multiply-fits, multiply-guard
# reason: multiply is a Python function, which runs on the host


def multiply(a, b, c):
    c[:] = a * b
