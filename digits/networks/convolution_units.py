"""The unit that detection and segmentation are built of: convolution, batch norm, ReLU."""

from typing import Any

from digits.files import DigitsError

# Keras' own 0.99 takes some hundred steps to follow the batches; a run of a minute has a thousand.
MOMENTUM = 0.9


def convolution(x: Any, name: str, filters: int, stride: int = 1) -> Any:
    """Return a convolution of 3 × 3 without bias, and batch norm."""
    from keras import layers

    x = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False, name=name)(x)
    return layers.BatchNormalization(momentum=MOMENTUM, name=f"{name}_bn")(x)


def unit(x: Any, name: str, filters: int, stride: int = 1) -> Any:
    """Return `convolution`, and ReLU."""
    from keras import layers

    return layers.ReLU(name=f"{name}_relu")(convolution(x, name, filters, stride))


def check_sides(network: str, image: tuple[int, int, int], multiple: int) -> None:
    """Raise DigitsError if height or width is no multiple of `multiple`."""
    height, width, _ = image
    if height % multiple or width % multiple:
        raise DigitsError(
            f"The network {network} needs images whose sides are multiples of {multiple}; these have {height} × "
            f"{width}. Build the dataset at such a size."
        )
