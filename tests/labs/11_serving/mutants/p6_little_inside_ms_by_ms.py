# problem: little
# loses: little-inside
# reason: wrong value|ZeroDivision


def in_flight(first, second):
    return (second[2] - first[2]) / (second[0] - first[0])


def mean_inside(trace, begin, end):
    return sum(1 for ms in range(int(begin), int(end)) for a, b in trace if a <= ms < b) / (int(end) - int(begin))


def capacity(batches, most):
    begin, end, requests = np.array(batches, float).T
    each, fixed = np.polyfit(requests, end - begin, 1)
    return float(1000 * most / (fixed + each * most))


def batch_limit(fixed, each, rate):
    if rate * each >= 1000:
        raise ValueError("none")
    return max(1, math.ceil(rate * fixed / (1000 - rate * each)))
