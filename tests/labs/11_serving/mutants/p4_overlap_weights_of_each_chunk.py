# problem: overlap
# loses: overlap-equal, overlap-any
# reason: the copy of the weights is there more than once


def overlapped(chunks, buffers):
    """Return the operations of a job, as tuples, in the order of issue."""
    found = [("weights", 0), ("record", 0, "weights")]
    found += [("wait", stream, "weights") for stream in range(1, buffers)]
    for chunk in range(chunks):
        stream = buffer = chunk % buffers
        found += [("weights", stream)]
        found += [(what, stream, chunk, buffer) for what in ("in", "kernel", "out")]
    return found
