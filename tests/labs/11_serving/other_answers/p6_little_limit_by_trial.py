def in_flight(first, second):
    return (second[2] - first[2]) / (second[0] - first[0])


def mean_inside(trace, begin, end):
    return sum(max(0.0, min(b, end) - max(a, begin)) for a, b in trace) / (end - begin)


def capacity(batches, most):
    begin, end, requests = np.array(batches, float).T
    each, fixed = np.polyfit(requests, end - begin, 1)
    return float(1000 * most / (fixed + each * most))


def batch_limit(fixed, each, rate):
    if 1 / each <= rate / 1000:
        raise ValueError("none")
    n = 1
    while n / (fixed + each * n) < rate / 1000:
        n += 1
    return n
