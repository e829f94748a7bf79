"""The optimiser: the passes in the order in which each finds the most to do.

What is dead or does nothing goes first, so that it stands between no two layers that could be fused. Batch norm is
folded before ReLU is fused, residual sums after it; branches are joined before their concatenation goes. Precision
comes late, on the graph as it will run, since INT8's scales are those of its tensors; layout follows precision.
"""

from collections.abc import Callable, Mapping

from kernels.fusion.graph import Graph
from kernels.fusion.passes import (
    assign_precision,
    choose_layout,
    fold_batch_norm,
    fold_constants,
    fuse_attention,
    fuse_horizontal,
    fuse_residual,
    fuse_vertical,
    place_int8,
    remove_concat,
    remove_dead,
    remove_no_ops,
)

Calibration = Callable[[Graph], Mapping[str, float]]
FUSION: tuple[Callable[[Graph], Graph], ...] = (
    remove_dead,
    remove_no_ops,
    fold_constants,
    fuse_attention,
    fold_batch_norm,
    fuse_vertical,
    place_int8,
    fuse_residual,
    fuse_horizontal,
    remove_concat,
)


def fuse(graph: Graph) -> Graph:
    """Return the graph after all passes that keep FP32 and NCHW; each prints a line."""
    for one in FUSION:
        graph = one(graph)
    return graph


def optimise(graph: Graph, precision: str = "float32", calibrate: Calibration | None = None) -> Graph:
    """Return the graph as the engine runs it; each pass prints a line.

    `precision`: "float32", "float16" or "int8". `calibrate`: for "int8", a function from the fused graph to the scales
    of its tensors by name.
    """
    if precision == "int8" and calibrate is None:
        raise ValueError("INT8 needs scales: pass calibrate, a function from the fused graph to {tensor: scale}")
    fused = fuse(graph)
    scales = calibrate(fused) if precision == "int8" else None
    return choose_layout(assign_precision(fused, precision, scales))
