"""Trains the lab's network and writes its graph to trained.npz: `python -m kernels.fusion.trained.train`, a minute.

The committed file is of 22 November 2026, trained in 35 s on 2 cores of an x86-64 CPU. Its graph gets 356 of the 360
test images right, 98.9 %. A second run there gave the same weights; a run elsewhere need not, since TensorFlow's sums
differ between CPUs.
"""

import time
from typing import Any

import numpy as np

from kernels.fusion.exchange.keras_import import import_keras
from kernels.fusion.graph import saved_graph
from kernels.fusion.graph.interpret import run
from kernels.fusion.trained import digits
from kernels.fusion.trained.network import AUXILIARY, OUTPUT, TRAINED, untrained_model

EPOCHS, BATCH, SEED = 40, 64, 1


def main() -> None:
    """Train, import, measure the test accuracy of the imported graph, and save it."""
    training, _, test = digits.split()
    started = time.perf_counter()
    model, losses = trained(training, EPOCHS)
    print(f"{EPOCHS} epochs in {time.perf_counter() - started:.0f} s, last loss {losses[-1]:.4f}")
    graph = import_keras(model, [OUTPUT])
    print(f"test accuracy {100 * accuracy(graph, test):.2f} % of {len(test.labels)} images")
    saved_graph.save(graph, TRAINED)
    print(f"{TRAINED.name}: {TRAINED.stat().st_size / 1000:.0f} kB")


def trained(training: digits.Digits, epochs: int) -> tuple[Any, list[float]]:
    """Return the model after `epochs` over these digits, its learning rate falling to zero, and the loss of each
    epoch."""
    import keras

    keras.utils.set_random_seed(SEED)
    model = untrained_model()
    steps = epochs * -(-len(training.labels) // BATCH)
    loss = "sparse_categorical_crossentropy"
    model.compile(
        keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(3e-3, steps)),
        loss={OUTPUT: loss, AUXILIARY: loss},
        loss_weights={OUTPUT: 1.0, AUXILIARY: 0.3},
    )
    images = training.images.transpose(0, 2, 3, 1)
    labels = {OUTPUT: training.labels, AUXILIARY: training.labels}
    history = model.fit(images, labels, batch_size=BATCH, epochs=epochs, verbose=0)
    return model, history.history["loss"]


def accuracy(graph: saved_graph.Graph, of: digits.Digits) -> float:
    """Return the share of digits that the graph, run by the interpreter in float32, gets right."""
    probabilities = run(graph, of.images, dtype=np.float32)[graph.outputs[0]]
    return float((probabilities.argmax(axis=1) == of.labels).mean())


if __name__ == "__main__":
    main()
