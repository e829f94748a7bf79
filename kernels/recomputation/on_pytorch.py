"""Recomputation through PyTorch on a GPU: what its allocator holds, and what a step takes. Needs PyTorch with CUDA.

The course does not install PyTorch; these functions are for whoever records (`python -m
kernels.recomputation.benchmark --record`). Peaks are `torch.cuda.max_memory_allocated` less what was there before the
step: weights, gradients and the input, all of which exist before.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from kernels.recomputation import plan as plans
from kernels.recomputation.resnet import BLOCKS, EXPANSION, WIDTHS
from warplab.bench import random_inputs

GAIN = 1.7  # of the weights' deviation over 1 / √width: keeps SiLU's chain from fading


def torch_on_gpu() -> Any:
    """PyTorch, seeded. RuntimeError where it is missing or sees no GPU."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as missing:
        raise RuntimeError(
            "torch is not installed, and this measurement is made with it; install it with CUDA, or leave this key out"
        ) from missing
    if not torch.cuda.is_available():
        raise RuntimeError("torch is installed but sees no GPU; install the build for this machine's CUDA")
    torch.manual_seed(random_inputs.SEED)
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch


def chain(torch: Any, layers: int, width: int) -> tuple[list[Any], list[int]]:
    """Layers of a product and SiLU, and a list that holds how many have run forward."""
    count = [0]

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.product = torch.nn.Linear(width, width, bias=False)
            torch.nn.init.normal_(self.product.weight, std=GAIN / width**0.5)

        def forward(self, x: Any) -> Any:
            count[0] += 1
            return torch.nn.functional.silu(self.product(x))

    return [Layer().cuda() for _ in range(layers)], count


def resnet(torch: Any, depth: int = 101) -> list[Any]:
    """Stem, bottlenecks and head of a ResNet as a list of modules."""
    nn = torch.nn

    def normed(channels: int, width: int, kernel: int, stride: int = 1) -> list[Any]:
        return [nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(width)]

    class Bottleneck(nn.Module):
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
    for stage, (count, width) in enumerate(zip(BLOCKS[depth], WIDTHS, strict=True)):
        for k in range(count):
            found.append(Bottleneck(channels, width, 2 if stage and k == 0 else 1, k == 0))
            channels = EXPANSION * width
    found.append(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)))
    return [module.cuda() for module in found]


def run(torch: Any, modules: Sequence[Any], x: Any, plan: plans.Plan) -> Any:
    """Modules one after another; every segment of `plan` but the last keeps its input alone and runs again."""
    checkpoint = importlib.import_module("torch.utils.checkpoint").checkpoint
    *again, last = plans.segments(plan, len(modules))
    for segment in again:
        part = torch.nn.Sequential(*itertools.islice(modules, segment.start, segment.stop))
        x = checkpoint(part, x, use_reentrant=False, preserve_rng_state=False)
    for module in itertools.islice(modules, last.start, last.stop):
        x = module(x)
    return x


def parameters(modules: Sequence[Any]) -> list[Any]:
    """All parameters, each with a gradient of zeros, so that no step allocates them."""
    found = [p for module in modules for p in module.parameters()]
    for p in found:
        p.grad = p.new_zeros(p.shape)
    return found


def measure_step(torch: Any, step: Callable[[], Any], runs: int = 3) -> dict[str, Any]:
    """`peak_bytes` that the allocator held beyond what was there before a step, and the median `seconds` of it."""
    step()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    samples = []
    for _ in range(runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        step()
        end.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end) / 1e3)
    peak = torch.cuda.max_memory_allocated() - before
    return {"peak_bytes": peak, "seconds": sorted(samples)[len(samples) // 2]}


def timeline(torch: Any, modules: Sequence[Any], x: Any, plan: plans.Plan) -> list[int]:
    """Bytes that the allocator holds beyond those before, after each layer's forward and backward in turn."""
    held: list[int] = []
    before = torch.cuda.memory_allocated()

    class Mark(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            held.append(torch.cuda.memory_allocated() - before)
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            held.append(torch.cuda.memory_allocated() - before)
            return gradient

    class Marked(torch.nn.Module):
        def __init__(self, module: Any) -> None:
            super().__init__()
            self.module = module

        def forward(self, x: Any) -> Any:
            return Mark.apply(self.module(x))

    run(torch, [Marked(module) for module in modules], x, plan).sum().backward()
    return held
