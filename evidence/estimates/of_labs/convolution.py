"""Launches of lab 06's kernels whose times are recorded: algorithms of one launch each, without TMA."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from evidence.estimates.timed_calls import Part, TimedCall
from kernels.convolution import ladder
from kernels.convolution.definition import networks
from kernels.convolution.measured.algorithms import LAYERS

STEPS = {"numba_direct": "float32", "direct": "float32", "implicit_gemm": "float32", "mma_nhwc": "float16"}
SAMPLE = 8  # blocks: all but those at the edges do alike


def _parts(name: str, layer: int) -> list[Part]:
    conv, step, dtype = networks.convolutions()[layer].convolution, ladder.FORWARD[name], np.dtype(STEPS[name])
    layout = dict((kind, order) for order, kind in step.formats)[dtype.name]
    x, w, y = (np.ones(shape(layout), dtype) for shape in (conv.x_shape, conv.w_shape, conv.y_shape))
    (one,) = step.queued(x, w, y, conv)
    footprint = x.nbytes + w.nbytes, y.nbytes
    return [
        Part(
            *(one.function, one.grid, one.block, lambda: one.arguments, one.shared_bytes),
            footprint=footprint,
            sample_blocks=SAMPLE,
        )
    ]


def _seconds(name: str, layer: int) -> Callable[[Any], float]:
    def find(value: Any) -> float:
        rows = value["layers"][LAYERS.index(layer)]["rows"]
        return next(row["seconds"] for row in rows if row["algorithm"] == name)

    return find


TIMED = [
    TimedCall(
        f"{name}, {networks.label(networks.convolutions()[layer])}",
        "algorithms",
        _seconds(name, layer),
        functools.partial(_parts, name, layer),
    )
    for layer in LAYERS
    for name in STEPS
]
