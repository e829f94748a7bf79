# problem: little
# loses: little-capacity
# reason: capacity returns the wrong value


def in_flight(first, second):
    """Return the mean number of requests in the server between two readings (time, answered, seconds)."""
    (time, answered, seconds), (later, more, longer) = first, second
    rate = (more - answered) / (later - time)
    return rate * (longer - seconds) / (more - answered)


def mean_inside(trace, begin, end):
    """Return the mean number of requests in the server from begin to end; `trace`: (arrival, answer) of each, in ms."""
    return sum(max(0.0, min(answer, end) - max(arrival, begin)) for arrival, answer in trace) / (end - begin)


def capacity(batches, most):
    """Return the requests per second in batches of `most`; `batches`: (begin, end, requests) of some, in ms."""
    begin, end, requests = np.array(batches, float).T
    return float(np.max(1000 * requests / (end - begin)))


def batch_limit(fixed, each, rate):
    """Return the smallest batch with which an engine answers `rate` requests per second; ValueError if none does."""
    if rate * each >= 1000:
        raise ValueError(f"no batch is large enough for {rate} requests per second")
    return max(1, math.ceil(rate * fixed / (1000 - rate * each)))
