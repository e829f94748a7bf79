# problem: stages
# loses: stages-whole, stages-few
# reason: the copy in of chunk 0 is in the wrong stream


def by_stage(chunks, buffers):
    found = [("weights", 2)]
    for chunk in range(chunks):
        buffer = chunk % buffers
        if chunk >= buffers:
            found += [("wait", 2, f"out {chunk - buffers}")]
        found += [("in", 2, chunk, buffer), ("record", 2, "in")]
        found += [("wait", 1, "in"), ("kernel", 1, chunk, buffer), ("record", 1, "computed")]
        found += [("wait", 0, "computed"), ("out", 0, chunk, buffer), ("record", 0, f"out {chunk}")]
    return found
