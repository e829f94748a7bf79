def overlapped(chunks, buffers):
    ops = [("weights", 0), ("record", 0, "w")]
    for c in range(chunks):
        s, b = c + 1, c % buffers
        ops.append(("wait", s, "w"))
        if c >= buffers:
            ops.append(("wait", s, f"done{c - buffers}"))
        ops += [("in", s, c, b), ("kernel", s, c, b), ("out", s, c, b), ("record", s, f"done{c}")]
    return ops
