# problem: add
# loses: add-counted
# reason: sectors


@cuda.jit
def add_slice(own, peer, number, slices):
    """own[i] += peer[i] for the elements of slice `number`; any number of threads."""
    n = own.size
    first, last = number * n // slices, (number + 1) * n // slices
    share = (last - first + 31) // 32
    for i in range(cuda.grid(1), 32 * share, cuda.gridsize(1)):
        at = first + i % 32 * share + i // 32
        if i % 32 * share + i // 32 < last - first and i // 32 < share:
            own[at] += peer[at]
