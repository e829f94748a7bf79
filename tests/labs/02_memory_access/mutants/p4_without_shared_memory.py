# problem: smooth
# loses: smooth-once
# reason: too many global load bytes

from numba import float32

from warplab import cuda

BLOCK = 128
RADIUS = 4
WINDOW = BLOCK + 2 * RADIUS


@cuda.jit
def smooth(a, out):
    i = cuda.grid(1)
    if i < out.size:
        total = float32(0)
        for k in range(i - RADIUS, i + RADIUS + 1):
            if 0 <= k < a.size:
                total += a[k]
        out[i] = total
