# problem: smooth
# loses: smooth-right, smooth-once
# reason: runs on the host


BLOCK = 128
RADIUS = 4
WINDOW = BLOCK + 2 * RADIUS


def smooth(a, out):
    for i in range(out.size):
        out[i] = a[max(i - RADIUS, 0) : i + RADIUS + 1].sum()
