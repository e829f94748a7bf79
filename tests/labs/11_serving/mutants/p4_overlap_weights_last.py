# problem: overlap
# loses: overlap-equal, overlap-any
# reason: race on the weights|takes too long


def overlapped(chunks, buffers):
    """Return the operations of a job, as tuples, in the order of issue."""
    found = []
    for chunk in range(chunks):
        stream = buffer = chunk % buffers
        found += [(what, stream, chunk, buffer) for what in ("in", "kernel", "out")]
    return [*found, ("weights", 0)]
