"""Residual networks in PyTorch on a GPU, as engines for load: ResNet-50 for 224 × 224 images, ResNet-56 for 32 × 32.

FP16, channels last, batch norms folded into the convolutions, a CUDA graph for each batch size. Weights are random, as
times do not depend on them; batch norms are set so that the outputs tell images apart.

The course does not install PyTorch; this is for whoever records. Source of the networks: He et al., Deep Residual
Learning for Image Recognition, 2015, https://arxiv.org/abs/1512.03385, table 1 and section 4.2.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

SIZES = (1, 2, 4, 8, 16, 32, 64)
CLASSES = 1000
NETWORKS = {"ResNet-50": 224, "ResNet-56": 32}  # height and width of an image


def torch_on_gpu() -> Any:
    """PyTorch. RuntimeError where it is missing or sees no GPU."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as missing:
        raise RuntimeError(
            "torch is not installed, and this measurement is made with it; install it with CUDA, or leave this key out"
        ) from missing
    if not torch.cuda.is_available():
        raise RuntimeError("torch is installed but sees no GPU; install the build for this machine's CUDA")
    return torch


def images(network: str, count: int = 64, seed: int = 2017) -> np.ndarray:
    """Random images that differ from each other: coarse noise, enlarged. uint8, shape (count, 3, side, side)."""
    side = NETWORKS[network]
    coarse = np.random.default_rng(seed).integers(0, 256, (count, 3, 8, 8), np.uint8)
    return coarse.repeat(side // 8, axis=2).repeat(side // 8, axis=3)


class TorchEngine:
    """One of NETWORKS on the GPU.

    `sizes`: batch sizes that are captured as CUDA graphs; a batch runs in the smallest that holds it, filled up with
    what lay there before. `cuda_graph` False: every kernel is launched by Python, as PyTorch does by itself.
    """

    def __init__(self, network: str, sizes: Sequence[int] = SIZES, *, cuda_graph: bool = True) -> None:
        if network not in NETWORKS:
            raise ValueError(f"there is no network {network!r}; choose one of {', '.join(NETWORKS)}")
        torch = torch_on_gpu()
        self.name, self.shape = network, (3, NETWORKS[network], NETWORKS[network])
        self.network, self.sizes = network, tuple(sorted(sizes))
        module = built(torch, network, "cuda")
        self._torch, self._stream = torch, torch.cuda.Stream()
        self._ready = {size: self._prepare(module, size, cuda_graph) for size in self.sizes}

    def predict(self, batch: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        """Images, uint8, (n, 3, side, side), or a list of them -> scores, float32, (n, CLASSES)."""
        torch, count = self._torch, len(batch)
        if not 1 <= count <= self.sizes[-1]:
            raise ValueError(f"a batch of {count} images does not fit; this engine takes 1 to {self.sizes[-1]}")
        size = next(size for size in self.sizes if size >= count)
        pinned, x, run, out = self._ready[size]
        np.stack(batch, out=pinned.numpy()[:count])
        with torch.inference_mode(), torch.cuda.stream(self._stream):
            x.copy_(pinned, non_blocking=True)
            out.copy_(run(), non_blocking=True)
        self._stream.synchronize()
        return out.numpy()[:count].copy()

    def _prepare(self, module: Any, size: int, cuda_graph: bool) -> tuple[Any, ...]:
        """Pinned images, images on the GPU, what queues the network on these and gives its scores, pinned scores."""
        torch, side = self._torch, NETWORKS[self.network]
        pinned = torch.zeros((size, 3, side, side), dtype=torch.uint8).pin_memory()
        out = torch.zeros((size, CLASSES), dtype=torch.float32).pin_memory()
        x = torch.zeros((size, 3, side, side), dtype=torch.uint8, device="cuda")

        def run() -> Any:
            return scores(torch, module, x, torch.float16)

        with torch.inference_mode(), torch.cuda.stream(self._stream):
            for _ in range(2):  # cuDNN chooses its algorithms before anything is captured
                run()
            self._stream.synchronize()
            if not cuda_graph:
                return pinned, x, run, out
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self._stream):
                y = run()

        def replay() -> Any:
            graph.replay()
            return y

        return pinned, x, replay, out


class Thumbnails:
    """ResNet-50 for images of 8 × 8 pixels, which are enlarged: small requests, and as much work as a whole image.

    As one begins: PyTorch launches every kernel, for one image at a time. float32 from 0 to 255, (n, 3, 8, 8).
    """

    name, shape = "ResNet-50 without a CUDA graph", (3, 8, 8)

    def __init__(self) -> None:
        self._engine = TorchEngine("ResNet-50", (1,), cuda_graph=False)

    def predict(self, batch: np.ndarray) -> np.ndarray:
        """Scores, float32, (n, 8): the first ones, to keep the answers small."""
        large = np.clip(batch, 0, 255).astype(np.uint8).repeat(28, axis=2).repeat(28, axis=3)
        return np.concatenate([self._engine.predict(image[None])[:, :8] for image in large])


def thumbnails() -> Thumbnails:
    """An engine for `engines.make("kernels.serving.torch_networks:thumbnails")`."""
    return Thumbnails()


def scores(torch: Any, module: Any, x: Any, dtype: Any) -> Any:
    """The network on uint8 images, scores as float32."""
    y = x.to(dtype).div(127.5).sub(1).contiguous(memory_format=torch.channels_last)
    return module(y).float()


def built(torch: Any, network: str, device: str) -> Any:
    """The network, ready to infer: on "cuda" in FP16 with channels last, on "cpu" in FP32."""
    torch.manual_seed(2017)
    module = (_resnet50 if network == "ResNet-50" else _resnet56)(torch).to(device)
    norms = [m for m in module.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0  # the statistics of the next batch
    with torch.no_grad():
        scores(torch, module.train(), torch.from_numpy(images(network, 16)).to(device), torch.float32)
    module = _folded(torch, module.eval())
    return module.half().to(memory_format=torch.channels_last) if device == "cuda" else module


def _resnet50(torch: Any) -> Any:
    nn = torch.nn
    layers = [*_conv(nn, 3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            path = [*_conv(nn, channels, inner, 1), nn.ReLU(inplace=True)]
            path += [*_conv(nn, inner, inner, 3, stride), nn.ReLU(inplace=True), *_conv(nn, inner, 4 * inner, 1)]
            layers.append(_residual(nn, path, channels, 4 * inner, stride))
            channels = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


def _resnet56(torch: Any) -> Any:
    nn = torch.nn
    layers, channels = [*_conv(nn, 3, 16, 3), nn.ReLU(inplace=True)], 16
    for stage in range(3):
        width = 16 << stage
        for block in range(9):
            stride = 2 if stage and not block else 1
            path = [*_conv(nn, channels, width, 3, stride), nn.ReLU(inplace=True), *_conv(nn, width, width, 3)]
            layers.append(_residual(nn, path, channels, width, stride))
            channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


def _conv(nn: Any, channels: int, out: int, size: int, stride: int = 1) -> list[Any]:
    return [nn.Conv2d(channels, out, size, stride, size // 2, bias=False), nn.BatchNorm2d(out)]


def _residual(nn: Any, path: list[Any], channels: int, out: int, stride: int) -> Any:
    """relu(path(x) + x), with a 1 × 1 convolution where the shapes differ."""

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.path = nn.Sequential(*path)
            same = channels == out and stride == 1
            self.short = nn.Identity() if same else nn.Sequential(*_conv(nn, channels, out, 1, stride))
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            return self.relu(self.path(x) + self.short(x))

    return Residual()


def _folded(torch: Any, module: Any) -> Any:
    """Every convolution that a batch norm follows, with that norm folded in."""
    nn, fuse = torch.nn, importlib.import_module("torch.nn.utils.fusion").fuse_conv_bn_eval
    for name, child in module.named_children():
        setattr(module, name, _folded(torch, child))
    if not isinstance(module, nn.Sequential):
        return module
    parts: list[Any] = []
    for part in module:
        if isinstance(part, nn.BatchNorm2d) and parts and isinstance(parts[-1], nn.Conv2d):
            parts[-1] = fuse(parts[-1], part)
        else:
            parts.append(part)
    return nn.Sequential(*parts)
