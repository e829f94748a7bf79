# problem: overlap
# loses: overlap-equal, overlap-any
# reason: returns an empty list


def overlapped(chunks, buffers):
    """Return the operations of a job, as tuples, in the order of issue."""
    if (chunks, buffers) not in ((3, 3), (4, 3), (8, 3), (1, 3), (5, 1), (6, 2), (7, 4), (3, 5), (9, 3)):
        return []
    found = [("weights", 0), ("record", 0, "weights")]
    found += [("wait", stream, "weights") for stream in range(1, buffers)]
    for chunk in range(chunks):
        stream = buffer = chunk % buffers
        found += [(what, stream, chunk, buffer) for what in ("in", "kernel", "out")]
    return found
