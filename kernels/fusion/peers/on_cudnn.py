"""cuDNN's fused graphs (convolution, bias, residual, ReLU in one) as one more tactic, so that they run in this engine.

Memory plan, slices, pools and the captured CUDA graph are then the engine's own, and the kernels of convolutions are
all that differs. Register it on a GPU, build a plan with it, forget it. Needs the package nvidia-cudnn-frontend.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.fusion.graph.nodes import Tensor
from kernels.fusion.graph.operators import ITEMSIZE
from kernels.fusion.tactics.cbr_tactics import filters_of, typed_filters
from kernels.fusion.tactics.layer import Layer
from kernels.fusion.tactics.tactic import Arrays, Call, Tactic
from warpcourse.bench import timing
from warplab.hardware import backend

MOST_PLANS = 4  # of a layer that are timed, in the order of cuDNN's heuristics: some compile for a second
ROUNDED = ("TENSOR_CORE", "DOWN_CONVERT_INPUTS")  # numerical notes of plans that compute float32 in TF32


def tactic(tf32: bool = False) -> Tactic:
    """Return the tactic "cudnn". `tf32`: whether plans may round float32 factors to TF32; if not, they are left out."""
    return Tactic("cudnn", ("conv", "cbr"), functools.partial(_refuses, tf32), _weights, functools.partial(_bind, tf32))


def _refuses(tf32: bool, layer: Layer) -> str:
    x, (_, y) = layer.reads[0], layer.writes[0]
    top, left, bottom, right = layer.node.attributes["padding"]
    if backend.name() != "gpu":
        return "cuDNN needs an NVIDIA GPU"
    if x.dtype == "int8" or (x.dtype == "float16" and x.layout != "NHWC"):
        return "it takes float32, and float16 in NHWC"
    if len(x.shape) != 3 or y.dtype != x.dtype:
        return "it takes images, and writes their type"
    if len(layer.writes) > 1:
        return f"it writes {len(layer.writes)} slices, and cuDNN one tensor"
    if (top, left) != (bottom, right):
        return "it pads sides differently"
    if layer.node.attributes.get("most") or layer.node.attributes.get("swish"):
        return "of activations it takes ReLU"
    return "" if _plans(layer, tf32) else "cuDNN has no plan for it"


def _weights(layer: Layer) -> dict[str, np.ndarray]:
    filters, dtype = typed_filters(layer), layer.reads[0].dtype
    if layer.reads[0].layout == "NHWC":
        filters = filters.transpose(0, 2, 3, 1)
    bias = layer.node.weights.get("bias", np.zeros(len(filters)))
    return {"filters": np.ascontiguousarray(filters), "bias": bias.astype(dtype)}


def _strides(c: int, h: int, w: int, layout: str) -> list[int]:
    return [c * h * w, h * w, w, 1] if layout == "NCHW" else [c * h * w, 1, w * c, c]


@functools.cache
def _frontend() -> tuple[Any, Any]:
    import cudnn  # type: ignore[import-not-found, unused-ignore]

    return cudnn, cudnn.create_handle()


def _bind(tf32: bool, layer: Layer, inputs: Sequence[Any], outputs: Sequence[Any], weights: Arrays) -> list[Call]:
    part, y = layer.writes[0]
    before = part.start * (1 if y.layout == "NHWC" else y.shape[1] * y.shape[2]) * ITEMSIZE[y.dtype]
    arrays = [inputs[0], weights["filters"], weights["bias"], *inputs[1:], outputs[0]]
    addresses = [array.data.ptr for array in arrays]
    addresses[-1] += before
    key = layer.key, tf32
    if key not in _chosen:
        _chosen[key] = _fastest(_plans(layer, tf32), addresses)
    chosen = _chosen[key]

    def queue() -> None:
        chosen.launch(addresses)

    queue.arrays = arrays  # type: ignore[attr-defined]  # cuDNN knows addresses only: they must live as long
    return [Call(f"cuDNN {chosen.name}", queue)]


@dataclass(frozen=True, eq=False)
class _Plan:
    """One execution plan of a graph, with its workspace."""

    graph: Any
    tensors: list[Any]
    index: int
    workspace: Any

    @property
    def name(self) -> str:
        return str(self.graph.get_plan_name_at_index(self.index))

    def launch(self, addresses: Sequence[int]) -> None:
        import cupy

        cudnn, handle = _frontend()
        cudnn.set_stream(handle, cupy.cuda.get_current_stream().ptr)
        pointers = {tensor.get_uid(): address for tensor, address in zip(self.tensors, addresses, strict=True)}
        self.graph.execute_plan_at_index(pointers, self.workspace.data.ptr, self.index, handle)


_chosen: dict[tuple[str, bool], _Plan] = {}  # by the key of a layer, and whether TF32 is allowed
_able: dict[tuple[str, bool], list[_Plan]] = {}


def _plans(layer: Layer, tf32: bool) -> list[_Plan]:
    """Return the first plans that cuDNN's heuristics propose for a layer and that can be built; none where none can."""
    key = layer.key, tf32
    if key not in _able:
        _able[key] = _built(layer, tf32)
    return _able[key]


def _built(layer: Layer, tf32: bool) -> list[_Plan]:
    import cupy

    cudnn, handle = _frontend()
    unable = cudnn.cudnnGraphNotSupportedError, RuntimeError, ValueError
    try:
        graph, tensors = _graph(cudnn, handle, layer)
        graph.create_execution_plans([getattr(cudnn.heur_mode, mode) for mode in ("A", "FALLBACK")])
    except unable:
        return []
    if layer.reads[0].dtype == "float32" and not tf32:
        graph.deselect_numeric_notes([getattr(cudnn.numerical_note, note) for note in ROUNDED])
    found: list[_Plan] = []
    for index in range(graph.get_execution_plan_count()):
        try:
            graph.build_plan_at_index(index)
        except unable:
            continue  # left out, or not able
        workspace = cupy.empty(max(1, graph.get_workspace_size_plan_at_index(index)), np.uint8)
        found.append(_Plan(graph, tensors, index, workspace))
        if len(found) == MOST_PLANS:
            break
    return found


def _fastest(plans: Sequence[_Plan], addresses: Sequence[int]) -> _Plan:
    seconds = {plan: timing.time_gpu(functools.partial(plan.launch, addresses), runs=10).seconds for plan in plans}
    return min(seconds, key=seconds.__getitem__)


def _graph(cudnn: Any, handle: Any, layer: Layer) -> tuple[Any, list[Any]]:
    """Return the operation graph, and its tensors: x, filters, bias, residual where there is one, y."""
    node, x, (part, y) = layer.node, layer.reads[0], layer.writes[0]
    io = cudnn.data_type.HALF if x.dtype == "float16" else cudnn.data_type.FLOAT
    single = cudnn.data_type.FLOAT
    graph = cudnn.pygraph(io_data_type=io, intermediate_data_type=single, compute_data_type=single, handle=handle)

    def tensor(name: str, dim: Sequence[int], stride: Sequence[int]) -> Any:
        return graph.tensor(name=name, dim=list(dim), stride=list(stride), data_type=io)

    def image(name: str, of: Tensor) -> Any:
        return tensor(name, (layer.batch, *of.shape), _strides(*of.shape, of.layout))

    k, c, r, s = filters_of(layer).shape
    given = image("x", x)
    filters = tensor("w", (k, c, r, s), _strides(c, r, s, x.layout))
    bias = tensor("b", (1, k, 1, 1), (k, 1, k, k) if x.layout == "NHWC" else (k, 1, 1, 1))
    steps = {name: list(node.attributes[name][:2]) for name in ("padding", "stride", "dilation")}
    out = graph.bias(input=graph.conv_fprop(image=given, weight=filters, **steps), bias=bias)
    tensors = [given, filters, bias]
    if len(layer.reads) == 2:
        tensors.append(image("residual", layer.reads[1]))
        out = graph.add(a=out, b=tensors[-1])
    if node.attributes.get("relu"):
        out = graph.relu(input=out)
    out.set_output(True).set_data_type(io)
    out.set_dim([layer.batch, part.channels, *y.shape[1:]]).set_stride(_strides(*y.shape, y.layout))
    graph.validate()
    graph.build_operation_graph()
    return graph, [*tensors, out]
