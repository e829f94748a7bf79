# problem: slices
# loses: slices-time
# reason: broadcast_time returns the wrong value


def broadcast_time(ranks, slices, size, gbs, alpha):
    """Return the µs of a ring broadcast of size MiB over links of gbs GB/s, where each message costs alpha µs more."""
    return alpha + (slices + ranks - 2) * size * 2**20 / slices / (gbs * 1000)


def best_slices(ranks, size, gbs, alpha):
    """Return the number of slices with which the broadcast takes the least time."""
    whole = size * 2**20 / (gbs * 1000)
    near = max(1, math.floor(math.sqrt((ranks - 2) * whole / alpha)))
    return min((near, near + 1), key=lambda slices: (slices + ranks - 2) * (alpha + whole / slices))


def predicted(ranks, first, second, slices):
    """Return the µs for `slices` slices, from two measured pairs (slices, µs)."""
    (s, t), (u, v) = first, second
    step, other = t / (s + ranks - 2), v / (u + ranks - 2)
    whole = (step - other) / (1 / s - 1 / u)
    alpha = step - whole / s
    return (slices + ranks - 2) * (alpha + whole / slices)
