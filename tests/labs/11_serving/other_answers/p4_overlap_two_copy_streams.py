def overlapped(chunks, buffers):
    """Copies in one stream, kernels and copies back in a stream per buffer."""
    found = [("weights", 99)]
    for c in range(chunks):
        b = c % buffers
        if c >= buffers:
            found.append(("wait", 99, f"free {b}"))
        found += [
            ("in", 99, c, b),
            ("record", 99, f"in {b}"),
            ("wait", b, f"in {b}"),
            ("kernel", b, c, b),
            ("out", b, c, b),
            ("record", b, f"free {b}"),
        ]
    return found
