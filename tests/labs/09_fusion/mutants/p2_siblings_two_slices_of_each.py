# problem: siblings
# loses: siblings-any
# reason: cannot run


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
        for key in ("filters", "bias"):
            first[key] = np.concatenate([first[key], node[key]])
        first["outputs"] = [*first["outputs"], *node["outputs"][:2]]
    return graph | {"nodes": nodes}
