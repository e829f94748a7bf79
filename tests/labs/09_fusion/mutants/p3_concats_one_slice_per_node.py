# problem: concats
# loses: concats-any
# reason: cannot run


def remove_concats(graph):
    """Return the graph without each concat that can go."""
    readers = Counter(name for node in graph["nodes"] for name in node["inputs"])
    fixed = {*graph["inputs"], *graph["outputs"]}
    sizes = channels(graph)
    nodes, moved = [], {}  # moved: the tensor, and the channel in it, where a tensor now begins
    for node in graph["nodes"]:
        if node["op"] != "concat" or any(readers[name] != 1 or name in fixed for name in node["inputs"]):
            nodes.append(node)
            continue
        (tensor, start, _) = node["outputs"][0]
        for name in node["inputs"]:
            moved[name] = (tensor, start)
            start += sizes[name]
    for node in nodes:
        outputs = []
        for tensor, start, count in node["outputs"]:
            done = any(slice[0] not in [old[0] for old in node["outputs"]] for slice in outputs)
            while tensor in moved and not done:
                tensor, begin = moved[tensor]
                start += begin
            outputs.append((tensor, start, count))
        node["outputs"] = outputs
    return graph | {"nodes": nodes}
