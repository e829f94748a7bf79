# problem: distances
# loses: distances-right, distances-sectors, distances-banks
# reason: runs on the host


def distances(x, y, d):
    d[:] = ((x[:, None] - y[None]) ** 2).sum(axis=2)
