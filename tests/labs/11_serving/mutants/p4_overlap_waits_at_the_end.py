# problem: overlap
# loses: overlap-equal, overlap-any
# reason: race on the weights


def overlapped(chunks, buffers):
    """Return the operations of a job, as tuples, in the order of issue."""
    found = [("weights", 0), ("record", 0, "weights")]
    for chunk in range(chunks):
        stream = buffer = chunk % buffers
        found += [(what, stream, chunk, buffer) for what in ("in", "kernel", "out")]
    found += [("wait", stream, "weights") for stream in range(1, buffers)]
    return found
