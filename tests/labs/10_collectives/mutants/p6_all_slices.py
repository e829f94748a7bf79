# problem: add
# loses: add-right, add-counted
# reason: is wrong in


@cuda.jit
def add_slice(own, peer, number, slices):
    """own[i] += peer[i] for the elements of slice `number`; any number of threads."""
    n = own.size
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        own[i] += peer[i]
