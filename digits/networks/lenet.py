"""A network like LeNet (LeCun et al., 1998), for images of 8 × 8 pixels and more.

Two convolutions of 5 × 5, each followed by ReLU and max pooling, one dense layer and the classes. The LeNet that came
with DIGITS (Caffe's, for 28 × 28 pixels) had 20 and 50 filters without padding and without ReLU after them, and 500
units; here images are padded, so that small ones keep their border, and dropout is added.
"""

from collections.abc import Mapping
from typing import Any

from digits.networks.checks import at_least, number


def build(image: tuple[int, int, int], classes: int, options: Mapping[str, Any]) -> Any:
    """Return options: `filters` of the first convolution (the second has 2.5 times as many), `units`, `dropout`."""
    filters = int(number("lenet", options, "filters", 1, 1024, whole=True))
    units = int(number("lenet", options, "units", 1, 16_384, whole=True))
    dropout = number("lenet", options, "dropout", 0.0, 0.95)
    at_least("lenet", image, 4)
    import keras
    from keras import layers

    x = pixels = keras.Input(image, name="image")
    for at, size in enumerate((filters, max(1, filters * 5 // 2)), start=1):
        x = layers.Conv2D(size, 5, padding="same", activation="relu", name=f"convolution_{at}")(x)
        x = layers.MaxPooling2D(2, name=f"pool_{at}")(x)
    x = layers.Flatten(name="flatten")(x)
    x = layers.Dense(units, activation="relu", name="dense")(x)
    x = layers.Dropout(dropout, name="dropout")(x)
    x = layers.Dense(classes, name="classes")(x)
    # Softmax of 16-bit numbers would lose most of the small probabilities, whose logarithm is the loss.
    return keras.Model(pixels, layers.Softmax(name="probabilities", dtype="float32")(x), name="lenet")
