"""What a look answers, and how each answer becomes JSON and arrays for the way from the model's process to the page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

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

    def message(self) -> Message:
        """Return it as JSON and arrays."""
        return asdict(self), {}

    @classmethod
    def from_message(cls, message: dict[str, Any], arrays: dict[str, np.ndarray]) -> Model:
        """Make one from JSON and arrays."""
        rows = tuple(LayerRow(**{**row, "shape": tuple(row["shape"])}) for row in message["layers"])
        given = {**message, "layers": rows, "input": tuple(message["input"]), "classes": tuple(message["classes"])}
        return cls(**given)


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


def layers_message(layers: list[LayerOutput]) -> Message:
    """Return layers as JSON and arrays."""
    rows: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray] = {}
    for i, layer in enumerate(layers):
        weights = [
            {"name": w.name, "shape": list(w.shape), "statistics": w.statistics.message()} for w in layer.weights
        ]
        arrays |= {f"{i}/{j}": w.tiles for j, w in enumerate(layer.weights) if w.tiles is not None}
        if layer.maps is not None:
            arrays[f"{i}"] = layer.maps
        rows.append(
            {
                "name": layer.name,
                "kind": layer.kind,
                "shape": list(layer.shape),
                "parameters": layer.parameters,
                "activation": layer.activation.message(),
                "channels": layer.channels,
                "step": layer.step,
                "weights": weights,
            }
        )
    return {"layers": rows}, arrays


def layers_from_message(message: dict[str, Any], arrays: dict[str, np.ndarray]) -> list[LayerOutput]:
    """Return layers from JSON and arrays."""
    found = []
    for i, row in enumerate(message["layers"]):
        weights = tuple(
            LayerWeights(w["name"], tuple(w["shape"]), Statistics.from_message(w["statistics"]), arrays.get(f"{i}/{j}"))
            for j, w in enumerate(row["weights"])
        )
        activation = Statistics.from_message(row["activation"])
        given = {**row, "shape": tuple(row["shape"]), "activation": activation, "weights": weights}
        found.append(LayerOutput(**given, maps=arrays.get(f"{i}")))
    return found


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

    def message(self) -> Message:
        """Return it as JSON and arrays."""
        about = {"label": self.label, "probability": self.probability, "method": self.method, "patch": self.patch}
        return about, {"values": self.values}

    @classmethod
    def from_message(cls, message: dict[str, Any], arrays: dict[str, np.ndarray]) -> Saliency:
        """Make one from JSON and arrays."""
        return cls(values=arrays["values"], **message)


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

    def message(self) -> Message:
        """Return it as JSON and arrays."""
        arrays = {"probabilities": self.probabilities, "labels": self.labels, "indices": self.indices}
        return {"classes": list(self.classes), "part": self.part}, arrays

    @classmethod
    def from_message(cls, message: dict[str, Any], arrays: dict[str, np.ndarray]) -> Tested:
        """Make one from JSON and arrays."""
        return cls(**arrays, classes=tuple(message["classes"]), part=message["part"])


@dataclass(frozen=True)
class Checkpoint:
    """A state of the run's weights. `name`: what questions take as `checkpoint`. `step`, `epoch`: None if not known."""

    name: str
    step: int | None
    epoch: float | None
