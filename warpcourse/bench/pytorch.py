"""PyTorch on a GPU as a peer: PyTorch itself where it is installed, and its ResNets. Needs PyTorch with CUDA.

The course does not install PyTorch; what measures it is for whoever records.
"""

import importlib
from collections.abc import Sequence
from typing import Any

EXPANSION = 4  # of a bottleneck's channels
WIDTHS = (64, 128, 256, 512)  # of the stages' 3 × 3 convolutions


def torch_on_gpu() -> Any:
    """Return PyTorch. RuntimeError where it is missing or sees no GPU."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as missing:
        raise RuntimeError(
            "torch is not installed, and this measurement is made with it; install it with CUDA, or leave this key out"
        ) from missing
    if not torch.cuda.is_available():
        raise RuntimeError("torch is installed but sees no GPU; install the build for this machine's CUDA")
    return torch


def resnet(torch: Any, blocks: Sequence[int], classes: int = 1000) -> list[Any]:
    """Return stem, bottlenecks and head of a ResNet as modules on the CPU. `blocks`: bottlenecks of each stage.

    He et al., Deep Residual Learning for Image Recognition, 2015, https://arxiv.org/abs/1512.03385, table 1; the 3 × 3
    convolution of a stage's first block has the stride.
    """
    nn = torch.nn

    def normed(channels: int, width: int, kernel: int, stride: int = 1) -> list[Any]:
        return [nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(width)]

    class Bottleneck(nn.Module):  # type: ignore[name-defined]
        def __init__(self, channels: int, width: int, stride: int, project: bool) -> None:
            super().__init__()
            wide, relu = EXPANSION * width, nn.ReLU(inplace=True)
            self.main = nn.Sequential(
                *normed(channels, width, 1), relu, *normed(width, width, 3, stride), relu, *normed(width, wide, 1)
            )
            self.side = nn.Sequential(*normed(channels, wide, 1, stride)) if project else nn.Identity()
            self.relu = relu

        def forward(self, x: Any) -> Any:
            return self.relu(self.main(x) + self.side(x))

    found = [nn.Sequential(*normed(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))]
    channels = 64
    for stage, (count, width) in enumerate(zip(blocks, WIDTHS, strict=True)):
        for k in range(count):
            found.append(Bottleneck(channels, width, 2 if stage and k == 0 else 1, k == 0))
            channels = EXPANSION * width
    found.append(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)))
    return found
