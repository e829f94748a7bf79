"""The backward passes as float32 implicit matrix products, for any parameters."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.queued import Queued
from kernels.convolution.common.sources import sizes
from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.steps.direct import FP32
from kernels.convolution.steps.gemm_steps import THREADS, TILE

BLOCKS = 3 * 132  # that an H100 holds at a time


@dataclass(frozen=True)
class GemmBackwardDataStep(Step):
    """backward_data.cu, with divisions by the strides where they are not 1."""

    def queued(self, dy: Any, w: Any, dx: Any, conv: Convolution, workspace: Any = None) -> list[Queued]:
        """Return the one launch: blocks for tiles of channels × pixels of x."""
        channels, pixels = conv.c // conv.groups, conv.n * conv.h * conv.w
        grid = math.ceil(channels / TILE[0]) * math.ceil(pixels / TILE[1]) * conv.groups
        entry = f"conv_backward_data<{str(conv.stride == (1, 1)).lower()}>"
        return [Queued("steps/backward_data.cu", entry, grid, THREADS, (dy, w, dx, sizes(conv)))]


@dataclass(frozen=True)
class GemmBackwardFilterStep(Step):
    """backward_filter.cu, two kernels. `least_length`: pixels of a split, at least."""

    least_length: int = 256

    def _tiles(self, conv: Convolution) -> int:
        """Return tiles of filters × taps."""
        _, filters, taps = conv.gemm
        return math.ceil(filters / TILE[0]) * math.ceil(taps / TILE[1]) * conv.groups

    def splits(self, conv: Convolution) -> tuple[int, int]:
        """Return into how many parts the pixels of y are split, and how many a part has."""
        pixels = conv.gemm[0]
        wanted = max(1, min(BLOCKS // self._tiles(conv), pixels // self.least_length))
        length = math.ceil(pixels / wanted)
        return math.ceil(pixels / length), length

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of the partial sums."""
        splits = self.splits(conv)[0]
        return 4 * splits * math.prod(conv.w_shape()) if splits > 1 else 0

    def queued(self, x: Any, dy: Any, dw: Any, conv: Convolution, workspace: Any = None) -> list[Queued]:
        """Return the launches of the product, and of the sum of its parts where it is split."""
        (splits, length), file, out = self.splits(conv), "steps/backward_filter.cu", dw
        if splits > 1:
            out = (self.workspace(conv, x.dtype) if workspace is None else workspace).view(np.float32)
        arguments, count = (x, dy, out, sizes(conv), np.int32(length)), math.prod(conv.w_shape())
        product = Queued(file, "conv_backward_filter", (self._tiles(conv), splits), THREADS, arguments)
        if splits == 1:
            return [product]
        arguments = out, dw, np.int32(count), np.int32(splits)
        return [product, Queued(file, "conv_backward_filter_sum", math.ceil(count / THREADS), THREADS, arguments)]


BACKWARD_DATA = (GemmBackwardDataStep(None, "implicit_gemm", FP32),)
BACKWARD_FILTER = (GemmBackwardFilterStep(None, "implicit_gemm", FP32),)
