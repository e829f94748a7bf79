"""The lab's network: a small relative of GoogLeNet for digits of 8 × 8 pixels, with one residual block.

A stem of 3 × 3; inception module `a`; a residual block; inception module `b`; global average pooling, dropout, 10
classes. A convolution is followed by batch norm and ReLU everywhere. As in GoogLeNet (Szegedy et al., 2014, arXiv
1409.4842) an auxiliary classifier helps training, and is dead weight afterwards.
"""

from pathlib import Path
from typing import Any

from kernels.fusion.graph import Graph, saved_graph

TRAINED = Path(__file__).with_name("trained.npz")  # written by train.py
INPUT, OUTPUT, AUXILIARY = "image", "probabilities", "auxiliary_probabilities"
CLASSES = 10
# Filters of a module's branches: 1 × 1; 3 × 3 after its reduction; 5 × 5 after its reduction; 1 × 1 after pooling.
MODULE_A = {"1x1": 16, "3x3_reduce": 16, "3x3": 16, "5x5_reduce": 16, "5x5": 16, "pool_proj": 16}
MODULE_B = {"1x1": 32, "3x3_reduce": 16, "3x3": 32, "5x5_reduce": 16, "5x5": 16, "pool_proj": 16}


def trained_graph() -> Graph:
    """Return the trained network as it was imported from Keras, before any pass; takes no TensorFlow.

    One input, `image`, (1, 8, 8), from 0 to 1; one output, `probabilities`, (10,).
    """
    return saved_graph.load(TRAINED)


def trained_model() -> Any:
    """Return the trained network in Keras: images (batch, 8, 8, 1) to `probabilities` and `auxiliary_probabilities`."""
    model, graph = untrained_model(), trained_graph()
    for layer in model.layers:
        if layer.get_weights():
            layer.set_weights(_keras_weights(graph.node(layer.name).weights))
    return model


def untrained_model() -> Any:
    """Return the network in Keras with random weights."""
    import keras
    from keras import layers

    def convolution(x: Any, name: str, filters: int, size: int) -> Any:
        x = layers.Conv2D(filters, size, padding="same", use_bias=False, name=name)(x)
        return layers.BatchNormalization(name=f"{name}_bn")(x)

    def unit(x: Any, name: str, filters: int, size: int) -> Any:
        return layers.ReLU(name=f"{name}_relu")(convolution(x, name, filters, size))

    def inception(x: Any, name: str, filters: dict[str, int]) -> Any:
        three = unit(x, f"{name}_3x3_reduce", filters["3x3_reduce"], 1)
        five = unit(x, f"{name}_5x5_reduce", filters["5x5_reduce"], 1)
        pooled = layers.MaxPooling2D(3, strides=1, padding="same", name=f"{name}_pool")(x)
        branches = [
            unit(x, f"{name}_1x1", filters["1x1"], 1),
            unit(three, f"{name}_3x3", filters["3x3"], 3),
            unit(five, f"{name}_5x5", filters["5x5"], 5),
            unit(pooled, f"{name}_pool_proj", filters["pool_proj"], 1),
        ]
        return layers.Concatenate(name=f"{name}_concat")(branches)

    def residual(x: Any, name: str) -> Any:
        inner = unit(x, f"{name}_reduce", 16, 1)
        sum_ = layers.Add(name=f"{name}_add")([convolution(inner, f"{name}_3x3", x.shape[-1], 3), x])
        return layers.ReLU(name=f"{name}_relu")(sum_)

    def classifier(x: Any, prefix: str) -> Any:
        x = layers.GlobalAveragePooling2D(name=f"{prefix}average")(x)
        x = layers.Dropout(0.2, name=f"{prefix}dropout")(x)
        x = layers.Dense(CLASSES, name=f"{prefix}classes")(x)
        return layers.Softmax(name=f"{prefix}probabilities")(x)

    image = keras.Input((8, 8, 1), name=INPUT)
    x = inception(unit(image, "stem", 16, 3), "a", MODULE_A)
    x = layers.MaxPooling2D(2, name="pool")(x)
    auxiliary = classifier(x, "auxiliary_")
    x = inception(residual(x, "residual"), "b", MODULE_B)
    return keras.Model(image, [classifier(x, ""), auxiliary], name="googlenet_digits")


def _keras_weights(weights: Any) -> list:
    """Return a node's weights in Keras' order and axes; keras_import does the opposite."""
    if "gamma" in weights:
        return [weights[name] for name in ("gamma", "beta", "mean", "variance")]
    if "matrix" in weights:
        return [weights["matrix"].T, weights["bias"]]
    return [weights["filters"].transpose(2, 3, 1, 0)]
