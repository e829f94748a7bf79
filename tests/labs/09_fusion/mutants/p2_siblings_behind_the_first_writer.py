# problem: siblings
# loses: siblings-any
# reason: cannot run(.|\n)*not wholly


def merge_siblings(graph):
    """Return the graph with each family of cbr nodes that may be one as one."""
    families = {}
    for node in graph["nodes"]:
        if node["op"] == "cbr":
            family = (node["inputs"][0], node["filters"].shape[2:], bool(node["relu"]))
            families.setdefault(family, []).append(node)
    merged = {}  # merged: the nodes to put behind the node that writes a tensor
    gone = set()
    for (source, _, _), members in families.items():
        if len(members) > 1:
            whole = dict(members[0])
            for key in ("filters", "bias"):
                whole[key] = np.concatenate([member[key] for member in members])
            whole["outputs"] = [slice for member in members for slice in member["outputs"]]
            merged.setdefault(source, []).append(whole)
            gone.update(map(id, members))
    nodes = [node for name in graph["inputs"] for node in merged.pop(name, [])]
    waiting = [node for node in graph["nodes"] if id(node) not in gone]
    done = []
    while nodes or waiting:
        node = nodes.pop(0) if nodes else waiting.pop(0)
        done.append(node)
        for tensor, _, _ in node["outputs"]:
            nodes += merged.pop(tensor, [])
    return graph | {"nodes": done}
