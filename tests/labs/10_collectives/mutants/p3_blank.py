# problem: sums
# loses: sums-scatter, sums-gather, sums-reduce
# reason: not written yet


def reduce_scatter(ring, slices):
    """Return the messages of a reduce-scatter, all of them added: a list of (step, source, destination, slice)."""


def all_gather(ring, slices):
    """Return the messages of an all-gather, none of them added: a list of (step, source, destination, slice)."""


def all_reduce(ring, slices):
    """Return the messages of an all-reduce: a list of (step, source, destination, slice, add)."""
