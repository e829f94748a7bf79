# problem: mixed
# loses: mixed-right, mixed-uniform, mixed-budget
# reason: is a Python function, which runs on the host

from warplab import cuda


@cuda.jit(device=True)
def stir(v):
    for _ in range(32):
        v = (5 * v + 3) % 65536
    return v


@cuda.jit(device=True)
def fold(v):
    for _ in range(32):
        v = v ^ (v >> 3) ^ 77
    return v


def mixed(x, out):
    for i in range(len(out)):
        out[i] = stir(x[i]) if i % 2 == 0 else fold(x[i])
