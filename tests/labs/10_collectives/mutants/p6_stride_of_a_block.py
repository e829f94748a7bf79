# problem: add
# loses: add-right, add-counted
# reason: one thread does too much of the work|race|is wrong


@cuda.jit
def add_slice(own, peer, number, slices):
    """own[i] += peer[i] for the elements of slice `number`; any number of threads."""
    n = own.size
    for i in range(number * n // slices + cuda.grid(1), (number + 1) * n // slices, cuda.blockDim.x):
        own[i] += peer[i]
