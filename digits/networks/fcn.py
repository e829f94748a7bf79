"""A small fully convolutional network with skip connections: for each pixel, the probabilities of ground and classes.

After FCN-8s (Long, Shelhamer and Darrell, 2015): features at 1/2, 1/4 and 1/8 of the image's size (there 1/8, 1/16 and
1/32, of a VGG-16) each give scores by a convolution of 1 × 1; the coarsest are enlarged twofold by a transposed
convolution and added to the next finer ones, and so on up to the pixels (there the last step enlarges eightfold). The
coarse scores know what is there, the fine ones where it ends.
"""

from collections.abc import Mapping
from typing import Any

from digits.networks.checks import number
from digits.networks.convolution_units import check_sides, unit

SMALLEST = 8  # pixels at the image's scale that one cell of the coarsest features stands for


def build(image: tuple[int, int, int], classes: int, options: Mapping[str, Any]) -> Any:
    """Return the untrained keras.Model, images to probabilities (height, width, classes + 1), ground first.

    Options: `filters` of the first convolution (the deepest have four times as many); `skips`, from 0, scores of the
    coarsest features alone, to 2.
    """
    filters = int(number("fcn", options, "filters", 2, 128, whole=True))
    skips = int(number("fcn", options, "skips", 0, 2, whole=True))
    check_sides("fcn", image, SMALLEST)
    import keras
    from keras import layers

    values = classes + 1

    def enlarged(scores: Any, name: str) -> Any:
        return layers.Conv2DTranspose(values, 4, strides=2, padding="same", name=name)(scores)

    start = keras.Input(image, name="image")
    half = unit(unit(start, "half_1", filters, 2), "half_2", 2 * filters)
    quarter = unit(half, "quarter_1", 4 * filters, 2)
    for at in (2, 3):
        quarter = unit(quarter, f"quarter_{at}", 4 * filters)
    eighth = unit(quarter, "eighth_1", 4 * filters, 2)
    for at in (2, 3):
        eighth = unit(eighth, f"eighth_{at}", 4 * filters)
    scores = layers.Conv2D(values, 1, name="scores_eighth")(eighth)
    for at, (name, finer) in enumerate((("quarter", quarter), ("half", half)), 1):
        scores = enlarged(scores, f"enlarged_to_{name}")
        if at <= skips:
            skip = layers.Conv2D(values, 1, name=f"scores_{name}")(finer)
            scores = layers.Add(name=f"skip_{name}")([scores, skip])
    scores = enlarged(scores, "enlarged_to_pixels")
    probabilities = layers.Softmax(dtype="float32", name="probabilities")(scores)
    return keras.Model(start, probabilities, name="fcn")
