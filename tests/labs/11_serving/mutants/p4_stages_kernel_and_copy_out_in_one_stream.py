# problem: stages
# loses: stages-whole, stages-few
# reason: the copy out of chunk 0 is in the wrong stream


def by_stage(chunks, buffers):
    """Return the operations of a job with a stream for each stage."""
    found = [("weights", 0)]
    for chunk in range(chunks):
        buffer = chunk % buffers
        if chunk >= buffers:
            found += [("wait", 0, f"out {chunk - buffers}")]
        found += [("in", 0, chunk, buffer), ("record", 0, "in")]
        found += [("wait", 1, "in"), ("kernel", 1, chunk, buffer), ("record", 1, "computed")]
        found += [("wait", 2, "computed"), ("out", 2, chunk, buffer), ("record", 2, f"out {chunk}")]
    return [(what, min(stream, 1), *rest) for what, stream, *rest in found]
