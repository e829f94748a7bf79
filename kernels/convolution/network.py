"""ResNet-50 as a list of layers, the convolutions' companions included: what is timed one by one.

He et al., 2015 (arXiv 1512.03385), table 1, as frameworks train it: batch norm after every convolution, ReLU after that
but for a block's last, where it follows the sum with the shortcut.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from kernels.convolution import resnet50
from kernels.convolution.geometry import Convolution
from kernels.convolution.resnet50 import STAGES

CLASSES = 1000
FEATURES = 4 * STAGES[-1][1]  # of an image, before the classes
KINDS = ("convolution", "batch norm", "ReLU", "addition", "pooling", "fully connected", "softmax", "update")


@dataclass(frozen=True)
class Layer:
    """`count` layers of one kind in KINDS and one size.

    `nchw`: sizes of the input. `convolution`: None for other kinds. `relu`: of a convolution, whether ReLU comes next
    (after its batch norm), and not the sum with the shortcut.
    """

    name: str
    kind: str
    nchw: tuple[int, ...]
    count: int
    convolution: Convolution | None = None
    relu: bool = False


def layers(batch: int) -> list[Layer]:
    """All layers but the update, layers of one kind and size together."""
    found = _convolutions(batch)
    norms: Counter[tuple[int, ...]] = Counter()
    for layer in found:
        if layer.convolution is not None:
            norms[layer.convolution.y_shape()] += layer.count
    found += [_of_size("batch norm", shape, count) for shape, count in norms.items()]
    found += [_of_size("ReLU", shape, count) for shape, count in _activations(batch).items()]
    found += [_of_size("addition", shape, count) for shape, count in _sums(batch).items()]
    return [*found, *_last(batch)]


def folded_layers(batch: int) -> list[Layer]:
    """What is left for inference with batch norm folded into the convolutions, and ReLU part of those it follows."""
    sums = _sums(batch).items()
    found = _convolutions(batch)
    found += [_of_size(kind, shape, count) for kind in ("ReLU", "addition") for shape, count in sums]
    return [*found, *_last(batch)]


def _convolutions(batch: int) -> list[Layer]:
    return [
        Layer(
            label(layer),
            "convolution",
            layer.convolution.x_shape(),
            layer.count,
            layer.convolution,
            relu=layer.convolution.k == _inner_channels(layer),
        )
        for layer in resnet50.layers(batch)
    ]


def _inner_channels(layer: resnet50.Layer) -> int:
    """Filters of the convolutions in a layer's stage that ReLU follows."""
    stage = int(layer.name.removeprefix("conv")[0])
    return 64 if stage == 1 else STAGES[stage - 2][1]


def _last(batch: int) -> list[Layer]:
    return [
        Layer("max pooling 3×3/2", "pooling", (batch, 64, 112, 112), 1),
        Layer("average pooling 7×7", "pooling", (batch, FEATURES, 7, 7), 1),
        Layer(f"fully connected, {FEATURES} → {CLASSES}", "fully connected", (batch, FEATURES, 1, 1), 1),
        Layer("softmax and loss", "softmax", (batch, CLASSES, 1, 1), 1),
    ]


def parameters() -> int:
    """Numbers that training updates: filters, scale and bias of each batch norm, the last layer's matrix and bias."""
    total = FEATURES * CLASSES + CLASSES
    for layer in resnet50.layers(1):
        total += layer.count * (math.prod(layer.convolution.w_shape()) + 2 * layer.convolution.k)
    return total


def label(layer: resnet50.Layer) -> str:
    """A convolution's name with its channels and its image's size, which tells it apart from all others."""
    conv = layer.convolution
    return f"{layer.name}, {conv.c} → {conv.k}, {conv.h}²"


def _of_size(kind: str, shape: tuple[int, ...], count: int) -> Layer:
    return Layer(f"{kind}, {shape[1]} × {shape[2]}²", kind, shape, count)


def _activations(batch: int) -> Counter[tuple[int, ...]]:
    found = Counter({(batch, 64, 112, 112): 1})
    for inner, before, after, blocks in _stages():
        for block in range(blocks):
            found[batch, inner, before if block == 0 else after, before if block == 0 else after] += 1
            found[batch, inner, after, after] += 1
            found[batch, 4 * inner, after, after] += 1
    return found


def _sums(batch: int) -> Counter[tuple[int, ...]]:
    return Counter({(batch, 4 * inner, after, after): blocks for inner, _, after, blocks in _stages()})


def _stages() -> list[tuple[int, int, int, int]]:
    """Channels of a stage's inner layers, height of the images before and after it, and its blocks."""
    found, size = [], 56
    for stage, (blocks, inner) in enumerate(STAGES):
        after = size // 2 if stage else size
        found.append((inner, size, after, blocks))
        size = after
    return found
