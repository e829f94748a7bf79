"""A .keras file of one's own as a start: its weights by name, hostile files, frozen layers, and what they are worth."""

from __future__ import annotations

import importlib
import io
import json
import zipfile

import numpy as np
import pytest

from digits.data.dataset import Dataset
from digits.files import DigitsError
from digits.networks import custom, keras_file, sandboxed, starts
from digits.training import checkpoints, runs, trained
from digits.training.spec import RunSpec, Solver
from digits.workspace import Workspace

photos = importlib.import_module("tests.labs.12_digits.made_photos")
pytestmark = pytest.mark.tensorflow
needs_sandbox = pytest.mark.skipif(sandboxed.unavailable() != "", reason=sandboxed.unavailable())
IMAGE = (32, 32, 3)
FIGURES = list(photos.FIGURES)
BACKBONE = """
import keras
from keras import layers


def network(image, classes):
    x = pixels = keras.Input(image)
    for at, filters in enumerate((16, 32, 64)):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False, name=f"conv_{at}")(x)
        x = layers.BatchNormalization(name=f"norm_{at}")(x)
        x = layers.ReLU()(x)
        x = layers.MaxPooling2D()(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(pixels, layers.Dense(classes, activation="softmax", name="out")(x))
"""


def branched(keras):
    layers = keras.layers
    x = pixels = keras.Input((16, 16, 3))
    x = layers.BatchNormalization(name="norm")(layers.Conv2D(8, 3, padding="same", name="first")(x))
    left = layers.Conv2D(8, 3, padding="same", name="left")(x)
    right = layers.SeparableConv2D(8, 3, padding="same", name="apart")(layers.Conv2D(8, 3, padding="same", name="b")(x))
    x = layers.GlobalAveragePooling2D()(layers.Add()([left, right]))
    x = layers.Dense(12, activation="relu", name="hidden")(x)
    return keras.Model(pixels, layers.Dense(5, activation="softmax", name="out")(x))


def stacked(keras):
    layers = keras.layers
    first = layers.Conv2D(4, 3, name="one"), layers.Conv2D(4, 3, name="two"), layers.Flatten()
    return keras.Sequential([keras.Input((16, 16, 3)), *first, layers.Dense(5), layers.Softmax()])


def saved(model, folder):
    path = folder / "saved.keras"
    model.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("made", [branched, stacked])
def test_weights_are_read_by_the_names_of_layers(made, tmp_path):
    import keras

    model, rng = made(keras), np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(rng.random(weight.shape))
    start = keras_file.keep(tmp_path, "my flowers.keras", saved(model, tmp_path))
    assert keras_file.kept(tmp_path) == [start] == ["file my-flowers.keras"]
    found, right = keras_file.weights(tmp_path, start), starts.of_model(model)
    assert set(found) == set(right)
    for name, arrays in right.items():
        for ours, theirs in zip(found[name], arrays, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@needs_sandbox
def test_the_layers_before_the_last_dense_one_stay_and_the_answer_is_new(tmp_path):
    import keras

    start = keras_file.keep(tmp_path, "b.keras", saved(branched(keras), tmp_path))
    description = keras_file.config(tmp_path, start)
    found = custom.configure(keras_file.SOURCE, (16, 16, 3), 3, confirmed=True, start=description)
    model = custom.build((16, 16, 3), 3, {"configuration": found})
    assert model.output_shape == (None, 3)
    taken = starts.take(model, keras_file.weights(tmp_path, start))
    assert set(taken.layers) == {"first", "norm", "left", "b", "apart", "hidden"}
    assert set(taken.left) == {"answer"}


def archive(**parts):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name, data in parts.items():
            made.writestr({"config": "config.json", "weights": "model.weights.h5"}[name], data)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.h5", b"", "is no .keras file"),
        ("../../a.keras", b"no zip", "is no .keras file, or a damaged one"),
        ("a.keras", archive(config="{}"), "is no .keras file, or a damaged one"),
        ("a.keras", archive(config="[1", weights=b""), "is no .keras file, or a damaged one"),
        ("a.keras", archive(config='{"class_name": "Odd"}', weights=b""), "holds a Odd"),
    ],
)
def test_what_is_no_network_is_refused_with_its_reason(name, data, reason, tmp_path):
    with pytest.raises(DigitsError, match=reason):
        keras_file.keep(tmp_path, name, data)
    assert keras_file.kept(tmp_path) == []


@pytest.mark.parametrize("how", ["link", "external data", "damaged", "elsewhere"])
def test_weights_that_lead_out_of_the_file_are_refused(how, tmp_path):
    import h5py

    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["0"] = np.ones(4, np.float32)
    path = tmp_path / "weights.h5"
    with h5py.File(path, "w") as file:
        group = file.create_group("layers/dense/vars")
        if how == "link":
            group["0"] = h5py.ExternalLink(str(secret), "0")
        elif how == "external data":
            group.create_dataset("0", (4,), "f4", external=[(str(secret), 0, 16)])
        else:
            group["0"] = ["text"]
    stored = path.read_bytes() if how != "damaged" else b"no HDF5"
    about = {"class_name": "Functional", "config": {"layers": [{"class_name": "Dense", "config": {"name": "d"}}]}}
    start = keras_file.keep(tmp_path, "a.keras", archive(config=json.dumps(about), weights=stored))
    with pytest.raises(DigitsError, match=r"is no array of numbers in it|cannot be read"):
        keras_file.weights(tmp_path, start)


def test_only_a_start_can_be_frozen_and_it_must_be_there(tmp_path):
    with pytest.raises(DigitsError, match="Only the layers of a start can be frozen"):
        RunSpec("d", freeze=True)
    space = Workspace(tmp_path)
    data = Dataset.create(
        space, "p", "classification", FIGURES[:2], photos.parts(FIGURES[:2], {"train": 2, "validation": 2}, 1),
        seed=1, source="a test",
    )  # fmt: skip
    for start in ("file gone.keras", "file ../../x.keras"):
        with pytest.raises(DigitsError, match="There is no start"):
            runs.start(space, RunSpec(data.id, start=start, freeze=True))


def run(space, dataset, network, **spec):
    started = runs.start(space, RunSpec(dataset.id, network, kind="classification", **spec))
    state = started.wait(500)
    assert state["status"] == "done", state
    return started, state


def dataset(space, figures, counts, seed):
    return Dataset.create(
        space, "photos", "classification", figures, photos.parts(figures, counts, seed), seed=seed, source="made"
    )


@pytest.mark.thorough
@needs_sandbox
def test_with_frozen_features_50_photos_of_a_class_are_enough(tmp_path):
    """Features that were learnt on eight figures tell four others apart, of which there are 50 photos each."""
    space, seed = Workspace(tmp_path / "space"), 1
    print(f"seed {seed}")
    first = {"name": "custom", "configuration": custom.configure(BACKBONE, IMAGE, 8, confirmed=True)}
    many = dataset(space, FIGURES[:8], {"train": 400, "validation": 25}, seed)
    backbone, _ = run(space, many, first, solver=Solver(epochs=8, rate=0.003, seed=seed))
    start = keras_file.keep(space.root, "figures.keras", (backbone.folder / "model.keras").read_bytes())
    few = dataset(space, FIGURES[8:], {"train": 50, "validation": 200}, seed + 1)
    description = keras_file.config(space.root, start)
    second = {
        "name": "custom",
        "configuration": custom.configure(keras_file.SOURCE, IMAGE, 4, confirmed=True, start=description),
    }
    solver = Solver(epochs=25, rate=0.01, seed=seed)
    frozen, with_features = run(space, few, second, solver=solver, start=start, freeze=True)
    _, alone = run(space, few, second, solver=solver)
    accuracies = with_features["best"]["accuracy"], alone["best"]["accuracy"]
    print(f"frozen features {accuracies[0]:.3f}, random weights {accuracies[1]:.3f}")
    assert accuracies[0] > 0.7
    assert accuracies[0] > accuracies[1] + 0.2
    # Frozen is frozen: statistics of batches, too.
    before, after = keras_file.weights(space.root, start), starts.of_model(trained.load_model(frozen))
    for name in set(before) & set(after):
        for ours, theirs in zip(before[name], after[name], strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert len(checkpoints.latest(frozen.folder)[1]["frozen"]) == 6
