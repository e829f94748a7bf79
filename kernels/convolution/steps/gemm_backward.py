"""The backward passes as float32 implicit matrix products, for any parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.sources import SOURCES, sizes
from kernels.convolution.common.step import BackwardDataStep, BackwardFilterStep
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.steps.direct import FP32
from kernels.convolution.steps.gemm_steps import THREADS, TILE
from warpcourse.bench.lab_kernels import launch

BLOCKS = 3 * 132  # that an H100 holds at a time
LEAST_LENGTH = 256  # pixels of a split, at least


@dataclass(frozen=True)
class GemmBackwardDataStep(BackwardDataStep):
    """backward_data.cu."""

    def grid(self, conv: Convolution) -> int:
        """Return blocks: tiles of channels × pixels of x."""
        channels, pixels = conv.c // conv.groups, conv.n * conv.h * conv.w
        return math.ceil(channels / TILE[0]) * math.ceil(pixels / TILE[1]) * conv.groups

    def function(self, conv: Convolution) -> Any:
        """Return the compiled kernel of the active backend, with divisions by the strides where they are not 1."""
        unit = str(conv.stride == (1, 1)).lower()
        return SOURCES.function("steps/backward_data.cu", f"conv_backward_data<{unit}>")

    def launch(self, dy: Any, w: Any, dx: Any, conv: Convolution, workspace: Any = None) -> None:
        """Queue the kernel."""
        launch(self.function(conv), self.grid(conv), THREADS, (dy, w, dx, sizes(conv)))


@dataclass(frozen=True)
class GemmBackwardFilterStep(BackwardFilterStep):
    """backward_filter.cu, two kernels."""

    def splits(self, conv: Convolution) -> tuple[int, int]:
        """Return into how many parts the pixels of y are split, and how many a part has."""
        pixels, filters, taps = conv.gemm
        tiles = math.ceil(filters / TILE[0]) * math.ceil(taps / TILE[1]) * conv.groups
        wanted = max(1, min(BLOCKS // tiles, pixels // LEAST_LENGTH))
        length = math.ceil(pixels / wanted)
        return math.ceil(pixels / length), length

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of the partial sums."""
        splits = self.splits(conv)[0]
        return 4 * splits * math.prod(conv.w_shape()) if splits > 1 else 0

    def grid(self, conv: Convolution) -> tuple[int, int]:
        """Return blocks: tiles of filters × taps, and splits."""
        _, filters, taps = conv.gemm
        return math.ceil(filters / TILE[0]) * math.ceil(taps / TILE[1]) * conv.groups, self.splits(conv)[0]

    def functions(self) -> tuple[Any, Any]:
        """Return the compiled kernels of the active backend: the product and the sum of its parts."""
        product, total = (
            SOURCES.function("steps/backward_filter.cu", f"conv_backward_filter{name}") for name in ("", "_sum")
        )
        return product, total

    def launch(self, x: Any, dy: Any, dw: Any, conv: Convolution, workspace: Any = None) -> None:
        """Queue the kernels."""
        splits, length = self.splits(conv)
        product, total = self.functions()
        if splits == 1:
            launch(product, self.grid(conv), THREADS, (x, dy, dw, sizes(conv), np.int32(length)))
            return
        partial = (self.workspace(conv, x.dtype) if workspace is None else workspace).view(np.float32)
        count = math.prod(conv.w_shape())
        launch(product, self.grid(conv), THREADS, (x, dy, partial, sizes(conv), np.int32(length)))
        launch(total, math.ceil(count / THREADS), THREADS, (partial, dw, np.int32(count), np.int32(splits)))


BACKWARD_DATA = (GemmBackwardDataStep(None, "implicit_gemm", FP32),)
BACKWARD_FILTER = (GemmBackwardFilterStep(None, "implicit_gemm", FP32),)
