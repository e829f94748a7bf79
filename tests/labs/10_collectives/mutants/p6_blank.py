# problem: add
# loses: add-right, add-counted
# reason: not written yet


@cuda.jit
def add_slice(own, peer, number, slices):
    """own[i] += peer[i] for the elements of slice `number`; any number of threads."""
