"""Networks that others trained: a .keras file of one's own as a start, of which nothing is deserialised here.

    start = keep(workspace.root, "flowers.keras", data)      # "file flowers.keras", for RunSpec.start
    custom.configure(SOURCE, image, classes, confirmed=True, start=config(workspace.root, start))

The file is a zip of the network's description, JSON that the sandbox alone turns into layers, and of its weights, HDF5.
"""

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from digits.files import DigitsError, explained, write_file
from digits.networks.starts import FILE, Weights

FOLDER = "starts"  # of the workspace
MOST_BYTES = 512 << 20  # of the file, and of its weights
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}\.keras")
SOURCE = '''import json

import keras
from keras import layers


def network(image, classes):
    """The layers of the .keras file before its last Dense layer, and a new answer. They keep their names."""
    start = keras.saving.deserialize_keras_object(json.load(open("start.json")))
    last = [layer for layer in start.layers if isinstance(layer, layers.Dense)][-1]
    inputs = keras.Input(image, name="pixels")  # from 0 to 1
    x = inputs  # for a network that takes -1 to 1: layers.Rescaling(2, offset=-1)(inputs)
    features = keras.models.clone_model(keras.Model(start.inputs[0], last.input), input_tensors=x)
    x = layers.Dropout(0.2, name="answer_dropout")(features.output)
    return keras.Model(inputs, layers.Dense(classes, activation="softmax", name="answer")(x))
'''


def keep(root: Path, name: str, data: bytes) -> str:
    """Keep an uploaded .keras file in a workspace; return the start that it is. DigitsError if it is none."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")
    if not _NAME.fullmatch(name):
        raise DigitsError(f"{name or 'It'} is no .keras file. Save your network by model.save('name.keras').")
    _read(name, io.BytesIO(data))
    with explained(f"keep {name}"):
        (root / FOLDER).mkdir(exist_ok=True)
    write_file(root / FOLDER / name, lambda stream: stream.write(data))
    return FILE + name


def kept(root: Path) -> list[str]:
    """Return the starts that are there."""
    return sorted(FILE + path.name for path in (root / FOLDER).glob("*.keras") if _NAME.fullmatch(path.name))


def config(root: Path, start: str) -> bytes:
    """Return the description of a kept file's network, as JSON; b"" for a start that is no file."""
    return _read(*_opened(root, start))[0] if start.startswith(FILE) else b""


def weights(root: Path, start: str) -> Weights:
    """Return the weights of a kept file by the names of its layers. Raises DigitsError for a damaged one."""
    import h5py

    name, path = _opened(root, start)
    text, stored = _read(name, path)
    found: dict[str, list[np.ndarray]] = {}
    counts: dict[str, int] = {}
    try:
        with h5py.File(io.BytesIO(stored)) as file:
            for layer in json.loads(text)["config"]["layers"]:
                kind = _snake(layer["class_name"])
                counts[kind] = counts.get(kind, -1) + 1
                key = f"layers/{kind}{f'_{counts[kind]}' if counts[kind] else ''}/vars"
                if key in file and len(file[key]):
                    found[layer["config"]["name"]] = [_array(file[key], str(at)) for at in range(len(file[key]))]
    except DigitsError:
        raise
    except Exception as error:  # h5py and a damaged description raise many kinds
        raise DigitsError(f"The weights in {name} cannot be read ({str(error)[:200]}). Save it again.") from error
    return found


def _array(group: Any, key: str) -> np.ndarray:
    import h5py

    data = group[key]
    # A link to another file, or data in one, would read what is nobody's business.
    inside = isinstance(group.get(key, getlink=True), h5py.HardLink)
    if not inside or not isinstance(data, h5py.Dataset) or data.external or data.is_virtual or data.dtype.kind != "f":
        raise DigitsError(f"{data.name} of the file is no array of numbers in it. Save the network again.")
    if data.size * data.dtype.itemsize > MOST_BYTES:
        raise DigitsError(f"{data.name} of the file has {data.size:,} numbers, too many for this page.")
    return np.asarray(data)


def _opened(root: Path, start: str) -> tuple[str, Path]:
    name = start.removeprefix(FILE)
    path = root / FOLDER / name
    if not _NAME.fullmatch(name) or not path.is_file() or path.is_symlink():
        raise DigitsError(f"There is no start {name!r} any more. Upload the .keras file again.")
    return name, path


def _read(name: str, file: Any) -> tuple[bytes, bytes]:
    """Return description and weights. Raises DigitsError for a file that has none, or is too large."""
    try:
        with zipfile.ZipFile(file) as archive:
            parts = [archive.getinfo(part) for part in ("config.json", "model.weights.h5")]
            if sum(part.file_size for part in parts) > MOST_BYTES:
                raise DigitsError(f"{name} is larger than {MOST_BYTES >> 20} MiB when unpacked.")
            text, stored = (archive.read(part) for part in parts)
        if json.loads(text)["class_name"] not in ("Functional", "Sequential", "Model"):
            raise DigitsError(
                f"{name} holds a {json.loads(text)['class_name']}. Save a functional or sequential model."
            )
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, OSError, RuntimeError, NotImplementedError) as error:
        if isinstance(error, DigitsError):
            raise
        raise DigitsError(
            f"{name} is no .keras file, or a damaged one. Save it by model.save('name.keras')."
        ) from error
    return text, stored


def _snake(name: str) -> str:
    """Return a class's name as Keras writes it into the file."""
    name = re.sub(r"\W+", "", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)).lower()
