# problem: bound
# loses: bound-steps, bound-any
# reason: error_bound is not written yet


def error_bound(w, q, scale, step):
    """Return a bound of the error of a result; `w`, `q`: arrays of (m,), float64 and int8."""
