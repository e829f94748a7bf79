"""What a look answers, and how each answer becomes JSON and arrays for the way from the model's process to the page."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from digits.look.statistics import Statistics

Message = tuple[dict[str, Any], dict[str, np.ndarray]]


@dataclass(frozen=True)
class LayerRow:
    """One line of a model's table of layers. `shape`: of its output for one image, channels last."""

    name: str
    kind: str
    shape: tuple[int, ...]
    parameters: int


@dataclass(frozen=True)
class Model:
    """The model of a run. `input`: height, width, channels. `classes`: names."""

    kind: str
    input: tuple[int, int, int]
    classes: tuple[str, ...]
    parameters: int
    layers: tuple[LayerRow, ...]


@dataclass(frozen=True)
class LayerWeights:
    """One array of a layer's weights.

    `tiles`: what can be drawn of it, float32 of shape (filters, inputs, h, w): the kernels of a convolution, a dense
    layer's matrix as one tile (1, 1, inputs, units); None for vectors. Large arrays are cut; `shape` is the whole's.
    """

    name: str
    shape: tuple[int, ...]
    statistics: Statistics
    tiles: np.ndarray | None


@dataclass(frozen=True)
class LayerOutput:
    """A layer, what it made of one image, and its weights.

    `shape`: of the output for one image, channels last. `maps`: float32, (channels, h, w), or (units,) for a vector,
    None for other ranks. Of the output's `channels` the first few, and of rows and columns every `step`-th, so that a
    large layer stays a small picture; the statistics are those of all values.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    parameters: int
    activation: Statistics
    channels: int
    step: int
    maps: np.ndarray | None
    weights: tuple[LayerWeights, ...] = ()


@dataclass(frozen=True)
class Saliency:
    """How much each pixel matters for one class of one image.

    `values`: float32, (h, w). For "gradient": gradient × input, in units of the class's score (before softmax): to
    first order, what of the score would go if that pixel alone became 0 in the model's input. For "occlusion": how much
    the class's probability falls, on average over the patches that cover the pixel. Positive speaks for the class,
    negative against it. `label`: the class. `probability`: of it, the image as it is. `patch`: its side, or 0.
    """

    values: np.ndarray
    label: int
    probability: float
    method: str
    patch: int


@dataclass(frozen=True)
class Tested:
    """Answers for a part of the run's dataset.

    `probabilities`: float32, (n, classes). `labels`: int64, (n,), the truth. `classes`: names. `indices`: int64, (n,),
    where in the part each image is.
    """

    probabilities: np.ndarray
    labels: np.ndarray
    indices: np.ndarray
    classes: tuple[str, ...]
    part: str


def packed(answer: Any) -> Message:
    """Return an answer as JSON and arrays: in its place an array is {"array": its name}."""
    arrays: dict[str, np.ndarray] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays[name := str(len(arrays))] = value
            return {"array": name}
        if is_dataclass(value):
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        return [plain(one) for one in value] if isinstance(value, list | tuple) else value

    return plain(answer), arrays


def unpacked(kind: Any, message: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return an answer of the type `kind` from JSON and arrays."""
    if isinstance(message, list):
        return get_origin(kind)(unpacked(get_args(kind)[0], one, arrays) for one in message)
    if is_dataclass(kind):
        types = get_type_hints(kind)
        return kind(**{name: unpacked(types[name], one, arrays) for name, one in message.items()})
    return arrays[message["array"]] if isinstance(message, dict) else message
