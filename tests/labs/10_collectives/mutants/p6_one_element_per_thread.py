# problem: add
# loses: add-right, add-counted
# reason: wrong in|modified|not written


@cuda.jit
def add_slice(own, peer, number, slices):
    """own[i] += peer[i] for the elements of slice `number`; any number of threads."""
    n = own.size
    i = number * n // slices + cuda.grid(1)
    if i < (number + 1) * n // slices:
        own[i] += peer[i]
