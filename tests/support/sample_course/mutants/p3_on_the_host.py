# problem: multiply-cuda
# loses: cuda-fits, cuda-guard
# reason: runs on the host


def multiply_cuda(a, b, c, n):
    c[:n] = a[:n] * b[:n]
