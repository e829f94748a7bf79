# problem: bound
# loses: bound-any
# reason: the error can be larger


def error_bound(w, q, scale, step):
    """Return a bound of the error of a result; `w`, `q`: arrays of (m,), float64 and int8."""
    used = q.astype(float) * scale
    w, used = w[q != 0], used[q != 0]
    return float(np.sum(np.abs(w - used) * 127 * step + np.abs(used) * step / 2))
