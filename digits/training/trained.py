"""The network of a run with the weights of a checkpoint, for whoever looks inside or deploys it.

model = load_model(run)                        # the last weights
model = load_model(run, listed(run)[1].name)   # those of an earlier checkpoint
"""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from digits.files import UNFINISHED, DigitsError, explained, open_plain, read_json, write_file
from digits.networks.starts import load_file
from digits.training import checkpoints

MODEL, NETWORK = "model.keras", "network.json"
FINAL = "model"  # the name of the weights in model.keras


@dataclass(frozen=True)
class Weights:
    """`name`: for `load_model`. `step`, `epoch`: of the training; None if a finished run has no checkpoints."""

    name: str
    step: int | None
    epoch: float | None


def listed(run: Any) -> list[Weights]:
    """Return what can be loaded of `run` (a Run or its folder), the newest first. Needs no TensorFlow."""
    folder = _folder(run)
    found = []
    for stored in reversed(checkpoints.listed(folder)):
        try:
            found.append(Weights(stored.name, stored.step, read_json(stored.about).get("epoch")))
        except DigitsError:
            continue
    if (folder / MODEL).is_file():
        newest = found[0] if found else Weights("", None, None)
        found.insert(0, Weights(FINAL, newest.step, newest.epoch))
    return found


def load_model(run: Any, name: str | None = None) -> Any:
    """Return the keras.Model of `run` (a Run or its folder), without an optimizer, loaded in Keras' safe mode.

    `name`: of one in `listed`; the newest that is whole if None. Raises DigitsError if there is none or it is damaged.
    """
    folder = _folder(run)
    if name == FINAL or (name is None and (folder / MODEL).is_file()):
        return load_file(folder / MODEL)
    if name is None:
        arrays, _, problems = checkpoints.latest(folder)
        if arrays is None:
            raise DigitsError(
                " ".join([f"The run {folder.name} has no weights yet. Wait for its first step.", *problems])
            )
    else:
        chosen = [stored for stored in checkpoints.listed(folder) if stored.name == name]
        if not chosen:
            raise DigitsError(f"The run {folder.name} has no checkpoint {name!r}. Choose a newer one.")
        arrays, _ = checkpoints.read(chosen[0])
    model = _built(folder)
    set_variables(model, arrays)
    return model


def _folder(run: Any) -> Path:
    return Path(getattr(run, "folder", run))


def _built(folder: Path) -> Any:
    import keras

    with explained(f"read {NETWORK} of {folder.name}"), open(open_plain(folder / NETWORK, os.O_RDONLY)) as stream:
        text = stream.read()
    try:
        model = keras.saving.deserialize_keras_object(json.loads(text), safe_mode=True)
        if not isinstance(model, keras.Model):
            raise TypeError("it describes no network")
        return model
    except Exception as error:  # Keras raises many kinds for a damaged description
        raise DigitsError(
            f"{NETWORK} of {folder.name} is damaged ({str(error)[:200]}). Train the run again."
        ) from error


def save_network(folder: Path, model: Any) -> None:
    """Write the description of `model`, from which it can be built without its dataset."""
    import keras

    text = json.dumps(keras.saving.serialize_keras_object(model))
    write_file(folder / NETWORK, lambda stream: stream.write(text.encode()))


def save_model(folder: Path, model: Any) -> None:
    """Replace model.keras by `model`. Raises DigitsError if the disk is full."""
    with explained(f"write {MODEL}"), tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=folder) as aside:
        model.save(Path(aside) / MODEL)
        data = (Path(aside) / MODEL).read_bytes()
    write_file(folder / MODEL, lambda stream: stream.write(data))


def variables(model: Any) -> dict[str, NDArray[Any]]:
    """Return all that a network holds, by layer: weights, moving means, the state of dropout's random numbers."""
    return {
        f"{layer.name}/{at}": np.asarray(variable)
        for layer in model.layers
        for at, variable in enumerate(layer.variables)
    }


def set_variables(model: Any, arrays: dict[str, NDArray[Any]]) -> None:
    """Give `model` what `variables` returned. Raises DigitsError if it is of another network."""
    for layer in model.layers:
        for at, variable in enumerate(layer.variables):
            assign(variable, arrays.get(f"{layer.name}/{at}"), f"layer {layer.name}")


def assign(variable: Any, array: NDArray[Any] | None, whose: str) -> None:
    """Set one variable. Raises DigitsError if `array` is missing or has another shape."""
    if array is None or tuple(array.shape) != tuple(variable.shape):
        found = "nothing" if array is None else f"an array of shape {array.shape}"
        raise DigitsError(
            f"The checkpoint does not fit the network: it has {found} for {whose} of shape {tuple(variable.shape)}. "
            "Start a new run."
        )
    variable.assign(array)
