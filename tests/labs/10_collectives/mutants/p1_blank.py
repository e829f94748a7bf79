# problem: slices
# loses: slices-time, slices-best, slices-predicted
# reason: not written yet


def broadcast_time(ranks, slices, size, gbs, alpha):
    """Return the µs of a ring broadcast of size MiB over links of gbs GB/s, where each message costs alpha µs more."""


def best_slices(ranks, size, gbs, alpha):
    """Return the number of slices with which the broadcast takes the least time."""


def predicted(ranks, first, second, slices):
    """Return the µs for `slices` slices, from two measured pairs (slices, µs)."""
