"""A small network on the handwritten digits that come with scikit-learn: 64 → 32 → 10, trained to the end.

    logits (n, 10) = activation(images · w1, b1) · w2 + b2

`activation(x, bias)` is what the lesson exchanges: TensorFlow's own, or a kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.training.framework import tf

HIDDEN, CLASSES, TRAINING = 32, 10, 1536  # of 1797 images
BATCH, RATE, EPOCHS = 128, 0.5, 15

Activation = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Digits:
    """Images in [0, 1], float32 of shape (n, 64), and their labels, int32 of shape (n,); those for the test apart."""

    images: np.ndarray
    labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load(seed: int = 0) -> Digits:
    """Return the 1797 digits in a shuffled order, TRAINING of them to train with."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    images, labels = (images[order] / 16).astype(np.float32), labels[order].astype(np.int32)
    return Digits(images[:TRAINING], labels[:TRAINING], images[TRAINING:], labels[TRAINING:])


def parameters(seed: int = 0) -> list[Any]:
    """Return variables w1, b1, w2, b2: weights normal, their variance 1 over the inputs of a unit; biases 0."""
    rng = np.random.default_rng(seed)

    def weights(rows: int, columns: int) -> Any:
        return tf.Variable((rng.standard_normal((rows, columns)) / rows**0.5).astype(np.float32))

    return [
        weights(64, HIDDEN),
        tf.Variable(tf.zeros(HIDDEN)),
        weights(HIDDEN, CLASSES),
        tf.Variable(tf.zeros(CLASSES)),
    ]


def logits(p: list[Any], images: Any, activation: Activation) -> Any:
    """Return the shape (n, 10)."""
    w1, b1, w2, b2 = p
    return activation(images @ w1, b1) @ w2 + b2


def loss(p: list[Any], images: Any, labels: Any, activation: Activation) -> Any:
    """Return the mean cross entropy, float32 whatever the precision of `p` and `images`."""
    found = tf.cast(logits(p, images, activation), tf.float32)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, found))


def accuracy(p: list[Any], digits: Digits, activation: Activation) -> float:
    """Return the share of the test images whose largest logit is the right one."""
    found = logits(p, tf.constant(digits.test_images), activation)
    return float(np.mean(np.argmax(found, axis=1) == digits.test_labels))


@dataclass(frozen=True)
class Trained:
    """`losses`: one per step; `accuracies`: on the test images, one per epoch; `parameters`: after the last step."""

    losses: list[float]
    accuracies: list[float]
    parameters: list[Any]


def train(
    activation: Activation,
    digits: Digits,
    *,
    epochs: int = EPOCHS,
    seed: int = 0,
    precision: Any = tf.float32,
    scale: float = 1.0,
) -> Trained:
    """Return the gradient descent in batches of BATCH, the same batches for every activation.

    `precision`: tf.float16 computes products and activations, and their gradients, in it; weights and their update stay
    float32. `scale`: the loss is multiplied by it, and the gradients divided by it before the update; no step is
    skipped, whatever comes of that.
    """
    p = parameters(seed)

    @tf.function
    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            computed = [tf.cast(variable, precision) for variable in p]
            value = loss(computed, tf.cast(images, precision), labels, activation)
            scaled = value * scale
        for variable, gradient in zip(p, tape.gradient(scaled, p), strict=True):
            variable.assign_sub(RATE * (gradient / scale))
        return value

    images, labels = tf.constant(digits.images), tf.constant(digits.labels)
    losses, accuracies = [], []
    for _ in range(epochs):
        for first in range(0, TRAINING, BATCH):
            losses.append(float(step(images[first : first + BATCH], labels[first : first + BATCH])))
        accuracies.append(accuracy(p, digits, activation))
    return Trained(losses, accuracies, p)
