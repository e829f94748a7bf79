def overlapped(chunks, buffers):
    """Each operation has a stream of its own, and waits for the one that it needs."""
    found, stream = [("weights", 0), ("record", 0, "weights")], 0
    for chunk in range(chunks):
        after = f"out {chunk - buffers}"
        for what in ("in", "kernel", "out"):
            stream += 1
            found += [("wait", stream, "weights"), ("wait", stream, after), (what, stream, chunk, chunk % buffers)]
            after = f"{what} {chunk}"
            found.append(("record", stream, after))
    return found
