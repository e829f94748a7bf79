# problem: overlap
# loses: overlap-equal, overlap-any
# reason: race on buffer


def overlapped(chunks, buffers):
    """Return the operations of a job, as tuples, in the order of issue."""
    found = [("weights", 0)]
    for chunk in range(chunks):
        buffer = chunk % buffers
        found += [("in", 0, chunk, buffer), ("record", 0, "in")]
        found += [("wait", 1, "in"), ("kernel", 1, chunk, buffer), ("record", 1, "computed")]
        found += [("wait", 2, "computed"), ("out", 2, chunk, buffer), ("record", 2, "out")]
    return found
