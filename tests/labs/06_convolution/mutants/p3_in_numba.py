# problem: im2col
# loses: im2col-right, im2col-stores, im2col-loads
# reason: wrong language


from warplab import cuda


@cuda.jit
def im2col(x, columns, n, c, h, w, r, s, p, q, padding, stride, dilation):
    i = cuda.grid(1)
    if i < columns.size:
        columns[0, i] = x[0, 0, 0, 0]
