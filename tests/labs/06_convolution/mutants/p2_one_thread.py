# problem: direct
# loses: direct-plain, direct-any, direct-work
# reason: one thread does too much of the work(.|\n)*by thread 0 of block 0: (nearly )?all of it

import numpy as np

from warplab import cuda


@cuda.jit
def direct(x, w, y, padding, stride):
    """y = x convolved with w, NCHW; beyond the border of an image is its nearest pixel."""
    if cuda.grid(1) > 0:
        return
    for i in range(0, y.size, 1):
        column = i % y.shape[3]
        row = i // y.shape[3] % y.shape[2]
        k = i // y.shape[3] // y.shape[2] % y.shape[1]
        n = i // y.shape[3] // y.shape[2] // y.shape[1]
        total = np.float32(0)
        for c in range(w.shape[1]):
            for r in range(w.shape[2]):
                a = min(max(row * stride - padding + r, 0), x.shape[2] - 1)
                for s in range(w.shape[3]):
                    b = min(max(column * stride - padding + s, 0), x.shape[3] - 1)
                    total += x[n, c, a, b] * w[k, c, r, s]
        y[n, k, row, column] = total
