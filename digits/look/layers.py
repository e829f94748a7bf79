"""What each layer of a Keras model makes of one image, and its weights: in the model's process.

What a layer puts out is taken where the model uses it, so a layer used several times appears once per use ("name",
"name #2"). Layers of a nested model are named "outer/inner".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from digits.look.answers import LayerOutput, LayerRow, LayerWeights
from digits.look.statistics import statistics

MAPS, SIDE, UNITS = 32, 32, 1024  # at most: pictures of one layer, their pixels per side, values of a vector
MAPS_OF_ONE, SIDE_OF_ONE = 256, 256  # the same, asked about a single layer
FILTERS, INPUTS, MATRIX = 64, 16, 256  # at most: filters drawn, input channels of each, side of a dense layer's matrix


@dataclass(frozen=True)
class Use:
    """One use of a layer or operation in a model: its symbolic output there."""

    name: str
    operation: Any
    output: Any


@dataclass(frozen=True)
class Nested:
    """A model inside the model: its symbolic input there, and its own uses."""

    model: Any
    input: Any
    prefix: str


def uses(model: Any, prefix: str = "") -> list[Use | Nested]:
    """Return uses of layers in a functional or sequential model, as they run, without inputs."""
    graph = getattr(model, "_functional", None) or model
    order = {operation.name: i for i, operation in enumerate(graph.operations)}
    nodes = [node for depth in sorted(graph._nodes_by_depth, reverse=True) for node in graph._nodes_by_depth[depth]]
    found: list[Use | Nested] = []
    times: dict[str, int] = {}
    # Sorting is stable: of several uses of one layer, the first that runs comes first.
    for node in sorted(nodes, key=lambda node: order[node.operation.name]):
        operation = node.operation
        if not node.input_tensors:
            continue
        times[operation.name] = times.get(operation.name, 0) + 1
        name = prefix + operation.name + (f" #{times[operation.name]}" if times[operation.name] > 1 else "")
        nested = hasattr(operation, "_nodes_by_depth") or getattr(operation, "_functional", None) is not None
        if nested and len(node.input_tensors) == 1:
            found.append(Nested(operation, node.input_tensors[0], name + "/"))
        found.append(Use(name, operation, node.output_tensors[0]))
    return found


def rows(model: Any) -> tuple[LayerRow, ...]:
    """Return the table of a model's layers, those of nested models before the model itself."""
    found: list[LayerRow] = []

    def walk(inner: Any, prefix: str) -> None:
        for use in uses(inner, prefix):
            if isinstance(use, Nested):
                walk(use.model, use.prefix)
            else:
                found.append(LayerRow(use.name, *_about(use)))

    walk(model, "")
    return tuple(found)


def of_image(model: Any, prepared: Any, name: str | None = None) -> list[LayerOutput]:
    """Return every layer's answer to a prepared image, (1, h, w, c), or that of the layer `name`, in more detail.

    KeyError if no layer has that name.
    """
    maps, side = (MAPS, SIDE) if name is None else (MAPS_OF_ONE, SIDE_OF_ONE)
    found = []
    for use, output in _outputs(model, prepared, ""):
        if name is None or use.name == name:
            found.append(_layer(use, output, maps, side))
    if name is not None and not found:
        raise KeyError(name)
    return found


def _outputs(model: Any, given: Any, prefix: str) -> Iterator[tuple[Use, np.ndarray]]:
    import keras

    inner = uses(model, prefix)
    wanted = [use.input if isinstance(use, Nested) else use.output for use in inner]
    values = keras.Model(model.inputs[0], wanted)(given, training=False)
    for use, value in zip(inner, values, strict=True):
        if isinstance(use, Nested):
            yield from _outputs(use.model, value, use.prefix)
        else:
            # bfloat16 is not a type that NumPy knows.
            yield use, keras.ops.convert_to_numpy(keras.ops.cast(value, "float32"))[0]


def _about(use: Use) -> tuple[str, tuple[int, ...], int]:
    shape = tuple(int(n) if n is not None else 0 for n in use.output.shape[1:])
    count = use.operation.count_params() if hasattr(use.operation, "count_params") else 0
    return type(use.operation).__name__, shape, int(count)


def _layer(use: Use, output: np.ndarray, most: int, side: int) -> LayerOutput:
    kind, _, parameters = _about(use)
    channels, step, maps = output.shape[-1] if output.ndim else 1, 1, None
    if output.ndim == 1:
        maps = output[:UNITS]
    elif output.ndim == 3:
        step = -(-max(output.shape[:2]) // side)
        maps = np.ascontiguousarray(output[::step, ::step, :most].transpose(2, 0, 1))
    return LayerOutput(
        name=use.name,
        kind=kind,
        shape=output.shape,
        parameters=parameters,
        activation=statistics(output),
        channels=channels,
        step=step,
        maps=maps,
        weights=tuple(_weights(use.operation)),
    )


def _weights(operation: Any) -> Iterator[LayerWeights]:
    if hasattr(operation, "layers"):  # a nested model: its layers are listed on their own
        return
    for variable in getattr(operation, "weights", ()):
        if "seed" in variable.name:  # of a random layer: a state, no weight
            continue
        value = np.asarray(variable.numpy(), np.float32)
        yield LayerWeights(variable.name, value.shape, statistics(value), _tiles(value))


def _tiles(weights: np.ndarray) -> np.ndarray | None:
    if weights.ndim == 4:
        return np.ascontiguousarray(weights[:, :, :INPUTS, :FILTERS].transpose(3, 2, 0, 1))
    if weights.ndim == 2:
        return np.ascontiguousarray(weights[:MATRIX, :MATRIX])[None, None]
    return None
