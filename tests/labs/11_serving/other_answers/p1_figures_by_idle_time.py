def nvml_utilisation(kernels, begin, end):
    idle, at = 0.0, begin
    for a, b, *_ in sorted(kernels):
        a, b = max(a, begin), min(b, end)
        if a > at and at < end:
            idle += min(a, end) - at
        at = max(at, b)
    idle += max(0.0, end - at)
    return 100 * (1 - idle / (end - begin))


def sm_activity(kernels, begin, end, sms):
    return (
        100
        * sum(max(0.0, min(last, end) - max(first, begin)) * used for first, last, used, _ in kernels)
        / sms
        / (end - begin)
    )


def occupancy(kernels, begin, end, most):
    active = resident = 0.0
    for first, last, used, warps in kernels:
        time = max(0.0, min(last, end) - max(first, begin)) * used
        active, resident = active + time, resident + time * warps
    return 100 * resident / active / most if active else 0.0


def least_load(utilisation, sms, most):
    return utilisation / sms / most
