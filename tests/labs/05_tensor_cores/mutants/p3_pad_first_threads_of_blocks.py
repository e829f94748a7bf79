# problem: pad
# loses: pad-right, pad-once
# reason: one thread does too much of the work
from warplab import cuda


@cuda.jit
def pad(a, out):
    if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
        left, top = cuda.grid(2)
        for row in range(top, min(top + cuda.blockDim.y, out.shape[0])):
            for column in range(left, min(left + cuda.blockDim.x, out.shape[1])):
                value = np.float32(0)
                if row < a.shape[0] and column < a.shape[1]:
                    value = a[row, column]
                out[row, column] = np.float16(value)
