# problem: add
# loses: add-right, add-counted
# reason: peer was modified


@cuda.jit
def add_slice(own, peer, number, slices):
    """own[i] += peer[i] for the elements of slice `number`; any number of threads."""
    n = own.size
    for i in range(number * n // slices + cuda.grid(1), (number + 1) * n // slices, cuda.gridsize(1)):
        own[i] += peer[i]
        peer[i] = own[i]
