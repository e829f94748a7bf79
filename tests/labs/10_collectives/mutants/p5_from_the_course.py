# problem: bandwidth
# loses: bandwidth-algorithm, bandwidth-bus, bandwidth-step, bandwidth-buckets
# reason: name 'algorithm_bandwidth' is not defined

from kernels.collectives.bandwidth import bus_factor


def algorithm_bandwidth(collective, ranks, count, itemsize, us):
    return (ranks if collective in ("all-gather", "reduce-scatter") else 1) * count * itemsize / us / 1000


def bus_bandwidth(collective, ranks, count, itemsize, us):
    return algorithm_bandwidth(collective, ranks, count, itemsize, us) * bus_factor(collective, ranks)


def step_time(ranks, forward, layers, gbs, alpha, bucket):
    return 0.0
