# problem: add
# loses: add-right, add-counted
# reason: runs on the host


def add_slice(own, peer, number, slices):
    """own[i] += peer[i] for the elements of slice `number`; any number of threads."""
    n = own.size
    mine = slice(number * n // slices, (number + 1) * n // slices)
    own[mine] += peer[mine]
