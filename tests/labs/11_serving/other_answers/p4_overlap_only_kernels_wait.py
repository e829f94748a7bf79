def overlapped(chunks, buffers):
    """The first copies of the streams do not wait for the weights, the kernels do."""
    weights = buffers
    found = [("weights", weights), ("record", weights, "there")]
    for chunk in range(chunks):
        stream = chunk % buffers
        found.append(("in", stream, chunk, stream))
        if chunk < buffers:
            found.append(("wait", stream, "there"))
        found.append(("kernel", stream, chunk, stream))
        found.append(("out", stream, chunk, stream))
    return found
