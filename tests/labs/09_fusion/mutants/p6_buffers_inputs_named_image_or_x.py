# problem: buffers
# loses: buffers-life
# reason: other tensors than nodes write


def lifetimes(graph, pixels):
    """Return (bytes, first launch, last launch) of each tensor that nodes write, by name."""
    found = {}
    sizes = channels(graph)
    for number, node in enumerate(graph["nodes"]):
        touched = {*node["inputs"], *(tensor for tensor, _, _ in node["outputs"])} - {"image", "x"}
        for name in touched:
            first = found[name][1] if name in found else number
            found[name] = (4 * sizes[name] * pixels, first, number)
    for name in graph["outputs"]:
        found[name] = (*found[name][:2], len(graph["nodes"]))
    return found


def place(tensors, limit):
    """Return the offset of each tensor, by name, a multiple of 256; `tensors`: what lifetimes returns."""
    offsets = {}
    for name in sorted(tensors, key=lambda name: -tensors[name][0]):
        size, first, last = tensors[name]
        offset = 0
        for other in sorted(offsets, key=offsets.get):
            other_size, other_first, other_last = tensors[other]
            together = first <= other_last and other_first <= last
            if together and offset + size > offsets[other] and offsets[other] + other_size > offset:
                offset = -(-(offsets[other] + other_size) // 256) * 256
        offsets[name] = offset
    return offsets
