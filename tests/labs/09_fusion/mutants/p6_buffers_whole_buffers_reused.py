# problem: buffers
# loses: buffers-limit
# reason: more memory than allowed


def lifetimes(graph, pixels):
    """Return (bytes, first launch, last launch) of each tensor that nodes write, by name."""
    found = {}
    sizes = channels(graph)
    for number, node in enumerate(graph["nodes"]):
        touched = {*node["inputs"], *(tensor for tensor, _, _ in node["outputs"])} - graph["inputs"].keys()
        for name in touched:
            first = found[name][1] if name in found else number
            found[name] = (4 * sizes[name] * pixels, first, number)
    for name in graph["outputs"]:
        found[name] = (*found[name][:2], len(graph["nodes"]))
    return found


def place(tensors, limit):
    """Return the offset of each tensor, by name, a multiple of 256; `tensors`: what lifetimes returns."""
    buffers, offsets, end = [], {}, 0  # buffers: offset, size, last launch
    for name in sorted(tensors, key=lambda name: tensors[name][1]):
        size, first, last = tensors[name]
        free = [b for b in buffers if b[1] >= size and b[2] < first]
        if not free:
            free = [[end, size, 0]]
            buffers += free
            end += -(-size // 256) * 256
        free[0][2] = last
        offsets[name] = free[0][0]
    return offsets
