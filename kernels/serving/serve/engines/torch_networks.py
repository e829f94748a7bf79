"""ResNet-50 in PyTorch on a GPU, as an engine for load.

FP16, channels last, batch norms folded into the convolutions, a CUDA graph for each batch size. Weights are random, as
times do not depend on them; batch norms are set so that the outputs tell images apart.

The course does not install PyTorch; this is for whoever records. Source of the network: He et al., Deep Residual
Learning for Image Recognition, 2015, https://arxiv.org/abs/1512.03385, table 1.
"""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from warpcourse.bench import pytorch

SIZES = (1, 2, 4, 8, 16, 32)
BLOCKS = (3, 4, 6, 3)
CLASSES, SIDE = 1000, 224  # SIDE: height and width of an image


def images(count: int = 64, seed: int = 2017) -> np.ndarray:
    """Return random images that differ from each other: coarse noise, enlarged. uint8, shape (count, 3, SIDE, SIDE)."""
    coarse = np.random.default_rng(seed).integers(0, 256, (count, 3, 8, 8), np.uint8)
    return coarse.repeat(SIDE // 8, axis=2).repeat(SIDE // 8, axis=3)


class TorchEngine:
    """ResNet-50 on the GPU.

    `sizes`: captured as CUDA graphs; a batch runs in the smallest that holds it, filled up with what lay there before.
    """

    name, shape = "ResNet-50", (3, SIDE, SIDE)
    takes_lists = True

    def __init__(self, sizes: Sequence[int] = SIZES) -> None:
        torch = pytorch.torch_on_gpu()
        self.sizes = tuple(sorted(sizes))
        module = built(torch, "cuda")
        self._torch, self._stream = torch, torch.cuda.Stream()
        self._ready = {size: self._captured(module, size) for size in self.sizes}

    def predict(self, batch: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        """Answer images, uint8, (n, *shape), or a list of them -> scores, float32, (n, CLASSES)."""
        torch, count = self._torch, len(batch)
        if not 1 <= count <= self.sizes[-1]:
            raise ValueError(f"a batch of {count} images does not fit; this engine takes 1 to {self.sizes[-1]}")
        size = next(size for size in self.sizes if size >= count)
        pinned, x, graph, y, out = self._ready[size]
        np.stack(batch, out=pinned.numpy()[:count])
        with torch.inference_mode(), torch.cuda.stream(self._stream):
            x.copy_(pinned, non_blocking=True)
            graph.replay()
            out.copy_(y, non_blocking=True)
        self._stream.synchronize()
        return out.numpy()[:count].copy()

    def _captured(self, module: Any, size: int) -> tuple[Any, ...]:
        """Return pinned images, images on the GPU, the network as a graph, its scores, pinned scores."""
        torch = self._torch
        pinned = torch.zeros((size, *self.shape), dtype=torch.uint8).pin_memory()
        out = torch.zeros((size, CLASSES), dtype=torch.float32).pin_memory()
        x = torch.zeros((size, *self.shape), dtype=torch.uint8, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.stream(self._stream):
            for _ in range(2):  # cuDNN chooses its algorithms before anything is captured
                scores(torch, module, x, torch.float16)
            self._stream.synchronize()
            with torch.cuda.graph(graph, stream=self._stream):
                y = scores(torch, module, x, torch.float16)
        return pinned, x, graph, y, out


def scores(torch: Any, module: Any, x: Any, dtype: Any) -> Any:
    """Return the network on uint8 images, scores as float32."""
    y = x.to(dtype).div(127.5).sub(1).contiguous(memory_format=torch.channels_last)
    return module(y).float()


def built(torch: Any, device: str) -> Any:
    """Return the network, ready to infer: on "cuda" in FP16 with channels last, on "cpu" in FP32."""
    torch.manual_seed(2017)
    module = torch.nn.Sequential(*pytorch.resnet(torch, BLOCKS, CLASSES)).to(device)
    norms = [m for m in module.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0  # the statistics of the next batch
    with torch.no_grad():
        scores(torch, module.train(), torch.from_numpy(images(16)).to(device), torch.float32)
    module = _folded(torch, module.eval())
    return module.half().to(memory_format=torch.channels_last) if device == "cuda" else module


def _folded(torch: Any, module: Any) -> Any:
    """Fold each batch norm into the convolution that it follows."""
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
