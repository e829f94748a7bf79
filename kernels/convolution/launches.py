"""Launches of lab 06's kernels whose counters are compared with Nsight Compute's (`make compare-ncu`): all that the
simulator runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.convolution.beside import depthwise, recurrent, winograd
from kernels.convolution.common.queued import Queued
from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.steps import direct, gemm_backward, gemm_steps, mma_backward, mma_step
from warpcourse.bench.compared_launches import EFFICIENCY, Difference, Launch, with_differences
from warpcourse.bench.copy_differences import DURING_COPIES, NOT_COUNTED, PREDICATED, PREDICATED_LARGE, ZERO_FILL

# Whole tiles; padding, tails and a stride; dilation and groups.
WHOLE = Convolution(2, 16, 8, 8, 64, 3, 3, (1, 1))
TAILS = Convolution(1, 5, 9, 7, 10, 3, 3, (1, 2), (2, 1))
GROUPS = Convolution(2, 16, 7, 6, 20, 3, 2, (2, 1), (1, 1), (2, 1), groups=2)
CASES = {"whole tiles": WHOLE, "tails and a stride": TAILS, "dilation and groups": GROUPS}
WINOGRAD = {"whole tiles": WHOLE, "odd sizes": Convolution(1, 5, 9, 7, 10, 3, 3, (1, 1))}
COPIES = (NOT_COUNTED, PREDICATED_LARGE, PREDICATED, ZERO_FILL, *DURING_COPIES)
PREDICATES = Difference(
    EFFICIENCY,
    0.04,
    "What depends on whether a tap lies in the image carries a predicate in machine code, where PTX branches around "
    "it, and is not the same share of all instructions.",
)
DEPTHWISE_PREDICATES = PREDICATES._replace(within=0.12)
LAYOUTS = {"float16": "NHWC", "float32": "NCHW"}
# Whole tiles; tails, stride 2 and channels that fill no vector; what only the kernels for anything take.
DEPTHWISE = {
    "whole tiles": Convolution(2, 64, 14, 16, 64, 3, 3, (1, 1), groups=64),
    "stride 2 and tails": Convolution(1, 20, 13, 11, 20, 3, 3, (1, 1), (2, 2), groups=20),
    "dilation": Convolution(1, 6, 9, 10, 6, 3, 2, (1, 1), (1, 2), (2, 1), groups=6),
}
DIFFERENCES = {  # of launches whose name begins so: the first that does
    "direct": (PREDICATES,),
    "mma_nhwc 64 × 64, tails": (PREDICATES,),
    "mma_nhwc": COPIES,
    **dict.fromkeys(("mma_backward_data, whole", "mma_backward_filter, whole"), COPIES),
    **dict.fromkeys(("mma_backward_data", "mma_backward_filter,"), (PREDICATES,)),
    "depthwise_backward_filter, float16, whole tiles": (
        DEPTHWISE_PREDICATES,
        Difference("local_", 1.0, "ptxas puts 8 bytes of each thread into local memory, so that a block more fits."),
    ),
    "depthwise": (DEPTHWISE_PREDICATES,),
}


def _random(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(dtype)


def _arrays(conv: Convolution, dtype: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return x, w and y, random, and results of these shapes, which no kernel leaves as they are."""
    found = [_random(shape(LAYOUTS[dtype]), dtype) for shape in (conv.x_shape, conv.w_shape, conv.y_shape)]
    return found, [np.full_like(array, np.nan) for array in found]


def _workspace(step: Step, conv: Convolution, dtype: str) -> np.ndarray:
    return _random((step.workspace_bytes(conv, dtype) // 4,)).view(np.uint8)


def _launch(name: str, queued: Queued) -> Launch:
    return Launch(name, queued.function, queued.grid, queued.block, queued.arguments, queued.shared_bytes)


def _named(names: Sequence[str], what: str, queued: Sequence[Queued]) -> list[Launch]:
    """Return a step's launches. `names`: of its kernels, in the order of their launches."""
    return [_launch(f"{name}, {what}", one) for name, one in zip(names, queued, strict=False)]


def _forward(
    step: Step, names: Sequence[str], what: str, conv: Convolution, dtype: str, **options: Any
) -> list[Launch]:
    """Return the launches of a step, with bias and ReLU."""
    (x, w, _), (_, _, y) = _arrays(conv, dtype)
    options |= {"bias": _random((conv.k,)), "relu": True, "workspace": _workspace(step, conv, dtype)}
    return _named(names, what, step.queued(x, w, y, conv, **options))


def _backward(
    prefix: str, data: Step, filters: Step, what: str, conv: Convolution, dtype: str, **options: Any
) -> list[Launch]:
    """Return the launches of both gradients; the last adds two parts, also where the pixels are too few for them."""
    (x, w, dy), (dx, dw, _) = _arrays(conv, dtype)
    workspace, count = _workspace(filters, conv, dtype), dw.size
    product, total = filters.queued(x, dy, dw, conv, workspace=workspace)
    total = total._replace(arguments=(_random((2 * count,)), dw, np.int32(count), np.int32(2)))
    names = (f"{prefix}{name}" for name in ("backward_data", "backward_filter", "backward_filter_sum"))
    return _named(names, what, [*data.queued(dy, w, dx, conv, **options), product, total])


def _of_steps() -> Iterator[Launch]:
    """Yield those of the ladder, then Winograd's; of step 4 in two sizes of tiles for whole ones."""
    names = ("numba_direct",), ("direct",), ("im2col", "im2col_product"), ("implicit_gemm",)
    (mma,), (winograd_step,) = mma_step.FORWARD, winograd.FORWARD
    of_mma = mma_backward.BACKWARD_DATA[0], replace(mma_backward.BACKWARD_FILTER[0], least_tiles=1)
    for what, conv in CASES.items():
        for step, of_step in zip((*direct.FORWARD, *gemm_steps.FORWARD), names, strict=True):
            yield from _forward(step, of_step, what, conv, "float32")
        for chosen in (mma_step.FLAT, mma_step.SMALL) if conv == WHOLE else (mma_step.SMALL,):
            yield from _forward(mma, [f"mma_nhwc {chosen.bm} × {chosen.bn}"], what, conv, "float16", chosen=chosen)
        of_gemm = (
            gemm_backward.BACKWARD_DATA[0],
            replace(gemm_backward.BACKWARD_FILTER[0], least_length=conv.gemm[0] // 2),
        )
        yield from _backward("", *of_gemm, what, conv, "float32")
        yield from _backward("mma_", *of_mma, what, conv, "float16", chosen=mma_step.SMALL)
    for what, conv in WINOGRAD.items():
        names = [f"winograd_{name}" for name in winograd.grids(conv)]
        yield from _forward(winograd_step, names, what, conv, "float32")


def _depthwise(what: str, conv: Convolution, dtype: str) -> Iterator[Launch]:
    (x, w, dy), (dx, dw, _) = _arrays(conv, dtype)
    (forward,), (data,), (filters,) = depthwise.FORWARD, depthwise.BACKWARD_DATA, depthwise.BACKWARD_FILTER
    name = f"{dtype}, {what}"
    yield from _forward(forward, ["depthwise_forward"], name, conv, dtype)
    yield from _named(["depthwise_backward_data"], name, data.queued(dy, w, dx, conv))
    queued = filters.queued(x, dy, dw, conv, workspace=_workspace(filters, conv, dtype))
    yield from _named(["depthwise_backward_filter", "depthwise_add_partial"], name, queued)


def _lstm(dtype: str) -> Launch:
    n, hidden = 5, 24
    of_x, of_h = (_random((n, 4 * hidden), dtype) for _ in range(2))
    bias, c, h = _random((4 * hidden,)), _random((n, hidden)), np.full((n, hidden), np.nan, dtype)
    return _launch(f"lstm_cell, {dtype}", recurrent.cell(of_x, of_h, bias, c, h))


def _beside() -> Iterator[Launch]:
    """Yield depthwise convolutions and LSTM cells. What float32 in NCHW shares with float16 in NHWC is there once."""
    for what, conv in DEPTHWISE.items():
        yield from _depthwise(what, conv, "float16")
    yield from _depthwise("whole tiles", DEPTHWISE["whole tiles"], "float32")
    yield _lstm("float16")


OF_STEPS, BESIDE_STEPS = (with_differences(found, DIFFERENCES) for found in (_of_steps(), _beside()))
LAUNCHES = [*OF_STEPS, *BESIDE_STEPS]
