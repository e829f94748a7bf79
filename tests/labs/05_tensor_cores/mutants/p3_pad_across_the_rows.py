# problem: pad
# loses: pad-once
# reason: sectors per (load|store) request

import numpy as np

from warplab import cuda


@cuda.jit
def pad(a, out):
    t = 32 * cuda.threadIdx.y + cuda.threadIdx.x
    row, column = 8 * cuda.blockIdx.y + t % 8, 32 * cuda.blockIdx.x + t // 8
    if row < out.shape[0] and column < out.shape[1]:
        value = np.float32(0)
        if row < a.shape[0] and column < a.shape[1]:
            value = a[row, column]
        out[row, column] = np.float16(value)
