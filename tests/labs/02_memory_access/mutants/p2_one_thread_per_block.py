# problem: grey
# loses: grey-right, grey-sectors, grey-traffic
# reason: one thread does too much of the work[\s\S]*thread 0 of block
from warplab import cuda


@cuda.jit
def grey(pixels, out):
    if cuda.threadIdx.x == 0:
        first = cuda.grid(1)
        for i in range(first, min(first + BLOCK, out.size)):
            out[i] = (2 * pixels[i, 0] + 5 * pixels[i, 1] + pixels[i, 2]) / 8
