# problem: im2col
# loses: im2col-right, im2col-stores, im2col-loads
# reason: runs on the host


import numpy as np


def im2col(x, columns, n, c, h, w, r, s, p, q, padding, stride, dilation):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    for row, (channel, i, j) in enumerate(np.ndindex(c, r, s)):
        met = x[:, channel, i * dilation :: stride, j * dilation :: stride]
        columns[row] = met[:, :p, :q].ravel()
