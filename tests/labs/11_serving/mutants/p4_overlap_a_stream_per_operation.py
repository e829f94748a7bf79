# problem: overlap
# loses: overlap-equal, overlap-any
# reason: race on buffer


def overlapped(chunks, buffers):
    """Return the operations of a job, as tuples, in the order of issue."""
    found = [("weights", 0), ("record", 0, "weights")]
    found += [("wait", stream, "weights") for stream in range(1, buffers)]
    for chunk in range(chunks):
        buffer = chunk % buffers
        found += [(what, i, chunk, buffer) for i, what in enumerate(("in", "kernel", "out"))]
    return found
