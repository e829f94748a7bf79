"""Networks whose training is predicted: layer by layer, the parameters and the multiply-adds per image.

Layers are in the order of the forward pass, for one image of 224 × 224 and 1000 classes. Batch normalisation's two
parameters per channel count with the convolution before it. Sources: He and others, "Deep residual learning for image
recognition" (2015), with the stride on the 3 × 3 convolutions; Simonyan and Zisserman, "Very deep convolutional
networks for large-scale image recognition" (2014); Krizhevsky, "One weird trick for parallelizing convolutional neural
networks" (2014), for AlexNet on one GPU.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class LayerCost:
    """A layer with weights. `macs`: multiply-adds of the forward pass for one image."""

    name: str
    parameters: int
    macs: int


def conv(name: str, into: int, out: int, kernel: int, side: int, norm: bool = True) -> LayerCost:
    """Return a convolution from `into` to `out` channels whose output is side × side; with batch norm or a bias."""
    weights = kernel * kernel * into * out
    return LayerCost(name, weights + (2 * out if norm else out), weights * side * side)


def dense(name: str, into: int, out: int) -> LayerCost:
    """Return a fully connected layer with bias."""
    return LayerCost(name, into * out + out, into * out)


def resnet(depth: int) -> list[LayerCost]:
    """Return ResNet-50, -101 or -152. ValueError for another depth."""
    blocks = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}.get(depth)
    if blocks is None:
        raise ValueError(f"ResNet-{depth} is not described here; choose 50, 101 or 152")
    layers = [conv("conv1", 3, 64, 7, 112)]
    into, side = 64, 56
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            name = f"stage {stage + 1}, block {block + 1}"
            before = side
            if stage and not block:
                side //= 2
            layers.append(conv(f"{name}, 1 × 1", into, width, 1, before))
            layers.append(conv(f"{name}, 3 × 3", width, width, 3, side))
            layers.append(conv(f"{name}, 1 × 1 to {4 * width}", width, 4 * width, 1, side))
            if not block:
                layers.append(conv(f"{name}, shortcut", into, 4 * width, 1, side))
            into = 4 * width
    return [*layers, dense("classes", into, 1000)]


def vgg16() -> list[LayerCost]:
    """Return VGG-16: 138 million parameters, 124 million of them in the three last layers."""
    layers, into, side = [], 3, 224
    for stage, (count, width) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), 1):
        for i in range(count):
            layers.append(conv(f"conv {stage}.{i + 1}", into, width, 3, side, norm=False))
            into = width
        side //= 2
    return [*layers, dense("fc6", 7 * 7 * 512, 4096), dense("fc7", 4096, 4096), dense("fc8", 4096, 1000)]


def alexnet() -> list[LayerCost]:
    """Return AlexNet on one GPU, without groups: 61 million parameters, 58 million of them in the three last layers."""
    sizes = (("conv1", 3, 64, 11, 55), ("conv2", 64, 192, 5, 27), ("conv3", 192, 384, 3, 13))
    sizes += (("conv4", 384, 256, 3, 13), ("conv5", 256, 256, 3, 13))
    convolutions = [conv(*size, norm=False) for size in sizes]
    return [*convolutions, dense("fc6", 6 * 6 * 256, 4096), dense("fc7", 4096, 4096), dense("fc8", 4096, 1000)]


NETWORKS = {
    "ResNet-50": resnet(50),
    "ResNet-101": resnet(101),
    "ResNet-152": resnet(152),
    "VGG-16": vgg16(),
    "AlexNet": alexnet(),
}


def parameters(layers: list[LayerCost]) -> int:
    """Return all parameters of a network."""
    return sum(layer.parameters for layer in layers)
