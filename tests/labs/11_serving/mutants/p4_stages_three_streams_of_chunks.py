# problem: stages
# loses: stages-whole, stages-few
# reason: in the wrong stream


def by_stage(chunks, buffers):
    found = [("weights", 0), ("record", 0, "w"), ("wait", 1, "w"), ("wait", 2, "w")]
    for c in range(chunks):
        s, b = c % 3, c % buffers
        if c >= buffers:
            found += [("wait", s, f"o{c - buffers}")]
        found += [("in", s, c, b), ("kernel", s, c, b), ("out", s, c, b), ("record", s, f"o{c}")]
    return found
