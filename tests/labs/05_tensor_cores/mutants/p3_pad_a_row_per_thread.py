# problem: pad
# loses: pad-right, pad-once
# reason: one thread does too much of the work
from warplab import cuda


@cuda.jit
def pad(a, out):
    first, row = cuda.grid(2)
    if first == 0 and row < out.shape[0]:
        for column in range(out.shape[1]):
            value = np.float32(0)
            if row < a.shape[0] and column < a.shape[1]:
                value = a[row, column]
            out[row, column] = np.float16(value)
