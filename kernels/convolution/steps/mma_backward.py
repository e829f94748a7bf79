"""The backward passes on the tensor cores by mma.sync, for any parameters: tiles, splits and launches."""

import math
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.queued import Queued
from kernels.convolution.common.sources import sizes
from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.steps.mma_step import DEPTH, FLAT, FP16, SMALL, MmaTiles, vectors_fit
from warpcourse.bench.hopper import multiprocessors

FILE = "steps/mma_backward.cu"
SUM_THREADS = 128


def _entry(name: str, chosen: MmaTiles, *flags: bool) -> str:
    """Return the kernel for a pass ("data" or "filter").

    `flags`: whether vectors fit, and for "data" whether both strides are 1.
    """
    return f"conv_mma_backward_{name}<{', '.join(map(str, (*astuple(chosen), *map(int, flags))))}>"


def _vectors_fit(conv: Convolution, *arrays: Any) -> bool:
    """Return whether eight channels, and eight filters, of a group can be copied at once."""
    return conv.k // conv.groups % 8 == 0 and vectors_fit(conv, *arrays)


@dataclass(frozen=True)
class MmaBackwardDataStep(Step):
    """conv_mma_backward_data of mma_backward.cu."""

    def _grid(self, conv: Convolution, chosen: MmaTiles) -> int:
        """Return blocks: tiles of pixels of x × channels."""
        pixels, channels = conv.n * conv.h * conv.w, conv.c // conv.groups
        return math.ceil(pixels / chosen.bm) * math.ceil(channels / chosen.bn) * conv.groups

    def queued(
        self, dy: Any, w: Any, dx: Any, conv: Convolution, workspace: Any = None, chosen: MmaTiles | None = None
    ) -> list[Queued]:
        """Return the one launch, with the larger tiles unless they leave multiprocessors idle, or those given."""
        chosen = chosen or (FLAT if self._grid(conv, FLAT) >= multiprocessors() else SMALL)
        entry = _entry("data", chosen, _vectors_fit(conv, dy, w), conv.stride == (1, 1))
        arguments = dy, w, dx, sizes(conv)
        return [Queued(FILE, entry, self._grid(conv, chosen), chosen.threads, arguments, chosen.shared_bytes)]


@dataclass(frozen=True)
class MmaBackwardFilterStep(Step):
    """conv_mma_backward_filter of mma_backward.cu, and the sum of its parts."""

    tiles: MmaTiles = SMALL
    least_tiles: int = 4  # of the depth that a block goes through, at least

    def _tiles(self, conv: Convolution) -> int:
        """Return tiles of filters × taps."""
        _, filters, taps = conv.gemm
        return math.ceil(filters / self.tiles.bm) * math.ceil(taps / self.tiles.bn) * conv.groups

    def splits(self, conv: Convolution) -> tuple[int, int]:
        """Return into how many parts the pixels of y are split, and how many a part has."""
        pixels = conv.gemm[0]
        wanted = max(1, self.tiles.blocks * multiprocessors() // self._tiles(conv))  # as many as the card holds
        length = max(math.ceil(pixels / wanted), min(pixels, self.least_tiles * DEPTH))
        length = math.ceil(length / DEPTH) * DEPTH
        return math.ceil(pixels / length), length

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of the partial sums, float32."""
        return 4 * self.splits(conv)[0] * math.prod(conv.w_shape())

    def queued(self, x: Any, dy: Any, dw: Any, conv: Convolution, workspace: Any = None) -> list[Queued]:
        """Return the launches of the product and of the sum of its parts."""
        partial = (self.workspace(conv, x.dtype) if workspace is None else workspace).view(np.float32)
        (splits, length), count = self.splits(conv), math.prod(conv.w_shape())
        entry, grid = _entry("filter", self.tiles, _vectors_fit(conv, x, dy)), (self._tiles(conv), splits)
        parts = x, dy, partial, sizes(conv), np.int32(length)
        total = partial, dw, np.int32(count), np.int32(splits)
        return [
            Queued(FILE, entry, grid, self.tiles.threads, parts, self.tiles.shared_bytes),
            Queued(FILE, "conv_mma_backward_filter_sum", math.ceil(count / SUM_THREADS), SUM_THREADS, total),
        ]


BACKWARD_DATA = (MmaBackwardDataStep(None, "mma_nhwc", FP16),)
BACKWARD_FILTER = (MmaBackwardFilterStep(None, "mma_nhwc", FP16),)
