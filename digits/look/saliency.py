"""Which pixels an answer hangs on: gradient × input, and occlusion. In the model's process.

Gradient × input (Shrikumar and others, 2016) is one backward pass: to first order, what of the class's score would go
if a pixel alone became 0. A black pixel gets 0, whatever it means to the network. Occlusion (Zeiler and Fergus, 2014)
asks the network itself: it covers patch after patch and sees how much the class's probability falls.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

POSITIONS = 16  # at most, of the occluding patch, along each side
TINY = 1e-30


def scores(model: Any) -> Callable[[Any], Any]:
    """Return what the model computes before its softmax, else the logarithm of its probabilities.

    A softmax answers for all classes at once, so its gradient says as much about the others; the score before it
    belongs to one class. The logarithm differs from it by a number that all classes share.
    """
    import keras

    # The first output answers, and need not come from the last layer: a network may have heads that only help.
    origin = model.outputs[0]._keras_history
    last = origin.operation
    given = last._inbound_nodes[origin.node_index].input_tensors
    if len(given) == 1 and not hasattr(last, "layers"):
        before = keras.Model(model.inputs[0], given[0])
        if isinstance(last, keras.layers.Softmax) or _softmax_activation(last):
            return lambda x: before(x, training=False)
        if isinstance(last, keras.layers.Dense) and last.activation is keras.activations.softmax:
            bias = 0.0 if last.bias is None else last.bias
            return lambda x: keras.ops.matmul(before(x, training=False), last.kernel) + bias
    return lambda x: keras.ops.log(keras.ops.maximum(_first(model(x, training=False)), TINY))


def _softmax_activation(layer: Any) -> bool:
    import keras

    return isinstance(layer, keras.layers.Activation) and layer.activation is keras.activations.softmax


def gradient_times_input(model: Any, prepared: np.ndarray, label: int) -> np.ndarray:
    """Return the gradient of the class's score × input, summed over the channels: (1, h, w, c) to float32 (h, w)."""
    import tensorflow as tf

    image = tf.constant(prepared)
    score = scores(model)
    with tf.GradientTape() as tape:
        tape.watch(image)
        value = tf.cast(score(image), tf.float32)[0, label]
    slope = tape.gradient(value, image)
    return np.asarray((slope * image)[0], np.float32).sum(axis=-1)


def occlusion(
    probabilities: Callable[[np.ndarray], np.ndarray],
    prepared: np.ndarray,
    label: int,
    progress: Callable[[float], None] = lambda share: None,
    batch: int = 32,
) -> tuple[np.ndarray, int]:
    """Return how much the class's probability falls when patches of the image take its mean colour.

    `probabilities`: prepared images to (n, classes). `prepared`: (1, h, w, c). A patch is a sixth of the shorter side,
    at least 2 pixels where the image has them. Returns float32 (h, w), for each pixel the mean of the patches that
    cover it, and the patch's side.
    """
    _, height, width, _ = prepared.shape
    patch = min(max(2, round(min(height, width) / 6)), height, width)
    corners = [(top, left) for top in _starts(height, patch) for left in _starts(width, patch)]
    mean = prepared.mean(axis=(0, 1, 2))
    whole = float(probabilities(prepared)[0, label])
    falls, covered = np.zeros((height, width)), np.zeros((height, width))
    for first in range(0, len(corners), batch):
        some = corners[first : first + batch]
        images = np.repeat(prepared, len(some), axis=0)
        for image, (top, left) in zip(images, some, strict=True):
            image[top : top + patch, left : left + patch] = mean
        for (top, left), p in zip(some, probabilities(images)[:, label], strict=True):
            falls[top : top + patch, left : left + patch] += whole - p
            covered[top : top + patch, left : left + patch] += 1
        progress(min(1.0, (first + len(some)) / len(corners)))
    return (falls / covered).astype(np.float32), patch


def _starts(side: int, patch: int) -> list[int]:
    """Return where patches begin that cover the side: at most POSITIONS, or so many that there is no gap."""
    most = max(POSITIONS, -(-side // patch))
    count = min(side - patch + 1, most)
    return sorted({round(i * (side - patch) / max(count - 1, 1)) for i in range(count)})


def _first(outputs: Any) -> Any:
    if isinstance(outputs, dict):
        return next(iter(outputs.values()))
    return outputs[0] if isinstance(outputs, list | tuple) else outputs
