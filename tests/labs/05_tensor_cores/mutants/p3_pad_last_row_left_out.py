# problem: pad
# loses: pad-right, pad-once
# reason: out is wrong

import numpy as np

from warplab import cuda


@cuda.jit
def pad(a, out):
    """out = a as float16 in the first rows and columns, 0 elsewhere."""
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        value = np.float32(0)
        if row < a.shape[0] - 1 and column < a.shape[1]:
            value = a[row, column]
        out[row, column] = np.float16(value)
