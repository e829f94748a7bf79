"""The raw network in PyTorch on a GPU: eager, as a CUDA graph, and by torch.compile. Needs PyTorch with CUDA.

The course does not install PyTorch; these functions are for whoever records.
"""

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kernels.fusion.graph import Graph
from kernels.fusion.graph.nodes import Node
from warpcourse.bench.pytorch import torch_on_gpu

AUTOTUNED = "autotuned"
WAYS = ("eager", "CUDA graph", "compiled")  # beside AUTOTUNED, which searches for a minute
# Of torch.compile. All three are its mode max-autotune; the last tunes kernels without products, one by one.
MAX_AUTOTUNE = dict.fromkeys(("triton.cudagraphs", "max_autotune", "coordinate_descent_tuning"), True)
OPTIONS = {"compiled": {"triton.cudagraphs": True}, AUTOTUNED: MAX_AUTOTUNE}
PRECISIONS = ("float32", "tf32", "float16")


def prepared(graph: Graph, images: np.ndarray, way: str, precision: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return (queue, result): what queues a run of the raw graph on a batch that is on the GPU, and its output on the
    host.

    `way`: of WAYS, or AUTOTUNED; torch.compile gets frozen weights, so that it may fold batch norms.
    `precision`: of PRECISIONS; "tf32" lets convolutions round float32 factors to TF32, "float16" lies in NHWC.
    """
    torch = torch_on_gpu()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    dtype = torch.float16 if precision == "float16" else torch.float32
    layout = torch.channels_last if precision == "float16" else torch.contiguous_format
    module = _module(torch, graph).cuda().to(dtype).eval().to(memory_format=layout)
    x = torch.from_numpy(np.ascontiguousarray(images)).cuda().to(dtype).contiguous(memory_format=layout)
    if way in OPTIONS:
        _compile_in_parallel(torch)
        importlib.import_module("torch._inductor.config").freezing = True
        importlib.import_module("torch._dynamo").reset()
        module = torch.compile(module, options=OPTIONS[way])
    results: dict[str, Any] = {}

    def run() -> None:
        with torch.inference_mode():
            results["y"] = module(x)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side) if way == "CUDA graph" else torch.cuda.stream(torch.cuda.current_stream()):
        for _ in range(5):  # chooses algorithms, compiles, records
            run()
    torch.cuda.synchronize()
    queue: Callable[[], Any] = run
    if way == "CUDA graph":
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            run()
        queue = captured.replay

    def result() -> np.ndarray:
        queue()
        torch.cuda.synchronize()
        return results["y"].float().cpu().numpy()

    return queue, result


def _compile_in_parallel(torch: Any) -> None:
    """Let Inductor's workers compile the choices of a search, and this process find what they compiled.

    They take PyTorch's ptxas, this process would take Triton's, and by its version Triton looks for what is compiled:
    each choice would be compiled a second time, one after the other, while they are timed (PyTorch 2.11, Triton 3.6).
    """
    ptxas = Path(torch.__file__).parent / "bin/ptxas"
    if ptxas.exists():
        os.environ.setdefault("TRITON_PTXAS_PATH", str(ptxas))
    importlib.import_module("torch._inductor.async_compile").AsyncCompile.wait_pool_ready()


def versions() -> dict[str, str]:
    """Return the versions that a measurement of PyTorch depends on."""
    torch = torch_on_gpu()
    triton = importlib.import_module("triton").__version__
    return {"PyTorch": torch.__version__, "cuDNN": str(torch.backends.cudnn.version()), "Triton": triton}


def _module(torch: Any, graph: Graph) -> Any:
    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for i, node in enumerate(graph.nodes):
                for name, values in node.weights.items():
                    tensor = torch.from_numpy(np.array(values))
                    self.register_parameter(f"{name}_{i}", torch.nn.Parameter(tensor, requires_grad=False))

        def forward(self, x: Any) -> Any:
            values = {graph.inputs[0]: x}
            for i, node in enumerate(graph.nodes):
                weights = {name: getattr(self, f"{name}_{i}") for name in node.weights}
                values[node.output] = _evaluate(torch, node, [values[name] for name in node.inputs], weights)
            return values[graph.outputs[0]]

    return Network()


def _evaluate(torch: Any, node: Node, inputs: list[Any], weights: dict[str, Any]) -> Any:
    functional, given = torch.nn.functional, node.attributes
    x = inputs[0]
    if node.op == "conv":
        x, padding = _padded(functional, x, given["padding"], 0)
        steps = given["stride"], padding, given["dilation"]
        groups = x.shape[1] // weights["filters"].shape[1]
        return functional.conv2d(x, weights["filters"], weights.get("bias"), *steps, groups)
    if node.op == "batch_norm":
        names = ("mean", "variance", "gamma", "beta")
        return functional.batch_norm(x, *(weights[name] for name in names), False, 0.0, given["epsilon"])
    if node.op == "max_pool":
        x, padding = _padded(functional, x, given["padding"], -torch.inf)
        return functional.max_pool2d(x, given["window"], given["stride"], padding)
    if node.op == "dense":
        return functional.linear(x, weights["matrix"], weights.get("bias"))
    if node.op == "global_average_pool":
        return x.mean((2, 3), keepdim=given["keep_axes"])
    simple = {
        "relu": lambda: torch.relu(x),
        "add": lambda: inputs[0] + inputs[1],
        "concat": lambda: torch.cat(inputs, 1),
        "flatten": lambda: x.flatten(1),
        "reshape": lambda: x.reshape(len(x), *given["shape"]),
        "clip": lambda: torch.clamp(x, given["alpha"], given["beta"]),
        "lrn": lambda: functional.local_response_norm(x, *(given[n] for n in ("size", "alpha", "beta", "bias"))),
        "softmax": lambda: torch.softmax(x, 1),
        "identity": lambda: x,
        "dropout": lambda: x,
    }
    if node.op not in simple:
        raise ValueError(f"node {node.name!r}: {node.op} is not written for PyTorch; the trained network has none")
    return simple[node.op]()


def _padded(functional: Any, x: Any, padding: tuple[int, ...], value: float) -> tuple[Any, tuple[int, int]]:
    """Return the tensor, padded by itself where the sides differ, and the padding that is left for the operator."""
    top, left, bottom, right = padding
    if (top, left) == (bottom, right):
        return x, (top, left)
    return functional.pad(x, (left, right, top, bottom), value=value), (0, 0)
