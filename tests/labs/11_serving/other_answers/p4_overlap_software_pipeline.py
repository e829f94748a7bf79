def overlapped(chunks, buffers):
    """Steps of a pipeline, the last stage first; with fewer than three buffers chunk after chunk."""
    behind = 1 if buffers >= 3 else 0  # steps by which a stage is behind the one before it
    found = [("weights", 0)]
    for step in range(chunks + 2 * behind):
        stages = [("in", 0, step), ("kernel", 1, step - behind), ("out", 2, step - 2 * behind)]
        for what, stream, chunk in reversed(stages) if behind else stages:
            if not 0 <= chunk < chunks:
                continue
            after = {"in": f"out {chunk - buffers}", "kernel": f"in {chunk}", "out": f"kernel {chunk}"}[what]
            found += [("wait", stream, after), (what, stream, chunk, chunk % buffers)]
            found += [("record", stream, f"{what} {chunk}")]
    return found
