# problem: pad
# loses: pad-once
# reason: too many global store bytes

import numpy as np

from warplab import cuda


@cuda.jit
def pad(a, out):
    """out = a as float16 in the first rows and columns, 0 elsewhere."""
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = np.float16(0)
        if row < a.shape[0] and column < a.shape[1]:
            out[row, column] = np.float16(a[row, column])
