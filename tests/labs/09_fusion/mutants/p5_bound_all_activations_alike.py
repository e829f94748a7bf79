# problem: bound
# loses: bound-steps, bound-any
# reason: the error can be larger


def error_bound(w, q, scale, step):
    """Return a bound of the error of a result; `w`, `q`: arrays of (m,), float64 and int8."""
    used = q.astype(float) * scale
    return float(max(abs(np.sum(w * x - used * step * np.rint(x / step))) for x in np.linspace(-127, 127, 1017) * step))
