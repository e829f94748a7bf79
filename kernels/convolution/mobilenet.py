"""The depthwise convolutions of MobileNet (Howard et al., 2017, arXiv 1704.04861, table 1) at 224 × 224.

The last layer of the table, 1024 channels at 7 × 7, is there with stride 2, which no 7 × 7 output would fit; it has
stride 1, as in the authors' code.
"""

from __future__ import annotations

from kernels.convolution.geometry import Convolution
from kernels.convolution.resnet50 import Layer

BATCH = 32
# Channels, height and width of x, stride, and how often the layer comes.
_LAYERS = (
    (32, 112, 1, 1),
    (64, 112, 2, 1),
    (128, 56, 1, 1),
    (128, 56, 2, 1),
    (256, 28, 1, 1),
    (256, 28, 2, 1),
    (512, 14, 1, 5),
    (512, 14, 2, 1),
    (1024, 7, 1, 1),
)


def layers(batch: int = BATCH) -> list[Layer]:
    """The 13 depthwise layers, the five of one size together."""
    found = []
    for c, size, stride, count in _LAYERS:
        convolution = Convolution(batch, c, size, size, c, 3, 3, (1, 1), (stride, stride), groups=c)
        found.append(Layer(f"depthwise {c} × {size}²" + (f"/{stride}" if stride > 1 else ""), convolution, count))
    return found
