# problem: grey
# loses: grey-right, grey-sectors, grey-traffic
# reason: runs on the host


BLOCK = 128
FLOATS = 3 * BLOCK


def grey(pixels, out):
    out[:] = (2 * pixels[:, 0] + 5 * pixels[:, 1] + pixels[:, 2]) / 8
