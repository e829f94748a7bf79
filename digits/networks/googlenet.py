"""A small GoogLeNet with a residual block: lab 09's network at 8 × 8 grey pixels, the same idea at any other size.

Lab 09's own is taken where it fits, so that its trained weights can be a start and its engine runs the result. For
other images the stem halves them, by a strided convolution and pooling, until at most 32 pixels are left.
"""

from collections.abc import Mapping
from typing import Any

from digits.networks.checks import at_least

LAB_09_IMAGE, LAB_09_CLASSES = (8, 8, 1), 10
MOMENTUM = 0.9  # of batch norm's moving means: Keras's 0.99 still remembers their start after some epochs of few images
_LARGEST = 32  # pixels that reach the first inception module


def build(image: tuple[int, int, int], classes: int, options: Mapping[str, Any]) -> Any:
    """Return the network, without options. Outputs: the answer, and an auxiliary classifier that helps training."""
    at_least("googlenet", image, 8)
    model = _of_lab_09() if tuple(image) == LAB_09_IMAGE and classes == LAB_09_CLASSES else None
    model = model or _build(image, classes)
    for layer in model.layers:
        if hasattr(layer, "moving_mean"):
            layer.momentum = MOMENTUM
    return model


def _of_lab_09() -> Any:
    """Build lab 09's own network, as _build does; None if lab 09 was deleted, or if it would put out 16 bits."""
    import keras

    if keras.config.dtype_policy().compute_dtype != "float32":
        return None
    try:
        from kernels.fusion.trained.network import untrained_model
    except ImportError:
        return None
    return untrained_model()


def _build(image: tuple[int, int, int], classes: int) -> Any:
    import keras
    from keras import layers

    def unit(x: Any, name: str, filters: int, size: int, strides: int = 1, relu: bool = True) -> Any:
        x = layers.Conv2D(filters, size, strides, padding="same", use_bias=False, name=name)(x)
        x = layers.BatchNormalization(name=f"{name}_bn")(x)
        return layers.ReLU(name=f"{name}_relu")(x) if relu else x

    def inception(x: Any, name: str, one: int, reduce: int, three: int, five: int, pool: int) -> Any:
        pooled = layers.MaxPooling2D(3, strides=1, padding="same", name=f"{name}_pool")(x)
        branches = [
            unit(x, f"{name}_1x1", one, 1),
            unit(unit(x, f"{name}_3x3_reduce", reduce, 1), f"{name}_3x3", three, 3),
            unit(unit(x, f"{name}_5x5_reduce", reduce, 1), f"{name}_5x5", five, 5),
            unit(pooled, f"{name}_pool_proj", pool, 1),
        ]
        return layers.Concatenate(name=f"{name}_concat")(branches)

    def classifier(x: Any, prefix: str) -> Any:
        x = layers.GlobalAveragePooling2D(name=f"{prefix}average")(x)
        x = layers.Dropout(0.2, name=f"{prefix}dropout")(x)
        x = layers.Dense(classes, name=f"{prefix}classes")(x)
        return layers.Softmax(name=f"{prefix}probabilities", dtype="float32")(x)

    x = pixels = keras.Input(image, name="image")
    large = max(image[:2])
    x = unit(x, "stem", 16, 3, strides=2 if large > _LARGEST else 1)
    large = -(-large // 2) if large > _LARGEST else large
    halved = 0
    while large > _LARGEST:
        halved += 1
        x = layers.MaxPooling2D(3, strides=2, padding="same", name=f"stem_pool_{halved}")(x)
        large = -(-large // 2)
    x = inception(x, "a", 16, 16, 16, 16, 16)
    x = layers.MaxPooling2D(2, name="pool")(x)
    auxiliary = classifier(x, "auxiliary_")
    inner = unit(unit(x, "residual_reduce", 16, 1), "residual_3x3", x.shape[-1], 3, relu=False)
    x = layers.ReLU(name="residual_relu")(layers.Add(name="residual_add")([inner, x]))
    x = inception(x, "b", 32, 16, 32, 16, 16)
    return keras.Model(pixels, [classifier(x, ""), auxiliary], name="googlenet")
