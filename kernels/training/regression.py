"""The source's regression: a number from its sine and cosine, by a network with one hidden layer.

    inputs (n, 2) = sin x, cos x      hidden = relu(inputs · w1 + b1)      output (n, 1) = hidden · w2 + b2

The notes give neither data nor network; what is fixed here is a guess that shows what they report. All arrays are
float32. Nothing here chooses a good way to train: the lesson does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.training.framework import tf

SAMPLES, UNITS = 256, 20


def data(samples: int = SAMPLES, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return (inputs, x): x of shape (samples, 1), uniform in a full turn, 0 to 2π, sorted; inputs (samples, 2)."""
    x = np.sort(np.random.default_rng(seed).uniform(0, 2 * np.pi, (samples, 1)), axis=0).astype(np.float32)
    return np.hstack([np.sin(x), np.cos(x)]), x


def parameters(seed: int = 0, deviation: float | None = 1.0) -> dict[str, Any]:
    """Return variables of the network: weights normal with that standard deviation, biases 0.

    `deviation=None`: sqrt(2 / inputs of the layer), which keeps the size of what passes through `relu` (He 2015).
    """
    rng = np.random.default_rng(seed)

    def normal(rows: int, columns: int) -> Any:
        scale = (2 / rows) ** 0.5 if deviation is None else deviation
        return tf.Variable((scale * rng.standard_normal((rows, columns))).astype(np.float32))

    return {
        "w1": normal(2, UNITS),
        "b1": tf.Variable(tf.zeros(UNITS)),
        "w2": normal(UNITS, 1),
        "b2": tf.Variable([0.0]),
    }


def network(p: dict[str, Any], inputs: Any) -> tuple[Any, Any]:
    """Return (hidden, output), of shapes (n, UNITS) and (n, 1)."""
    hidden = tf.nn.relu(inputs @ p["w1"] + p["b1"])
    return hidden, hidden @ p["w2"] + p["b2"]


@dataclass(frozen=True)
class History:
    """What a training run left. Arrays have one entry per step.

    `loss`: mean of the squared errors, in units of the target, whatever was minimised. `dead`: share of the hidden
    units that are 0 for every input. `gradient`: norm of the whole gradient. `parameters`: after the last step.
    """

    rate: float
    loss: np.ndarray
    dead: np.ndarray
    gradient: np.ndarray
    parameters: dict[str, Any]


def train(
    rate: float,
    inputs: Any,
    target: Any,
    *,
    reduce: Callable[[Any], Any] = tf.reduce_sum,
    steps: int = 500,
    seed: int = 0,
    deviation: float | None = 1.0,
) -> History:
    """Return the gradient descent at a fixed rate on `reduce` of the squared errors, the whole set in each step.

    `inputs` (n, 2), `target` (n, 1); `reduce`: tf.reduce_sum or tf.reduce_mean. Stops for no loss, however large.
    """
    if len(inputs) != len(target):
        raise ValueError(f"there are {len(inputs)} inputs and {len(target)} targets; each input needs one")
    p = parameters(seed, deviation)
    inputs, target = tf.constant(inputs), tf.constant(target)

    @tf.function
    def step() -> tuple[Any, Any, Any]:
        with tf.GradientTape() as tape:
            hidden, output = network(p, inputs)
            errors = tf.square(output - target)
            loss = reduce(errors)
        gradients = tape.gradient(loss, list(p.values()))
        for variable, gradient in zip(p.values(), gradients, strict=True):
            variable.assign_sub(rate * gradient)
        dead = tf.reduce_mean(tf.cast(tf.reduce_all(hidden <= 0, axis=0), tf.float32))
        return tf.reduce_mean(errors), dead, tf.linalg.global_norm(gradients)

    found = np.array([[float(value) for value in step()] for _ in range(steps)])
    return History(rate, *found.T, p)
