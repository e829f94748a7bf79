"""Runs any graph in NumPy, node by node: the reference of every pass and of the engine.

Arithmetic is in float64 unless told otherwise. A tensor in float16 or INT8 holds what these types can hold: its values
are rounded when they are written, and so are the filters of a cbr of that precision. All arrays here hold real values,
those of INT8 tensors, too (step × scale), and lie as N × shape, row by row, whatever the layout.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.fusion.graph.functions import BINARY, REDUCED, UNARY, Unary
from kernels.fusion.graph.graph import Graph
from kernels.fusion.graph.int8 import rounded_filters, rounded_values
from kernels.fusion.graph.nodes import GraphError, Node, Tensor
from kernels.fusion.graph.operators import channel_axis, groups


def run(graph: Graph, *inputs: np.ndarray, dtype: Any = np.float64) -> dict[str, np.ndarray]:
    """Return the graph's outputs by name, each (batch, *shape), in `dtype`.

    `inputs`: one array (batch, *shape) for each of the graph's inputs, in their order; GraphError if one does not fit.
    """
    values = all_tensors(graph, *inputs, dtype=dtype)
    return {name: values[name] for name in graph.outputs}


def all_tensors(graph: Graph, *inputs: np.ndarray, dtype: Any = np.float64) -> dict[str, np.ndarray]:
    """Return every tensor of the graph by name, as `run` computes it: what calibration looks at."""
    values = _inputs(graph, inputs, dtype)
    batch = len(inputs[0])
    for node in graph.nodes:
        result = evaluate(node, [values[name] for name in node.inputs], dtype)
        if node.op == "constant":
            result = np.repeat(result, batch, axis=0)
        start = 0
        for part in node.outputs:
            tensor = graph.tensors[part.tensor]
            if part.tensor not in values:
                values[part.tensor] = np.full((batch, *tensor.shape), np.nan, dtype)
            before = (slice(None),) * (1 + channel_axis(tensor.shape))
            taken = result[(*before, slice(start, start + part.channels))]
            values[part.tensor][(*before, slice(part.start, part.start + part.channels))] = _stored(taken, tensor)
            start += part.channels
    return values


def evaluate(node: Node, inputs: list[np.ndarray], dtype: Any = np.float64) -> np.ndarray:
    """Return a node's result before it is stored, (batch, channels, ...). `inputs`: real values, (batch, *shape)
    each."""
    weights = {name: values.astype(dtype) for name, values in node.weights.items()}
    return _FUNCTIONS[node.op](inputs, node.attributes, weights)


def _inputs(graph: Graph, arrays: tuple[np.ndarray, ...], dtype: Any) -> dict[str, np.ndarray]:
    if len(arrays) != len(graph.inputs) or not arrays:
        raise GraphError(f"graph {graph.name!r} takes {', '.join(graph.inputs)}; {len(arrays)} arrays were given")
    values = {}
    for name, array in zip(graph.inputs, arrays, strict=True):
        shape = graph.tensors[name].shape
        if np.shape(array)[1:] != shape or len(array) != len(arrays[0]):
            sizes = ", ".join(map(str, shape))
            raise GraphError(f"input {name!r} has the shape {np.shape(array)}; it must be (batch, {sizes})")
        values[name] = np.asarray(array, dtype)
    return values


def _stored(values: np.ndarray, tensor: Tensor) -> np.ndarray:
    """Return the values that are left when they are written to a tensor."""
    if tensor.dtype == "float16":
        with np.errstate(over="ignore"):  # infinity, as on a GPU
            return values.astype(np.float16)
    return values if tensor.scale is None else rounded_values(values, tensor.scale)


def _convolution(inputs: list, attributes: Any, weights: dict) -> np.ndarray:
    x, filters = inputs[0], weights["filters"]
    parts = groups(x.shape[1], filters)
    grouped = filters.reshape(parts, -1, *filters.shape[1:])
    patches, _ = _windows(x, filters.shape[2:], attributes, 0)
    y = sum(grouped[..., r, s] @ p.reshape(len(x), parts, filters.shape[1], -1) for (r, s), p in patches)
    y = y.reshape(len(x), len(filters), *patches[0][1].shape[2:])
    return y + weights["bias"][:, None, None] if "bias" in weights else y


def _cbr(inputs: list, attributes: Any, weights: dict) -> np.ndarray:
    filters = weights["filters"]
    if attributes["precision"] == "float16":
        filters = filters.astype(np.float16).astype(filters.dtype)
    elif attributes["precision"] == "int8":
        filters = rounded_filters(filters, weights["filter_scales"])
    if inputs[0].ndim == 4:
        y = _convolution(inputs, attributes, {**weights, "filters": filters})
    else:
        parts = groups(inputs[0].shape[-1], filters)
        x = inputs[0].reshape(*inputs[0].shape[:-1], parts, -1)
        y = np.einsum("...gc,gkc->...gk", x, filters.reshape(parts, -1, filters.shape[1]))
        y = y.reshape(*inputs[0].shape[:-1], -1) + weights["bias"]
    if len(inputs) == 2:
        y = y + inputs[1]
    if attributes["swish"]:
        return UNARY["swish"].of(y, 1, 0)
    y = np.maximum(y, 0) if attributes["relu"] else y
    return np.minimum(y, attributes["most"]) if attributes["most"] else y


def _batch_norm(inputs: list, attributes: Any, weights: dict) -> np.ndarray:
    (x,) = inputs
    factor = weights["gamma"] / np.sqrt(weights["variance"] + attributes["epsilon"])
    shape = (-1,) + (1,) * 2 * (x.ndim == 4)
    return (x - weights["mean"].reshape(shape)) * factor.reshape(shape) + weights["beta"].reshape(shape)


def _max_pool(inputs: list, attributes: Any, _weights: dict) -> np.ndarray:
    patches, _ = _windows(inputs[0], attributes["window"], attributes, -np.inf)
    return np.max([patch for _, patch in patches], axis=0)


def _average_pool(inputs: list, attributes: Any, _weights: dict) -> np.ndarray:
    patches, inside = _windows(inputs[0], attributes["window"], attributes, 0)
    count = len(patches) if attributes["count_padding"] else inside
    return np.sum([patch for _, patch in patches], axis=0) / count


def _softmax(inputs: list, _attributes: Any, _weights: dict) -> np.ndarray:
    exponentials = np.exp(inputs[0] - inputs[0].max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _attention(inputs: list, attributes: Any, _weights: dict) -> np.ndarray:
    q, k, v, *mask = inputs
    scores = q @ k.swapaxes(-1, -2) * attributes["scale"] + sum(mask)
    return _softmax([scores], {}, {}) @ v


def _layer_norm(inputs: list, attributes: Any, weights: dict) -> np.ndarray:
    x = inputs[0] - inputs[0].mean(axis=-1, keepdims=True)
    factor = 1 / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + attributes["epsilon"])
    return x * factor * weights["gamma"] + weights["beta"]


def _lrn(inputs: list, attributes: Any, _weights: dict) -> np.ndarray:
    size, squares = attributes["size"], inputs[0] ** 2
    padded = np.pad(squares, ((0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)))
    sums = sum(padded[:, i : i + squares.shape[1]] for i in range(size))
    return inputs[0] / (attributes["bias"] + attributes["alpha"] / size * sums) ** attributes["beta"]


def _slice(inputs: list, attributes: Any, _weights: dict) -> np.ndarray:
    parts = zip(*(attributes[name] for name in ("starts", "steps", "shape")), strict=True)
    return inputs[0][(slice(None), *np.ix_(*(start + step * np.arange(count) for start, step, count in parts)))]


def _of_element(function: Unary) -> Callable[[list, Any, dict], np.ndarray]:
    def applied(inputs: list, attributes: Any, _weights: dict) -> np.ndarray:
        return function.of(inputs[0], attributes.get("alpha", 0), attributes.get("beta", 0))

    return applied


_FUNCTIONS: dict[str, Callable[[list, Any, dict], np.ndarray]] = {
    "constant": lambda _inputs, _attributes, weights: weights["value"][None],
    "conv": _convolution,
    "batch_norm": _batch_norm,
    "relu": lambda inputs, *_: np.maximum(inputs[0], 0),
    **{name: lambda inputs, *_, of=of: of(*inputs) for name, of in BINARY.items()},
    **{name: _of_element(function) for name, function in UNARY.items()},
    **{name: lambda inputs, *_, of=of: of(inputs[0], axis=-1, keepdims=True) for name, of in REDUCED.items()},
    "concat": lambda inputs, *_: np.concatenate(inputs, axis=1 + channel_axis(inputs[0].shape[1:])),
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "global_average_pool": lambda inputs, attributes, _: inputs[0].mean(axis=(2, 3), keepdims=attributes["keep_axes"]),
    "flatten": lambda inputs, *_: inputs[0].reshape(len(inputs[0]), -1),
    "dense": lambda inputs, _, weights: inputs[0] @ weights["matrix"].T + weights.get("bias", 0),
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "lrn": _lrn,
    "reshape": lambda inputs, attributes, _: inputs[0].reshape(len(inputs[0]), *attributes["shape"]),
    "transpose": lambda inputs, attributes, _: inputs[0].transpose(0, *(1 + axis for axis in attributes["order"])),
    "slice": _slice,
    "expand": lambda inputs, attributes, _: np.broadcast_to(inputs[0], (len(inputs[0]), *attributes["shape"])),
    "matmul": lambda inputs, *_: inputs[0] @ inputs[1],
    "attention": _attention,
    "cbr": _cbr,
    **dict.fromkeys(("identity", "dropout", "convert"), lambda inputs, *_: inputs[0]),
}


def _windows(x: np.ndarray, window: tuple[int, int], attributes: Any, outside: float) -> tuple[list, np.ndarray]:
    """Return, for each place (r, s) of a window, what all hold there, N × C × P × Q; and how many pixels are inside.

    `outside`: what the padding holds.
    """
    top, left, bottom, right = attributes["padding"]
    (down, across), (dilated_r, dilated_s) = attributes["stride"], attributes.get("dilation", (1, 1))
    around = ((0, 0), (0, 0), (top, bottom), (left, right))
    padded = np.pad(x, around, constant_values=outside)
    ones = np.pad(np.ones((1, 1, *x.shape[2:]), x.dtype), around)
    rows = (padded.shape[2] - dilated_r * (window[0] - 1) - 1) // down + 1
    columns = (padded.shape[3] - dilated_s * (window[1] - 1) - 1) // across + 1
    patches, inside = [], np.zeros((1, 1, rows, columns), x.dtype)
    for r in range(window[0]):
        for s in range(window[1]):
            place = (
                ...,
                slice(r * dilated_r, r * dilated_r + down * (rows - 1) + 1, down),
                slice(s * dilated_s, s * dilated_s + across * (columns - 1) + 1, across),
            )
            patches.append(((r, s), padded[place]))
            inside += ones[place]
    return patches, inside
