def in_flight(first, second):
    (t0, n0, s0), (t1, n1, s1) = first, second
    lam = (n1 - n0) / (t1 - t0)
    return lam * ((s1 - s0) / (n1 - n0))


def mean_inside(trace, begin, end):
    t = np.array(trace)
    return np.clip(np.minimum(t[:, 1], end) - np.maximum(t[:, 0], begin), 0, None).sum() / (end - begin)


def capacity(batches, most):
    A = np.array([[1, n] for _, _, n in batches])
    t = np.array([e - b for b, e, _ in batches])
    a, b = np.linalg.solve(A.T @ A, A.T @ t)
    return most / (a + b * most) * 1000


def batch_limit(fixed, each, rate):
    if rate * each >= 1000:
        raise ValueError("none")
    return max(1, math.ceil(rate * fixed / (1000 - rate * each)))
