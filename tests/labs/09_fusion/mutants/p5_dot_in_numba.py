# problem: dot
# loses: dot-points, dot-any, dot-counted
# reason: wrong language


@cuda.jit
def conv_int8(x, filters, scale, bias, y, n, h, w, words, k, r, s):
    i = cuda.grid(1)
    if i < n * h * w * k:
        y[0, 0, 0, 0] = 1
