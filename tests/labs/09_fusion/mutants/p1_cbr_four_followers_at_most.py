# problem: cbr
# loses: cbr-chain, cbr-branch, cbr-norm
# reason: too many launches


def fuse_cbr(graph):
    """Return the graph with each conv, and what may follow it, as one cbr."""
    readers = Counter(name for node in graph["nodes"] for name in node["inputs"])
    nodes, producers = [], {}  # producers: the node of `nodes` that writes a tensor
    for node in graph["nodes"]:
        before = node["inputs"][0]
        last = producers.get(before)
        if node["op"] == "conv":
            count = len(node["filters"])
            node = node | {"op": "cbr", "bias": np.zeros(count), "relu": False}
        elif (
            node["op"] in ("bias", "batch_norm", "relu")
            and last is not None
            and last["op"] == "cbr"
            and not last["relu"]
            and last.get("taken", 0) < 4
            and readers[before] == 1
            and before not in graph["outputs"]
        ):
            if node["op"] == "bias":
                last["bias"] = last["bias"] + node["bias"]
            elif node["op"] == "batch_norm":
                last["filters"] = last["filters"] * node["scale"][:, None, None, None]
                last["bias"] = last["bias"] * node["scale"] + node["shift"]
            else:
                last["relu"] = True
            last["taken"] = last.get("taken", 0) + 1
            last["outputs"] = node["outputs"]
            producers[node["outputs"][0][0]] = last
            continue
        nodes.append(node)
        producers[node["outputs"][0][0]] = node
    return graph | {"nodes": nodes}
