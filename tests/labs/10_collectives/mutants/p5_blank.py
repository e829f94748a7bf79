# problem: bandwidth
# loses: bandwidth-algorithm, bandwidth-bus, bandwidth-step, bandwidth-buckets
# reason: not written yet


def algorithm_bandwidth(collective, ranks, count, itemsize, us):
    """Return the algorithm bandwidth in GB/s of a collective that took us µs."""


def bus_bandwidth(collective, ranks, count, itemsize, us):
    """Return the bus bandwidth in GB/s, as nccl-tests defines it, of a collective that took us µs."""


def step_time(ranks, forward, layers, gbs, alpha, bucket):
    """Return the µs of a training step whose all-reduces run beside its backward pass."""
