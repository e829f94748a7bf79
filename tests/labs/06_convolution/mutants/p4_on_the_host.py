# problem: implicit
# loses: implicit-plain, implicit-any, implicit-gemm
# reason: runs on the host


import numpy as np


def sources(elements, n, h, w, c, r, s, p, q, padding, stride, dilation):
    numbers = np.pad(np.arange(n * h * w * c).reshape(n, h, w, c) + 1, ((0, 0), (padding,) * 2, (padding,) * 2, (0, 0)))
    for i, j in np.ndindex(r, s):
        met = numbers[:, i * dilation :: stride, j * dilation :: stride][:, :p, :q]
        elements.reshape(n, p, q, r, s, c)[:, :, :, i, j] = met - 1


def implicit_gemm(x, filters, y, n, h, w, c, k, r, s, p, q, padding, stride, dilation):
    elements = np.empty((n * p * q, r * s * c), np.int32)
    sources(elements, n, h, w, c, r, s, p, q, padding, stride, dilation)
    matrix = np.where(elements < 0, 0, x.ravel()[elements])
    y[:] = (matrix @ filters.reshape(k, -1).T).reshape(n, p, q, k)
