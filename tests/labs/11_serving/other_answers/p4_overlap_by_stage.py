def overlapped(chunks, buffers):
    found = [("weights", 0)]
    for chunk in range(chunks):
        at = chunk % buffers
        found += [("wait", 0, chunk - buffers)] if chunk >= buffers else []
        found += [("in", 0, chunk, at), ("record", 0, f"in {chunk}"), ("wait", 1, f"in {chunk}")]
        found += [("kernel", 1, chunk, at), ("record", 1, f"computed {chunk}"), ("wait", 2, f"computed {chunk}")]
        found += [("out", 2, chunk, at), ("record", 2, chunk)]
    return found
