"""VGG-16's convolutions and what is between them: a network of 2014, without batch norm (Simonyan and Zisserman, arXiv
1409.1556, table 1, column D). Its three fully connected layers are left out.
"""

from __future__ import annotations

from kernels.convolution.geometry import Convolution
from kernels.convolution.network import Layer

STAGES = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))  # convolutions of 3 × 3, and their filters
SIZE = 224


def layers(batch: int) -> list[Layer]:
    """13 convolutions, a ReLU after each, and a max pooling after each stage."""
    found, channels, size = [], 3, SIZE
    for stage, (count, filters) in enumerate(STAGES, 1):
        for _ in range(count):
            conv = Convolution(batch, channels, size, size, filters, 3, 3, (1, 1))
            found.append(Layer(f"conv{stage} 3×3", "convolution", conv.x_shape(), 1, conv))
            found.append(Layer(f"ReLU, {filters} × {size}²", "ReLU", conv.y_shape(), 1))
            channels = filters
        found.append(Layer("max pooling 2×2", "pooling", (batch, channels, size, size), 1))
        size //= 2
    return found
