def by_stage(chunks, buffers):
    found = [("weights", 0)]
    for chunk in range(chunks):
        at = chunk % buffers
        found += [("wait", 0, f"free {at}"), ("in", 0, chunk, at), ("record", 0, f"full {at}")]
        found += [("wait", 1, f"full {at}"), ("kernel", 1, chunk, at), ("record", 1, f"done {at}")]
        found += [("wait", 2, f"done {at}"), ("out", 2, chunk, at), ("record", 2, f"free {at}")]
    return found
