# problem: add
# loses: add-right, add-counted
# reason: one thread does too much of the work


@cuda.jit
def add_slice(own, peer, number, slices):
    """own[i] += peer[i] for the elements of slice `number`; any number of threads."""
    n = own.size
    if cuda.blockIdx.x == 0:
        for i in range(number * n // slices + cuda.threadIdx.x, (number + 1) * n // slices, cuda.blockDim.x):
            own[i] += peer[i]
