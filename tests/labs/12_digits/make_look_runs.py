"""Runs with models whose answers can be computed by hand, for test_look.py: python make_look_runs.py WORKSPACE

In a process of its own, so that the tests' process stays without TensorFlow.
"""

import sys
from pathlib import Path

import numpy as np

from digits.data.dataset import Dataset
from digits.files import write_json
from digits.training import checkpoints, trained
from digits.workspace import Workspace
from warpcourse.bench import tensorflow_start

SHAPE, CLASSES = (6, 5, 1), ("zero", "<b>one</b>", "two")


def main(root: Path) -> None:
    tensorflow_start.start()
    import keras

    workspace = Workspace(root)
    rng = np.random.default_rng(12)
    images = rng.integers(0, 256, (40, *SHAPE), np.uint8)
    labels = rng.integers(0, 3, 40)
    parts = {
        "train": {"images": images[:10], "labels": labels[:10]},
        "validation": {"images": images[10:], "labels": labels[10:]},
    }
    dataset = Dataset.create(workspace, "forty", "classification", CLASSES, parts, seed=12, source="drawn at random").id

    def run(name, model, dataset=dataset, kind="classification"):
        folder = workspace.create("runs", name)
        network = {"name": "lenet" if kind == "classification" else "detectnet"}
        write_json(
            folder / "run.json", {"id": folder.name, "name": name, "kind": kind, "dataset": dataset, "network": network}
        )
        if model is not None:
            model.save(folder / "model.keras")
        return folder

    def linear(kernel):
        layers = [keras.Input(SHAPE), keras.layers.Flatten(), keras.layers.Dense(3, activation="softmax", name="out")]
        model = keras.Sequential(layers)
        model.get_layer("out").set_weights([kernel, np.float32([0.1, 0.2, -0.3])])
        return model

    kernel = rng.normal(0, 1, (30, 3)).astype(np.float32)
    run("linear", linear(kernel))
    run("diverged", linear(np.full_like(kernel, np.nan)))
    kept = run("kept", None)
    model = linear(kernel)
    trained.save_network(kept, model)
    for step, times in ((10, 1), (20, 2)):  # the weights of step 20 are twice those of step 10
        arrays = {name: times * array for name, array in trained.variables(model).items()}
        checkpoints.write(kept, step, arrays, {"epoch": step / 10})
    run("tangled", tangled(keras), dataset="20260101-000000-deleted")
    run("half", halved(keras))
    picture = keras.Input(SHAPE)
    found = keras.layers.Conv2D(2, 1, name="coverage")(picture)
    run("scenes", keras.Model(picture, [found, keras.layers.Conv2D(4, 1, name="boxes")(picture)]), kind="detection")
    run("empty", None)
    (run("damaged", None) / "model.keras").write_bytes(b"PK\x03\x04 and no more")


def tangled(keras):
    """A layer that is used twice, an addition, a model in a model, a softmax that is a layer, a second output."""
    colour = keras.Input((6, 6, 3))
    bent = keras.layers.Activation("tanh", name="bend")
    inner = keras.Sequential(
        [keras.Input((6, 6, 4)), keras.layers.Conv2D(5, 3, strides=2, name="far"), keras.layers.Flatten()], name="inner"
    )
    x = bent(keras.layers.Conv2D(4, 3, padding="same", name="near")(colour))
    x = keras.layers.Dropout(0.5, name="drop")(bent(x) + x)
    helping = keras.layers.Dense(3, activation="softmax", name="helping")(keras.layers.Flatten(name="flat")(x))
    x = keras.layers.Dense(3, name="scores")(inner(x))
    model = keras.Model(colour, [keras.layers.Softmax(name="probabilities")(x), helping])
    rng = np.random.default_rng(3)
    model.set_weights([rng.normal(0, 0.4, w.shape).astype(w.dtype) for w in model.get_weights()])
    return model


def halved(keras):
    """A network in mixed precision: its activations are bfloat16, which NumPy has no name for."""
    policy = keras.DTypePolicy("mixed_bfloat16")
    layers = [
        keras.Input(SHAPE),
        keras.layers.Conv2D(4, 3, activation="relu", dtype=policy, name="conv"),
        keras.layers.Flatten(dtype=policy),
        keras.layers.Dense(3, activation="softmax", dtype="float32"),
    ]
    return keras.Sequential(layers)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
