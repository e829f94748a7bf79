# problem: add
# loses: add-counted
# reason: sectors


@cuda.jit
def add_slice(own, peer, number, slices):
    """own[i] += peer[i] for the elements of slice `number`; any number of threads."""
    n = own.size
    first, last = number * n // slices, (number + 1) * n // slices
    share = (last - first + cuda.gridsize(1) - 1) // cuda.gridsize(1)
    for i in range(first + cuda.grid(1) * share, min(first + (cuda.grid(1) + 1) * share, last)):
        own[i] += peer[i]
