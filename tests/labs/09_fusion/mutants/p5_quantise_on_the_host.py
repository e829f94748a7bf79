# problem: quantise
# loses: quantise-short, quantise-any, quantise-counted
# reason: runs on the host


def quantise(w, q, scale):
    """q = w / scale, rounded, with a scale for each filter."""
    scale[:] = np.maximum(np.abs(w).max(1), 1e-30) / 127
    q[:] = np.rint(w / scale[:, None])
