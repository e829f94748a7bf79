# problem: overlap
# loses: overlap-equal, overlap-any
# reason: takes too long


def overlapped(chunks, buffers):
    """Return the operations of a job, as tuples, in the order of issue."""
    found = [("weights", 0), ("record", 0, "weights")]
    for chunk in range(chunks):
        stream = buffer = chunk % buffers
        found += [("in", stream, chunk, buffer), ("wait", stream, "weights"), ("wait", stream, "out")]
        found += [("kernel", stream, chunk, buffer), ("out", stream, chunk, buffer), ("record", stream, "out")]
    return found
