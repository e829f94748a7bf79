# problem: direct
# loses: direct-plain
# reason: never written

import numpy as np

from warplab import cuda


@cuda.jit
def direct(x, w, y, padding, stride):
    """y = x convolved with w, NCHW; beyond the border of an image is its nearest pixel."""
    i = np.int32(np.int16(cuda.grid(1)))
    if i < y.size:
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
