"""ResNet-101, layer by layer: how many bytes of activations its 33 blocks keep for the backward pass.

He and others, "Deep Residual Learning" (2015), https://arxiv.org/abs/1512.03385, table 1, with the stride of a block in
its 3 × 3 convolution, as today's libraries have it. What is kept: each convolution's input, each batch norm's input,
each ReLU's result. Statistics of a channel, the arg max of pooling (as wide as its result's elements) aside, all else
can be computed in place or is not needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

BLOCKS: Mapping[int, tuple[int, ...]] = MappingProxyType(
    {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}  # by depth, blocks of each stage
)
WIDTHS = (64, 128, 256, 512)
EXPANSION = 4
FLOAT = 4  # bytes


@dataclass(frozen=True)
class Block:
    """One bottleneck, or the stem. `input_elements`, `inside_elements` (its result among them): per image."""

    name: str
    input_elements: int
    inside_elements: int
    weights: int


def blocks(depth: int = 101, side: int = 224, *, summands: bool = False) -> list[Block]:
    """Return the stem and the bottlenecks of a ResNet for images of 3 × side × side. `side`: a multiple of 32.

    `summands`: whether what is added at the end of a block is kept, too, as TensorFlow does in eager mode.
    """
    if depth not in BLOCKS:
        raise ValueError(f"there is no ResNet-{depth} here; choose one of {', '.join(map(str, BLOCKS))}")
    if side < 32 or side % 32:
        raise ValueError(f"images of {side} x {side}: the side must be a multiple of 32")
    half, size = side // 2, side // 4
    # Stem: convolution's result, ReLU's result, pooling's result and its arg max (8 bytes: two elements).
    found = [Block("stem", 3 * side**2, 64 * (2 * half**2 + 3 * size**2), 3 * 64 * 49 + 128)]
    channels = 64
    for stage, (count, width) in enumerate(zip(BLOCKS[depth], WIDTHS, strict=True), 1):
        for k in range(count):
            stride = 2 if stage > 1 and k == 0 else 1
            found.append(
                _bottleneck(f"{stage}.{k + 1}", channels, width, size, stride, project=k == 0, summands=summands)
            )
            size //= stride
            channels = EXPANSION * width
    return found


def parameters(depth: int = 101, classes: int = 1000) -> int:
    """Return weights and biases of the network, the classifier among them."""
    return sum(block.weights for block in blocks(depth)) + (EXPANSION * WIDTHS[-1] + 1) * classes


def bytes_of(found: list[Block], batch: int = 1, element: int = FLOAT) -> tuple[list[int], list[int]]:
    """Return (inputs, inside) of `kernels.recomputation.plan`: bytes of each block. `element`: bytes of one."""
    return (
        [batch * element * block.input_elements for block in found],
        [batch * element * block.inside_elements for block in found],
    )


def _bottleneck(
    name: str, channels: int, width: int, size: int, stride: int, *, project: bool, summands: bool
) -> Block:
    before, after, wide = size**2, (size // stride) ** 2, EXPANSION * width
    inside = 2 * width * before + 2 * width * after + 2 * wide * after + project * wide * after
    inside += summands * (1 + project) * wide * after
    weights = channels * width + 9 * width**2 + width * wide + 2 * (2 * width + wide)
    return Block(name, channels * before, inside, weights + project * (channels * wide + 2 * wide))
