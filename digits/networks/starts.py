"""Trained weights as a start: a run's, or those that lab 09 committed. Layers that fit are taken, the others named.

taken = take(model, of_model(trained))
print(taken.sentence())
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from digits.files import DigitsError

LAB_09 = "lab 09"  # RunSpec.start for the weights of kernels/fusion/trained.npz
FILE = "file "  # begins RunSpec.start for a .keras file that was uploaded; see keras_file
Weights = Mapping[str, list[NDArray[Any]]]  # by the name of the layer, in Keras' order


@dataclass(frozen=True)
class Taken:
    """Names of layers: `layers` have the start's weights; `left`, with the reason, keep their random ones."""

    layers: tuple[str, ...]
    left: Mapping[str, str]

    def sentence(self) -> str:
        """Return both in words, for the page and the log."""
        text = f"{len(self.layers)} of {len(self.layers) + len(self.left)} layers with weights start from trained ones."
        if self.left:
            text += " Random: " + ", ".join(f"{name} ({reason})" for name, reason in self.left.items()) + "."
        return text


def of_model(model: Any) -> Weights:
    """Return the weights of a keras.Model."""
    return {layer.name: layer.get_weights() for layer in model.layers if layer.get_weights()}


def load_file(path: Path) -> Any:
    """Return the keras.Model in a .keras file, loaded in safe mode. Raises DigitsError if it cannot be read."""
    import keras

    if not Path(path).is_file():
        raise DigitsError(f"There is no {Path(path).name} in {Path(path).parent.name}.")
    try:
        return keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as error:  # Keras raises many kinds for a damaged file
        reason = str(error).strip().split("\n")[0][:200]
        raise DigitsError(
            f"{Path(path).name} of {Path(path).parent.name} cannot be read as a Keras model ({reason}). "
            "Train the run again, or take another file."
        ) from error


def lab_09() -> Weights:
    """Return lab 09's weights, trained on scikit-learn's digits. Raises DigitsError if lab 09 was deleted."""
    try:
        from kernels.fusion.trained.network import trained_model
    except ImportError as error:
        raise DigitsError(
            "Lab 09 (kernels/fusion) is not in this copy of the course, so its weights are missing. Choose another "
            "start."
        ) from error
    return of_model(trained_model())


def take(model: Any, weights: Weights) -> Taken:
    """Set the layers of `model` that have the name and the shapes of one in `weights`.

    Raises DigitsError if none has: the start is of another kind of network.
    """
    layers, left = [], {}
    for layer in model.layers:
        own = layer.get_weights()
        if not own:
            continue
        theirs = weights.get(layer.name)
        if theirs is None:
            left[layer.name] = "the start has no layer of this name"
        elif [np.shape(one) for one in theirs] != [np.shape(one) for one in own]:
            left[layer.name] = f"{_shapes(theirs)} there, {_shapes(own)} here"
        else:
            layer.set_weights(theirs)
            layers.append(layer.name)
    if not layers:
        raise DigitsError("No layer of the start fits this network. Choose the start's network, or no start.")
    return Taken(tuple(layers), left)


def _shapes(arrays: list[NDArray[Any]]) -> str:
    return " + ".join(" × ".join(map(str, np.shape(one))) or "scalar" for one in arrays)
