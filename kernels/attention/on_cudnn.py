"""Attention by cuDNN's own graph, without PyTorch around it. Needs the package nvidia-cudnn-frontend.

Forward it leaves the logarithms of the sums, as `forward` does; backward it takes them.
"""

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from warpcourse.bench import timing


@functools.cache
def _frontend() -> tuple[Any, Any]:
    cudnn = importlib.import_module("cudnn")
    return cudnn, cudnn.create_handle()


def forward_call(q: Any, k: Any, v: Any, causal: bool) -> Callable[[], tuple[Any, ...]]:
    """Return what computes out and lse, always the same arrays, of float16 CuPy arrays as `forward` takes them."""
    cupy = timing.cupy_on_gpu()
    results = cupy.empty_like(q), cupy.empty((*q.shape[:3], 1), np.float32)
    return _call("sdpa", {"q": q, "k": k, "v": v}, results, causal, generate_stats=True)


def backward_call(arrays: tuple, out: Any, lse: Any, dout: Any, causal: bool) -> Callable[[], tuple[Any, ...]]:
    """Return what computes the gradients of `arrays`, q, k and v, given what `forward_call` left."""
    given = dict(zip(("q", "k", "v", "o", "dO", "stats"), (*arrays, out, dout, lse), strict=True))
    return _call("sdpa_backward", given, tuple(map(timing.cupy_on_gpu().empty_like, arrays)), causal)


def _call(operation: str, given: dict[str, Any], results: tuple, causal: bool, **more: Any) -> Callable[[], tuple]:
    """Return what runs an operation by the first plan that cuDNN's heuristics propose and that can be built."""
    cudnn, handle = _frontend()
    half, single = cudnn.data_type.HALF, cudnn.data_type.FLOAT
    graph = cudnn.pygraph(io_data_type=half, intermediate_data_type=single, compute_data_type=single, handle=handle)

    def layout(x: Any) -> tuple[list[int], list[int], Any]:
        return list(x.shape), [stride // x.itemsize for stride in x.strides], half if x.dtype == np.float16 else single

    tensors = {}
    for name, x in given.items():
        dim, stride, kind = layout(x)
        tensors[name] = graph.tensor(name=name, dim=dim, stride=stride, data_type=kind)
    mask = {"use_causal_mask": True} if causal else {}
    made = getattr(graph, operation)(**tensors, attn_scale=given["q"].shape[-1] ** -0.5, **mask, **more)
    for tensor, x in zip(made, results, strict=True):
        dim, stride, kind = layout(x)
        tensor.set_output(True).set_data_type(kind).set_dim(dim).set_stride(stride)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
    cupy = timing.cupy_on_gpu()
    workspace = cupy.empty(max(1, graph.get_workspace_size()), np.uint8)
    arrays = (*given.values(), *results)
    places = {t.get_uid(): x.data.ptr for t, x in zip((*tensors.values(), *made), arrays, strict=True)}

    def run(_held: Any = arrays) -> tuple[Any, ...]:  # cuDNN knows addresses only
        cudnn.set_stream(handle, cupy.cuda.get_current_stream().ptr)
        graph.execute(places, workspace.data.ptr, handle)
        return results

    return run
