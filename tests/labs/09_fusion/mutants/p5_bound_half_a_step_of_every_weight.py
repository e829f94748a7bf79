# problem: bound
# loses: bound-steps, bound-any
# reason: says more than the error can be


def error_bound(w, q, scale, step):
    """Return a bound of the error of a result; `w`, `q`: arrays of (m,), float64 and int8."""
    used = q.astype(float) * scale
    return float(np.sum(scale / 2 * 127 * step + np.abs(used) * step / 2))
