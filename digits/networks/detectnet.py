"""A small relative of DetectNet (NVIDIA, 2016): for each cell of a grid, how sure which class is there, and its box.

A stem that halves the image twice, then residual blocks, so that a cell sees well beyond the largest digit. Two heads
of 1 × 1: `coverage`, (height / 4, width / 4, classes), from 0 to 1, and `edges`, (height / 4, width / 4, 4), the
distances from the cell's centre to the left, upper, right and lower edge of its object, in cells. What the targets of
both are: digits/tasks/grid.py.
"""

import math
from collections.abc import Mapping
from typing import Any

from digits.networks.checks import number
from digits.networks.convolution_units import check_sides, convolution, unit

STRIDE = 4  # pixels of a cell
COVERED_AT_FIRST = 0.02  # coverage before training: most cells hold nothing, and a loss that says so is not waited for
EDGE_AT_FIRST = 2.0  # cells


def build(image: tuple[int, int, int], classes: int, options: Mapping[str, Any]) -> Any:
    """Return the untrained keras.Model, images to [coverage, edges].

    Options: `filters` of the stem (the blocks have four times as many), `blocks`.
    """
    filters = int(number("detectnet", options, "filters", 2, 128, whole=True))
    blocks = int(number("detectnet", options, "blocks", 1, 20, whole=True))
    check_sides("detectnet", image, STRIDE)
    import keras
    from keras import layers

    start = keras.Input(image, name="image")
    x = unit(start, "stem_1", filters, 2)
    x = unit(x, "stem_2", 2 * filters)
    x = unit(x, "stem_3", 4 * filters, 2)
    for at in range(1, blocks + 1):
        inner = convolution(unit(x, f"block_{at}_1", 4 * filters), f"block_{at}_2", 4 * filters)
        x = layers.ReLU(name=f"block_{at}")(layers.Add(name=f"block_{at}_add")([inner, x]))
    at_first = keras.initializers.Constant(math.log(COVERED_AT_FIRST / (1 - COVERED_AT_FIRST)))
    coverage = layers.Conv2D(classes, 1, bias_initializer=at_first, name="coverage_logits")(x)
    coverage = layers.Activation("sigmoid", dtype="float32", name="coverage")(coverage)
    far = keras.initializers.Constant(EDGE_AT_FIRST)
    edges = layers.Conv2D(4, 1, bias_initializer=far, dtype="float32", name="edges")(x)
    return keras.Model(start, [coverage, edges], name="detectnet")
