# problem: stages
# loses: stages-whole, stages-few
# reason: other streams than those of the three stages


def by_stage(chunks, buffers):
    """Return the operations of a job with a stream for each stage."""
    found = [("weights", 0), ("record", 0, "weights")]
    found += [("wait", stream, "weights") for stream in range(1, max(4, buffers))]
    for chunk in range(chunks):
        found += [(what, chunk % buffers, chunk, chunk % buffers) for what in ("in", "kernel", "out")]
    return found
