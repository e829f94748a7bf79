from itertools import pairwise


def pieces(kernels, begin, end):
    """The sample cut at every begin and end, with the kernels that run in each piece."""
    cuts = sorted({begin, end, *(t for k in kernels for t in k[:2] if begin < t < end)})
    return [(b - a, [k for k in kernels if k[0] <= a and b <= k[1]]) for a, b in pairwise(cuts)]


def nvml_utilisation(kernels, begin, end):
    return sum(time for time, running in pieces(kernels, begin, end) if running) / (end - begin) * 100


def sm_activity(kernels, begin, end, sms):
    return (
        sum(time * sum(k[2] for k in running) for time, running in pieces(kernels, begin, end))
        / (end - begin)
        / sms
        * 100
    )


def occupancy(kernels, begin, end, most):
    parts = pieces(kernels, begin, end)
    active = sum(time * k[2] for time, running in parts for k in running)
    return sum(time * k[2] * k[3] for time, running in parts for k in running) / active / most * 100 if active else 0.0


def least_load(utilisation, sms, most):
    return utilisation / (sms * most)
