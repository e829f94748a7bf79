def overlapped(chunks, buffers):
    found = [("weights", 0), ("record", 0, 0)] + [("wait", s, 0) for s in range(1, buffers)]
    for first in range(0, chunks, buffers):
        for what in ("in", "kernel", "out"):
            found += [(what, i - first, i, i - first) for i in range(first, min(first + buffers, chunks))]
    return found
