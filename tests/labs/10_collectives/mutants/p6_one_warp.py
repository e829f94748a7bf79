# problem: add
# loses: add-right, add-counted
# reason: one thread does too much of the work


@cuda.jit
def add_slice(own, peer, number, slices):
    """own[i] += peer[i] for the elements of slice `number`; any number of threads."""
    n = own.size
    if cuda.grid(1) < 32:
        for i in range(number * n // slices + cuda.grid(1), (number + 1) * n // slices, 32):
            own[i] += peer[i]
