# problem: border
# loses: border-sides, border-all, border-loads
# reason: wrong language


from warplab import cuda


@cuda.jit
def depthwise(x, filters, y, channels, h, w):
    column, row, plane = cuda.grid(3)
    if row < h and column < w:
        y[plane // channels, plane % channels, row, column] = 0
