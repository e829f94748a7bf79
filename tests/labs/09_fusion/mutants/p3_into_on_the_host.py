# problem: into
# loses: into-one, into-any
# reason: runs on the host


def cbr_into(x, filters, bias, y, n, c, pixels, k, channels, start):
    y[:, start : start + k] = np.maximum(filters @ x + bias[:, None], 0)
