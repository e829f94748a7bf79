"""What the lesson counts of the steps that it runs in the simulator."""

import numpy as np

from kernels.convolution.convolve import forward
from kernels.convolution.definition.geometry import Convolution
from warplab import cp, profile

RUNS = (
    (Convolution(1, 32, 16, 16, 64, 3, 3, padding=(1, 1)), ("direct", "im2col", "implicit_gemm")),
    (Convolution(1, 64, 16, 16, 64, 3, 3, padding=(1, 1)), ("implicit_gemm", "mma_nhwc")),
    (Convolution(1, 32, 14, 14, 32, 3, 3, padding=(1, 1), groups=32), ("mma_nhwc", "depthwise")),
)


def table() -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return head and rows, a step on a layer each."""
    rows = []
    for conv, steps in RUNS:
        for name in steps:
            layout, dtype = ("NHWC", np.float16) if name in ("mma_nhwc", "depthwise") else ("NCHW", np.float32)
            x, w = (cp.ones(shape, dtype) for shape in (conv.x_shape(layout), conv.w_shape(layout)))
            with profile() as p:
                forward(x, w, padding=1, groups=conv.groups, layout=layout, step=name)
            c = p.counts
            moved = c.global_load_bytes + c.global_store_bytes
            loads = c.global_load_requests + c.shared_copy_requests
            size = f"{moved / 1e6:.2f}", f"{conv.flops / moved:.1f}"
            rows.append((f"{conv}", name, *size, f"{c.warp_instructions:,}", f"{loads:,}"))
    return ("layer", "step", "MB asked for", "FLOP per byte", "warp instructions", "of them loads"), rows
