"""The convolutions of ResNet-50 (He et al., 2015, arXiv 1512.03385, table 1) at 224 × 224, as frameworks train them: a
block's stride is in its 3 × 3 convolution.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels.convolution.geometry import Convolution

STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))  # blocks, and channels of their 3 × 3 convolution
BATCH = 32


@dataclass(frozen=True)
class Layer:
    """`count` convolutions of one size. `name`: such as "conv3_x 3×3/2"; the stride is left out where it is 1."""

    name: str
    convolution: Convolution
    count: int


def layers(batch: int = BATCH) -> list[Layer]:
    """All 53 convolutions, those of one stage and size together, from the image to the last block."""
    found = {("conv1 7×7/2", Convolution(batch, 3, 224, 224, 64, 7, 7, (3, 3), (2, 2))): 1}

    def add(name: str, c: int, size: int, k: int, window: int, stride: int) -> None:
        padding = (window // 2, window // 2)
        convolution = Convolution(batch, c, size, size, k, window, window, padding, (stride, stride))
        key = f"{name} {window}×{window}" + (f"/{stride}" if stride > 1 else ""), convolution
        found[key] = found.get(key, 0) + 1

    channels, size = 64, 56
    for stage, (blocks, inner) in enumerate(STAGES):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            name = f"conv{stage + 2}_x"
            add(name, channels, size, inner, 1, 1)
            add(name, inner, size, inner, 3, stride)
            add(name, inner, size // stride, 4 * inner, 1, 1)
            if block == 0:
                add(f"{name} shortcut", channels, size, 4 * inner, 1, stride)
            channels, size = 4 * inner, size // stride
    return [Layer(name, convolution, count) for (name, convolution), count in found.items()]


def compared(batch: int = BATCH) -> list[Layer]:
    """The layers that kernels are compared with cuDNN on: all but conv1, whose three channels fill no 16 bytes."""
    return layers(batch)[1:]
