# problem: overlap
# loses: overlap-equal, overlap-any
# reason: returns an empty list


def overlapped(chunks, buffers):
    """Return the operations of a job, as tuples, in the order of issue."""
    return []
