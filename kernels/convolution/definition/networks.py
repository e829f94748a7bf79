"""Networks as lists of layers: what is measured, and what lesson 06 counts.

ResNet-50: He et al., 2015 (arXiv 1512.03385), table 1, at 224 × 224, as frameworks train it: a block's stride is in its
3 × 3 convolution, batch norm comes after every convolution, ReLU after that but for a block's last, where it follows
the sum with the shortcut. MobileNet: Howard et al., 2017 (arXiv 1704.04861), table 1. VGG-16: Simonyan and Zisserman,
2014 (arXiv 1409.1556), table 1, column D. AlexNet: Krizhevsky, 2014 (arXiv 1404.5997), in one column, as frameworks
have it; without dropout, and without the biases of convolutions.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kernels.convolution.definition.geometry import Convolution

BATCH = 32
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))  # of ResNet-50: blocks, and channels of their 3 × 3 convolution
CLASSES = 1000
FEATURES = 4 * STAGES[-1][1]  # of an image, before the classes
KINDS = ("convolution", "batch norm", "ReLU", "addition", "pooling", "fully connected", "softmax", "update")
# Of VGG-16 and AlexNet: filters, window, padding and stride of each convolution, and whether max pooling follows.
_VGG16 = tuple(
    (64 * 2 ** min(stage, 3), 3, 1, 1, last == layers)
    for stage, layers in enumerate((2, 2, 3, 3, 3))
    for last in range(1, layers + 1)
)
_ALEXNET = (
    (64, 11, 2, 4, True),
    (192, 5, 2, 1, True),
    (384, 3, 1, 1, False),
    (256, 3, 1, 1, False),
    (256, 3, 1, 1, True),
)
# Of MobileNet: channels, height and width of x, stride, and how often the layer comes.
_DEPTHWISE = (
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


@dataclass(frozen=True)
class LayerGroup:
    """`count` layers of one kind in KINDS and one size.

    `nchw`: sizes of the input. `convolution`: None for other kinds. `relu`: of a convolution, whether ReLU comes next
    (after its batch norm), and not the sum with the shortcut. `window`: of pooling: "max" or "average", size, padding
    and stride. `outputs`: of a fully connected layer.
    """

    name: str
    kind: str
    nchw: tuple[int, ...]
    count: int
    convolution: Convolution | None = None
    relu: bool = False
    window: tuple[str, int, int, int] | None = None
    outputs: int = CLASSES


def convolution(name: str, conv: Convolution, count: int = 1) -> LayerGroup:
    """Return a layer that is a convolution. `name`: such as "conv3_x 3×3/2"; a stride of 1 is left out."""
    return LayerGroup(name, "convolution", conv.x_shape(), count, conv)


def convolutions(batch: int = BATCH) -> list[LayerGroup]:
    """Return ResNet-50's 53 convolutions, those of one stage and size together, from the image to the last block."""
    found = {("conv1 7×7/2", Convolution(batch, 3, 224, 224, 64, 7, 7, (3, 3), (2, 2))): 1}

    def add(name: str, c: int, size: int, k: int, window: int, stride: int) -> None:
        padding = (window // 2, window // 2)
        conv = Convolution(batch, c, size, size, k, window, window, padding, (stride, stride))
        key = f"{name} {window}×{window}" + (f"/{stride}" if stride > 1 else ""), conv
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
    return [convolution(name, conv, count) for (name, conv), count in found.items()]


def compared(batch: int = BATCH) -> list[LayerGroup]:
    """Return the layers that kernels are compared with cuDNN on: not conv1, whose three channels fill no 16 bytes."""
    return convolutions(batch)[1:]


def mobilenet(batch: int = BATCH) -> list[LayerGroup]:
    """Return MobileNet's 13 depthwise layers, the five of one size together.

    The last one, 1024 channels at 7 × 7, is in the table with stride 2, which no 7 × 7 output would fit; it has stride
    1, as in the authors' code.
    """
    found = []
    for c, size, stride, count in _DEPTHWISE:
        conv = Convolution(batch, c, size, size, c, 3, 3, (1, 1), (stride, stride), groups=c)
        found.append(convolution(f"depthwise {c} × {size}²" + (f"/{stride}" if stride > 1 else ""), conv, count))
    return found


def vgg16(batch: int) -> list[LayerGroup]:
    """Return all layers but the update: 13 convolutions and 3 fully connected layers."""
    return _stacked(batch, _VGG16, 2)


def alexnet(batch: int) -> list[LayerGroup]:
    """Return all layers but the update: 5 convolutions and 3 fully connected layers."""
    return _stacked(batch, _ALEXNET, 3)


OLDER = {"VGG-16": vgg16, "AlexNet": alexnet}


def _stacked(batch: int, stack: Sequence[tuple[int, int, int, int, bool]], pooled: int) -> list[LayerGroup]:
    """Return a stack of convolutions, with max pooling of windows of `pooled` and stride 2, and of dense layers; each
    but the last has a ReLU."""
    found, channels, size = [], 3, 224
    for filters, window, padding, stride, pools in stack:
        conv = Convolution(batch, channels, size, size, filters, window, window, (padding,) * 2, (stride,) * 2)
        channels, size = conv.y_shape()[1:3]
        found += [convolution(f"{window}×{window}", conv), _of_size("ReLU", conv.y_shape(), 1)]
        if pools:
            found.append(_pooling(conv.y_shape(), ("max", pooled, 0, 2)))
            size = (size - pooled) // 2 + 1
    for inputs, outputs in ((channels * size**2, 4096), (4096, 4096), (4096, CLASSES)):
        found += [_dense(batch, inputs, outputs), _of_size("ReLU", (batch, outputs, 1, 1), 1)]
    return [*found[:-1], _classes(batch)]


def resnet50(batch: int) -> list[LayerGroup]:
    """Return all layers but the update, layers of one kind and size together."""
    found = _labelled(batch)
    norms: Counter[tuple[int, ...]] = Counter()
    for layer in found:
        if layer.convolution is not None:
            norms[layer.convolution.y_shape()] += layer.count
    found += [_of_size("batch norm", shape, count) for shape, count in norms.items()]
    found += [_of_size("ReLU", shape, count) for shape, count in _activations(batch).items()]
    found += [_of_size("addition", shape, count) for shape, count in _sums(batch).items()]
    return [*found, *_last(batch)]


def folded_resnet50(batch: int) -> list[LayerGroup]:
    """Return what inference has with batch norm folded into the convolutions, and ReLU part of those it follows."""
    sums = _sums(batch).items()
    found = _labelled(batch)
    found += [_of_size(kind, shape, count) for kind in ("ReLU", "addition") for shape, count in sums]
    return [*found, *_last(batch)]


def _labelled(batch: int) -> list[LayerGroup]:
    return [
        replace(layer, name=label(layer), relu=layer.convolution.k == _inner_channels(layer))
        for layer in convolutions(batch)
    ]


def _inner_channels(layer: LayerGroup) -> int:
    """Return filters of the convolutions in a layer's stage that ReLU follows."""
    stage = int(layer.name.removeprefix("conv")[0])
    return 64 if stage == 1 else STAGES[stage - 2][1]


def _last(batch: int) -> list[LayerGroup]:
    return [
        _pooling((batch, 64, 112, 112), ("max", 3, 1, 2)),
        _pooling((batch, FEATURES, 7, 7), ("average", 7, 0, 1)),
        _dense(batch, FEATURES, CLASSES),
        _classes(batch),
    ]


def _pooling(shape: tuple[int, ...], window: tuple[str, int, int, int]) -> LayerGroup:
    kind, size, _, stride = window
    name = f"{kind} pooling {size}×{size}" + (f"/{stride}" if stride > 1 else "")
    return LayerGroup(name, "pooling", shape, 1, window=window)


def _dense(batch: int, inputs: int, outputs: int) -> LayerGroup:
    name = f"fully connected, {inputs} → {outputs}"
    return LayerGroup(name, "fully connected", (batch, inputs, 1, 1), 1, outputs=outputs)


def _classes(batch: int) -> LayerGroup:
    return LayerGroup("softmax and loss", "softmax", (batch, CLASSES, 1, 1), 1)


def parameters(layers: Iterable[LayerGroup]) -> int:
    """Return how many numbers training updates: filters, two for each channel of a batch norm, and matrices."""
    total = 0
    for layer in layers:
        if layer.convolution is not None:
            total += layer.count * math.prod(layer.convolution.w_shape())
        elif layer.kind == "batch norm":
            total += layer.count * 2 * layer.nchw[1]
        elif layer.kind == "fully connected":
            total += (layer.nchw[1] + 1) * layer.outputs
    return total


def label(layer: LayerGroup) -> str:
    """Return a convolution's name with its channels and its image's size, which tells it apart from all others."""
    conv = layer.convolution
    return f"{layer.name}, {conv.c} → {conv.k}, {conv.h}²"


def _of_size(kind: str, shape: tuple[int, ...], count: int) -> LayerGroup:
    return LayerGroup(f"{kind}, {shape[1]} × {shape[2]}²", kind, shape, count)


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
    """List per stage the channels of inner layers, height of the images before and after it, and its blocks."""
    found, size = [], 56
    for stage, (blocks, inner) in enumerate(STAGES):
        after = size // 2 if stage else size
        found.append((inner, size, after, blocks))
        size = after
    return found
