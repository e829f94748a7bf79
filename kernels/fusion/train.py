"""Trains the lab's network and writes its graph to trained.npz: `python -m kernels.fusion.train` (about a minute).

The committed file is of 22 November 2026, trained in 35 s on 2 cores of an x86-64 CPU. Its graph gets 356 of the 360
test images right, 98.9 %. A run elsewhere ends with other weights, since TensorFlow's sums differ between CPUs.
"""

from __future__ import annotations

import time

import numpy as np

from kernels.fusion import digits, saved_graph
from kernels.fusion.interpret import run
from kernels.fusion.keras_import import import_keras
from kernels.fusion.network import AUXILIARY, OUTPUT, TRAINED, untrained_model

EPOCHS, BATCH, SEED = 40, 64, 1


def main() -> None:
    """Train, import, measure the test accuracy of the imported graph, and save it."""
    import keras

    training, _, test = digits.split()
    keras.utils.set_random_seed(SEED)
    model = untrained_model()
    steps = EPOCHS * -(-len(training.labels) // BATCH)
    rate = keras.optimizers.schedules.CosineDecay(3e-3, steps)
    model.compile(
        keras.optimizers.Adam(rate),
        loss={OUTPUT: "sparse_categorical_crossentropy", AUXILIARY: "sparse_categorical_crossentropy"},
        loss_weights={OUTPUT: 1.0, AUXILIARY: 0.3},
    )
    started = time.perf_counter()
    images = training.images.transpose(0, 2, 3, 1)
    labels = {OUTPUT: training.labels, AUXILIARY: training.labels}
    history = model.fit(images, labels, batch_size=BATCH, epochs=EPOCHS, verbose=0)
    print(f"{EPOCHS} epochs in {time.perf_counter() - started:.0f} s, last loss {history.history['loss'][-1]:.4f}")
    graph = import_keras(model, [OUTPUT])
    print(f"test accuracy {100 * accuracy(graph, test):.2f} % of {len(test.labels)} images")
    saved_graph.save(graph, TRAINED)
    print(f"{TRAINED.name}: {TRAINED.stat().st_size / 1000:.0f} kB")


def accuracy(graph: saved_graph.Graph, of: digits.Digits) -> float:
    """Share of digits that the graph, run by the interpreter in float32, gets right."""
    probabilities = run(graph, of.images, dtype=np.float32)[graph.outputs[0]]
    return float((probabilities.argmax(axis=1) == of.labels).mean())


if __name__ == "__main__":
    main()
