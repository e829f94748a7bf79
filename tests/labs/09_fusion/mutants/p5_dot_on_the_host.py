# problem: dot
# loses: dot-points, dot-any, dot-counted
# reason: runs on the host


def conv_int8(x, filters, scale, bias, y, n, h, w, words, k, r, s):
    y[:] = 0
