# problem: bound
# loses: bound-any
# reason: the error can be larger


def error_bound(w, q, scale, step):
    """Return a bound of the error of a result; `w`, `q`: arrays of (m,), float64 and int8."""
    used = q.astype(float) * scale
    return float(np.sum(np.abs(used) * step / 2))
