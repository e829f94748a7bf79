# problem: overlap
# loses: overlap-equal, overlap-any
# reason: overwrites chunk|takes too long


def overlapped(chunks, buffers):
    """Return the operations of a job, as tuples, in the order of issue."""
    found = [("weights", 0), ("record", 0, "weights")]
    found += [("wait", stream, "weights") for stream in range(1, buffers)]
    for what in ("in", "kernel", "out"):
        found += [(what, chunk % buffers, chunk, chunk % buffers) for chunk in range(chunks)]
    return found
