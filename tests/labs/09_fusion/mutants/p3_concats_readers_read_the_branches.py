# problem: concats
# loses: concats-plain, concats-any
# reason: cannot run|output t\d+ is wrong|raises


def remove_concats(graph):
    """Return the graph without each concat that can go."""
    replaced = {}
    nodes = []
    for node in graph["nodes"]:
        if node["op"] == "concat":
            replaced[node["outputs"][0][0]] = node["inputs"]
        else:
            nodes.append(node | {"inputs": [x for name in node["inputs"] for x in replaced.get(name, [name])]})
    return graph | {"nodes": nodes}
