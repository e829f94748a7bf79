# problem: add
# loses: add-right, add-counted
# reason: too many warp instructions|one thread does too much|warp efficiency


@cuda.jit
def add_slice(own, peer, number, slices):
    """own[i] += peer[i] for the elements of slice `number`; any number of threads."""
    n = own.size
    lane = cuda.threadIdx.x % 32
    for turn in range(32):
        if turn == lane:
            for i in range(number * n // slices + cuda.grid(1), (number + 1) * n // slices, cuda.gridsize(1)):
                own[i] += peer[i]
        cuda.syncwarp()
