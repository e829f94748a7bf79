# problem: bound
# loses: bound-steps, bound-any
# reason: the error can be larger


def error_bound(w, q, scale, step):
    """Return a bound of the error of a result; `w`, `q`: arrays of (m,), float64 and int8."""
    used = q.astype(float) * scale
    return float(abs(np.sum((w - used) * 127 * step)))
