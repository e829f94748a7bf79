"""Launches of lab 09's kernels whose counters are compared with Nsight Compute's (`make compare-ncu`).

They are those that tactics bind, here to arrays of the host, or of the device where tensor maps have their addresses.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels.fusion import tactics
from kernels.fusion.graph import int8
from kernels.fusion.graph.nodes import Node, Slice, Tensor
from kernels.fusion.plan.tuning import DTYPES, memory_shape
from kernels.fusion.tactics import wgmma_tactics
from kernels.fusion.tactics.layer import Layer
from warpcourse.bench import hopper
from warpcourse.bench.compared_launches import Difference, Launch
from warpcourse.bench.copy_differences import BESIDE_TMA, WAITING
from warplab import cp

BATCH = 2

_SUNK = (
    "Each warp loads the bias of a filter, and only the first four go on to write results: ptxas moves the load behind "
    "that branch. 24 blocks have 12 other warps each: 288 loads of 4 bytes."
)
_TRAFFIC = "The addresses give 2048 conflicts of these stores; ncu counted 18 more in one run and 14 in another."
_ONE_MORE = "Loads of 1,536 wavefronts by their addresses: ncu counted so in one run, one more in two others."
_TO_OTHERS = (
    "What goes to another block's shared memory, by st.shared::cluster, the metrics count among bytes of global "
    "stores, and not among wavefronts of shared ones."
)
_DIFFERENCES = {
    "pixels_32x4_in_16": (Difference("global_load", 0.025, _SUNK),),
    "dp4a_16x16_in_8": (Difference("shared_store", 0.01, _TRAFFIC),),
    "first": (
        Difference("local", 1, "ptxas keeps some words of each thread in local memory."),
        Difference("shared_load_wavefronts", 1 / 1536, _ONE_MORE),
        Difference("shared_load_conflicts", 1, _ONE_MORE),
    ),
    "wgmma_64x64_by_3": (
        WAITING,
        Difference("shared_store_wavefronts", 0.5, BESIDE_TMA),
        Difference("shared_store_conflicts", 1, BESIDE_TMA),
    ),
    "wgmma_64x32_in_2": (
        WAITING,
        Difference("global_store_bytes", 0.9, _TO_OTHERS),
        Difference("shared_store_wavefronts", math.inf, _TO_OTHERS),
    ),
}


def _layer(op: str, reads: tuple[Tensor, ...], y: Tensor, attributes: Mapping | None = None, **weights: Any) -> Layer:
    part = Slice(y.name, 0, y.channels)
    node = Node("layer", op, tuple(tensor.name for tensor in reads), (part,), attributes or {}, weights)
    return Layer(node, reads, ((part, y),), BATCH)


def _tensor(name: str, shape: tuple[int, ...], dtype: str = "float32", layout: str = "NCHW") -> Tensor:
    return Tensor(name, shape, dtype, layout, 0.05 if dtype == "int8" else None)


def _cbr(dtype: str, layout: str, channels: int = 32, count: int = 24, group: int = 1) -> Layer:
    """Make a layer of 3 × 3: 32 channels of 8 × 8, 24 filters; with a residual, unless in groups or of an image."""
    rng = np.random.default_rng(9)
    filters = rng.standard_normal((count, channels // group, 3, 3)).astype(np.float32)
    weights = {"filters": filters, "bias": rng.standard_normal(count)}
    if dtype == "int8":
        weights["filter_scales"] = int8.filter_scales(filters)
    given = ("float32", "NCHW") if channels == 3 else (dtype, layout)
    x, y = _tensor("x", (channels, 8, 8), *given), _tensor("y", (count, 8, 8), dtype, layout)
    residual = _tensor("residual", (count, 8, 8), dtype, layout)
    attributes = {"padding": (1, 1, 1, 1), "relu": True, "precision": dtype}
    attributes |= {"stride": (1, 1), "dilation": (1, 1)}
    return _layer("cbr", (x, residual) if group == 1 and channels > 3 else (x,), y, attributes, **weights)


def _layers() -> dict[str, tuple[Layer, tuple[str, ...]]]:
    """Return, by name, a layer and the tactics to compare for it."""
    found = {
        "cbr float32 NCHW": (_cbr("float32", "NCHW"), ("f32_16x16_in_8", "f32_64x64", "pixels_32x4_in_16")),
        "cbr float32 NHWC": (_cbr("float32", "NHWC"), ("f32_16x16_in_8", "f32_32x32_in_2")),
        "cbr float16": (_cbr("float16", "NHWC"), ("f16_mma_16x8_in_8", "f16_mma_128x32")),
        "cbr int8": (_cbr("int8", "NHWC"), ("dp4a_16x16_in_8", "i8_mma_16x8_in_8", "i8_mma_128x32")),
        "cbr of an image": (_cbr("float16", "NHWC", 3, 32), ("first",)),
        "cbr in groups": (_cbr("float16", "NHWC", 32, 64, 4), ("grouped",)),
        "cbr of each channel": (_cbr("float16", "NHWC", 32, 32, 32), ("depthwise_4", "depthwise_1")),
    }
    if not hopper.missing("wgmma", "f16_mma"):
        for dtype in ("float16", "int8"):
            found[f"cbr {dtype} by wgmma"] = _cbr(dtype, "NHWC", 32, 64), ("wgmma_64x64_by_3", "wgmma_64x32_in_2")
    for dtype, layout in (("float32", "NCHW"), ("int8", "NHWC")):
        x, y = _tensor("x", (40, 8, 8), dtype, layout), _tensor("y", (40, 4, 4), dtype, layout)
        window = {"window": (2, 2), "stride": (2, 2)}
        found[f"max pool {dtype} {layout}"] = _layer("max_pool", (x,), y, window), ("pool",)
        average = _layer("global_average_pool", (x,), _tensor("y", (40,)))
        found[f"global average {dtype} {layout}"] = average, ("pool_images",)
    x = _tensor("x", (40, 8, 8))
    found["quantise"] = _layer("convert", (x,), _tensor("y", (40, 8, 8), "int8", "NHWC")), ("pointwise",)
    found["add"] = _layer("add", (x, _tensor("other", (40, 8, 8))), _tensor("y", (40, 8, 8))), ("pointwise_add",)
    found["softmax"] = _layer("softmax", (_tensor("x", (10,)),), _tensor("y", (10,))), ("softmax",)
    return found


def _launches(name: str, layer: Layer, tactic: str) -> list[Launch]:
    rng = np.random.default_rng(9)
    chosen = tactics.find(tactic)

    placed = cp.asarray if chosen in wgmma_tactics.TACTICS else np.asarray

    def drawn(tensor: Tensor) -> Any:
        return placed(rng.uniform(-1, 1, memory_shape(tensor, BATCH)).astype(DTYPES[tensor.dtype]))

    inputs = [drawn(tensor) for tensor in layer.reads]
    outputs = [drawn(tensor) for _, tensor in layer.writes]
    weights = {key: placed(values) for key, values in chosen.weights(layer).items()}
    calls = chosen.bind(layer, inputs, outputs, weights)
    taken = [call.launch for call in calls if call.launch is not None]
    return [
        Launch(
            *(f"{name}, {tactic}", one.kernel.function, one.grid, one.block, one.arguments, one.shared_bytes),
            differences=_DIFFERENCES.get(tactic, ()),
            held=calls,
        )
        for one in taken
    ]


LAUNCHES = [
    launch
    for name, (layer, chosen) in _layers().items()
    for tactic in chosen
    for launch in _launches(name, layer, tactic)
]
