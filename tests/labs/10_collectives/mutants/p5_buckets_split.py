# problem: bandwidth
# loses: bandwidth-buckets
# reason: step_time returns the wrong value


def algorithm_bandwidth(collective, ranks, count, itemsize, us):
    """Return the algorithm bandwidth in GB/s of a collective that took us µs."""
    parts = ranks if collective in ("all-gather", "reduce-scatter") else 1
    return parts * count * itemsize / us / 1000


def bus_bandwidth(collective, ranks, count, itemsize, us):
    """Return the bus bandwidth in GB/s, as nccl-tests defines it, of a collective that took us µs."""
    factor = {"all-reduce": 2 * (ranks - 1) / ranks, "broadcast": 1, "reduce": 1}
    others = (ranks - 1) / ranks
    return algorithm_bandwidth(collective, ranks, count, itemsize, us) * factor.get(collective, others)


def step_time(ranks, forward, layers, gbs, alpha, bucket):
    """Return the µs of a training step whose all-reduces run beside its backward pass."""
    now, free, held = forward, 0.0, 0
    for number, (us, size) in reversed(list(enumerate(layers))):
        now, held = now + us, held + size
        while bucket > 1 and held > bucket:
            free = max(now, free) + alpha + 2 * (ranks - 1) / ranks * bucket / (gbs * 1000)
            held -= bucket
        if held >= bucket or number == 0:
            free = max(now, free) + alpha + 2 * (ranks - 1) / ranks * held / (gbs * 1000)
            held = 0
    return max(now, free)
