"""Lab 06's direct kernel in Numba."""

import numpy as np

from warplab import cuda


@cuda.jit
def conv_direct(x, w, bias, y, padding, stride, dilation, relu):
    """Do as 1_direct.cu: a thread for each element of y. NCHW; the number of groups follows from the shapes.

    `bias` has a float32 for each filter, or none at all; `padding`, `stride`, `dilation` are pairs, `relu` 0 or 1.
    """
    i = cuda.grid(1)
    if i >= y.size:
        return
    _, filters, height, width = y.shape
    q = i % width
    p = i // width % height
    k = i // width // height % filters
    n = i // width // height // filters
    first_c = k // (filters // (x.shape[1] // w.shape[1])) * w.shape[1]  # of the filter's group
    total = np.float32(0)
    for c in range(w.shape[1]):
        for r in range(w.shape[2]):
            row = p * stride[0] - padding[0] + r * dilation[0]
            for s in range(w.shape[3]):
                column = q * stride[1] - padding[1] + s * dilation[1]
                if 0 <= row < x.shape[2] and 0 <= column < x.shape[3]:
                    total += x[n, first_c + c, row, column] * w[k, c, r, s]
    if bias.size:
        total += bias[k]
    if relu and total < 0:
        total = np.float32(0)
    y[n, k, p, q] = total
