# problem: bound
# loses: bound-steps, bound-any
# reason: the error can be larger


def error_bound(w, q, scale, step):
    """Return a bound of the error of a result; `w`, `q`: arrays of (m,), float64 and int8."""
    used = q.astype(float) * scale
    return float(
        max(
            abs(w @ x - used @ np.rint(x / step) * step)
            for x in np.random.default_rng(0).uniform(-127, 127, (500, len(w))) * step
        )
    )
