def in_flight(first, second):
    return (second[2] - first[2]) / (second[0] - first[0])


def mean_inside(trace, begin, end):
    changes = sorted([(arrival, 1) for arrival, _ in trace] + [(answer, -1) for _, answer in trace])
    area, inside, at = 0.0, 0, begin
    for time, change in changes:
        now = min(max(time, begin), end)
        area += inside * (now - at)
        inside, at = inside + change, now
    return (area + inside * (end - at)) / (end - begin)


def capacity(batches, most):
    sizes = [n for _, _, n in batches]
    times = [b - a for a, b, _ in batches]
    n, t = sum(sizes) / len(sizes), sum(times) / len(times)
    slope = sum((s - n) * (d - t) for s, d in zip(sizes, times, strict=True)) / sum((s - n) ** 2 for s in sizes)
    return most / (t + slope * (most - n)) * 1000


def batch_limit(fixed, each, rate):
    if rate >= 1000 / each:
        raise ValueError("too much")
    size = 1
    while 1000 * size / (fixed + each * size) < rate:
        size += 1
    return size
