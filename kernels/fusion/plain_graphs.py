"""Graphs as plain dicts, as exercise 09 passes them around: what a graph computes, how it reads, what it costs.

A graph has `inputs` (names and numbers of channels), `outputs` (names) and `nodes`, in an order in which they can run;
a node has `op`, `inputs`, `outputs` (slices `(tensor, start, channels)`) and its numbers. The exercise says what each
op computes. All numbers are float64.
"""

import numpy as np


def channels(graph):
    """Return the number of channels of each tensor, by name."""
    sizes = dict(graph["inputs"])
    for node in graph["nodes"]:
        for tensor, start, count in node["outputs"]:
            sizes[tensor] = max(sizes.get(tensor, 0), start + count)
    return sizes


def listing(graph):
    """Return a graph as text, a line per node."""
    lines = []
    for number, node in enumerate(graph["nodes"]):
        slices = ", ".join(f"{tensor}[{start}:{start + count}]" for tensor, start, count in node["outputs"])
        filters = " × ".join(map(str, np.shape(node["filters"]))) if "filters" in node else ""
        about = [filters, "relu" if node.get("relu") else ""]
        about = " ".join(filter(None, about))
        lines.append(
            f"{number}: {slices} = {node['op']}({', '.join(node['inputs'])})" + (f"  {about}" if about else "")
        )
    return "\n".join([*lines, f"inputs {', '.join(graph['inputs'])}; outputs {', '.join(graph['outputs'])}"])


def windows(x, height, width, border=0.0):
    """Return the pixels that each window meets, (channels, h, w, height, width), for x of (channels, h, w)."""
    ends = ((0, 0), (height // 2, height // 2), (width // 2, width // 2))
    return np.lib.stride_tricks.sliding_window_view(np.pad(x, ends, constant_values=border), (height, width), (1, 2))


def per_channel(node, key, count):
    """Return an array of a node as (count, 1, 1)."""
    values = np.asarray(node[key], float)
    if values.shape != (count,):
        raise ValueError(f"{key} has the shape {values.shape}, expected ({count},)")
    return values[:, None, None]


def compute(node, given):
    """Return the result of a node, (channels, h, w), for the tensors that it reads."""
    op, x = node["op"], given[0]
    if op in ("conv", "cbr"):
        filters = np.asarray(node["filters"], float)
        if filters.ndim != 4 or filters.shape[1] != len(x) or not filters.shape[2] % 2 or not filters.shape[3] % 2:
            raise ValueError(f"filters have the shape {filters.shape} and meet {len(x)} channels")
        x = np.tensordot(filters, windows(x, *filters.shape[2:]), ((1, 2, 3), (0, 3, 4)))
        if op == "cbr":
            x = x + per_channel(node, "bias", len(x))
        return np.maximum(x, 0) if op == "cbr" and node["relu"] else x
    if op == "bias":
        return x + per_channel(node, "bias", len(x))
    if op == "batch_norm":
        return x * per_channel(node, "scale", len(x)) + per_channel(node, "shift", len(x))
    if op == "relu":
        return np.maximum(x, 0)
    if op == "max_pool":
        return windows(x, 3, 3, -np.inf).max((3, 4))
    if op == "add" and given[0].shape == given[1].shape:
        return given[0] + given[1]
    if op == "concat":
        return np.concatenate(given)
    raise ValueError(f"there is no op {op!r} for tensors of {', '.join(str(len(x)) for x in given)} channels")


def run(graph, images):
    """Return all tensors of a graph by name; `images`: its inputs, (channels, h, w). ValueError if it cannot run."""
    pixels = next(iter(images.values())).shape[1:]
    tensors = {name: np.full((count, *pixels), np.nan) for name, count in channels(graph).items()}
    written = {name: np.zeros(len(x), bool) for name, x in tensors.items()}
    for name, image in images.items():
        tensors[name][:], written[name][:] = image, True
    for number, node in enumerate(graph["nodes"]):
        at = f"node {number} ({node['op']})"
        for name in node["inputs"]:
            if name not in written or not written[name].all():
                raise ValueError(f"{at} reads {name}, which is not, or not wholly, written yet")
        try:
            result = compute(node, [tensors[name] for name in node["inputs"]])
        except (KeyError, ValueError) as error:
            missing = f"it has no {error}" if isinstance(error, KeyError) else error
            raise ValueError(f"{at}: {missing}") from None
        done = 0
        for name, start, count in node["outputs"]:
            if start < 0 or count < 1 or written[name][start : start + count].any():
                raise ValueError(f"{at} writes {name}[{start}:{start + count}], of which something is written already")
            written[name][start : start + count] = True
            tensors[name][start : start + count] = result[done : done + count]
            done += count
        if done != len(result):
            raise ValueError(f"{at} has {len(result)} channels, and its slices have {done}")
    for name in graph["outputs"]:
        if name not in written or not written[name].all():
            raise ValueError(f"the output {name} is not, or not wholly, written")
    return tensors


def multiply_adds(graph):
    """Return the multiply-adds per pixel of all convolutions."""
    return sum(np.size(node["filters"]) for node in graph["nodes"] if node["op"] in ("conv", "cbr"))
