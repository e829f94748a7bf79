# problem: siblings
# loses: siblings-plain, siblings-any
# reason: output t\d+ is wrong


def merge_siblings(graph):
    """Return the graph with each family of cbr nodes that may be one as one."""
    nodes, families = [], {}
    for node in graph["nodes"]:
        if node["op"] != "cbr":
            nodes.append(node)
            continue
        family = (node["inputs"][0], node["filters"].shape[2:], bool(node["relu"]))
        if family not in families:
            families[family] = node
            nodes.append(node)
            continue
        first = families[family]
        first["filters"] = np.concatenate([first["filters"], node["filters"]])
        first["bias"] = np.concatenate([node["bias"], first["bias"]])
        first["outputs"] = [*first["outputs"], *node["outputs"]]
    return graph | {"nodes": nodes}
