# problem: add
# loses: add-right, add-counted
# reason: race|is wrong


@cuda.jit
def add_slice(own, peer, number, slices):
    """own[i] += peer[i] for the elements of slice `number`; any number of threads."""
    n = own.size
    for i in range(number * n // slices + cuda.threadIdx.x, (number + 1) * n // slices, cuda.gridsize(1)):
        own[i] += peer[i]
