# problem: overlap
# loses: overlap-equal, overlap-any
# reason: overlapped is not written yet


def overlapped(chunks, buffers):
    """Return the operations of a job, as tuples, in the order of issue."""
