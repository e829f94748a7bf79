"""Recomputation through PyTorch on a GPU: what its allocator holds, and what a step takes. Needs PyTorch with CUDA.

The course does not install PyTorch; these functions are for whoever records (`python -m
kernels.recomputation.benchmark --record`). Peaks are `torch.cuda.max_memory_allocated` less what was there before the
step: weights, gradients and the input, all of which exist before.
"""

import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from kernels.recomputation import plan as plans
from kernels.recomputation.resnet import BLOCKS
from warpcourse.bench import pytorch, random_inputs

GAIN = 1.7  # of the weights' deviation over 1 / √width: keeps SiLU's chain from fading


def torch_on_gpu() -> Any:
    """Return PyTorch, seeded. RuntimeError where it is missing or sees no GPU."""
    torch = pytorch.torch_on_gpu()
    torch.manual_seed(random_inputs.SEED)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    return torch


def chain(torch: Any, layers: int, width: int) -> tuple[list[Any], list[int]]:
    """Return layers of a product and SiLU, and a list that holds how many have run forward."""
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
    """Return stem, bottlenecks and head of a ResNet as a list of modules."""
    return [module.cuda() for module in pytorch.resnet(torch, BLOCKS[depth])]


def run(torch: Any, modules: Sequence[Any], x: Any, plan: plans.Plan) -> Any:
    """Return modules one after another; every segment of `plan` but the last keeps its input alone and runs again."""
    checkpoint = importlib.import_module("torch.utils.checkpoint").checkpoint
    *again, last = plans.segments(plan, len(modules))
    for segment in again:
        part = torch.nn.Sequential(*itertools.islice(modules, segment.start, segment.stop))
        x = checkpoint(part, x, use_reentrant=False, preserve_rng_state=False)
    for module in itertools.islice(modules, last.start, last.stop):
        x = module(x)
    return x


def parameters(modules: Sequence[Any]) -> list[Any]:
    """Return all parameters, each with a gradient of zeros, so that no step allocates them."""
    found = [p for module in modules for p in module.parameters()]
    for p in found:
        p.grad = p.new_zeros(p.shape)
    return found


def measure_step(torch: Any, step: Callable[[], Any], runs: int = 3) -> dict[str, Any]:
    """Return `peak_bytes` that the allocator held beyond what was there before a step, and its median `seconds`."""
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
    """Return bytes that the allocator holds beyond those before, after each layer's forward and backward in turn."""
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
