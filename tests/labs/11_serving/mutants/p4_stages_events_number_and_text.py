# problem: stages
# loses: stages-few
# reason: race on buffer


def by_stage(chunks, buffers):
    found = [("weights", 0)]
    for chunk in range(chunks):
        buffer = chunk % buffers
        if chunk >= buffers:
            found += [("wait", 0, chunk - buffers)]
        found += [("in", 0, chunk, buffer), ("record", 0, "in")]
        found += [("wait", 1, "in"), ("kernel", 1, chunk, buffer), ("record", 1, "computed")]
        found += [("wait", 2, "computed"), ("out", 2, chunk, buffer), ("record", 2, str(chunk))]
    return found
