# problem: multiply-cuda
# loses: cuda-fits, cuda-guard
# reason: in the wrong language

from warplab import cuda


@cuda.jit
def multiply_cuda(a, b, c, n):
    i = cuda.grid(1)
    if i < n:
        c[i] = a[i] * b[i]
