# problem: sums
# loses: sums-reduce
# reason: message 0 is not one


def reduce_scatter(ring, slices):
    """Return the messages of a reduce-scatter, all of them added: a list of (step, source, destination, slice)."""
    k, part = len(ring), slices // len(ring)
    return [
        (hop * part + i, ring[place], ring[(place + 1) % k], ring[(place - hop - 1) % k] * part + i)
        for place in range(k)
        for hop in range(k - 1)
        for i in range(part)
    ]


def all_gather(ring, slices):
    """Return the messages of an all-gather, none of them added: a list of (step, source, destination, slice)."""
    k, part = len(ring), slices // len(ring)
    return [
        (hop * part + i, ring[place], ring[(place + 1) % k], ring[(place - hop) % k] * part + i)
        for place in range(k)
        for hop in range(k - 1)
        for i in range(part)
    ]


def all_reduce(ring, slices):
    """Return the messages of an all-reduce: a list of (step, source, destination, slice, add)."""
    later = (len(ring) - 1) * slices // len(ring)
    sums = [message for message in reduce_scatter(ring, slices)]
    return sums + [(step + later, *message) for step, *message in all_gather(ring, slices)]
