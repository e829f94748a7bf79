# problem: buffers
# loses: buffers-apart, buffers-limit
# reason: overlap while both are alive|more memory


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
    half = -(-max(size for size, _, _ in tensors.values()) // 256) * 256
    return {name: first % 2 * half for name, (_, first, _) in tensors.items()}
