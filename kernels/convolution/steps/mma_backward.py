"""The backward passes on the tensor cores by mma.sync, for any parameters: tiles, splits and launches."""

from __future__ import annotations

import functools
import math
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.sources import SOURCES, sizes
from kernels.convolution.common.step import BackwardDataStep, BackwardFilterStep
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.steps.mma_step import DEPTH, FLAT, SMALL, MmaTiles, at_vectors
from warpcourse.bench.lab_kernels import launch

FILE = "steps/mma_backward.cu"
FP16 = (("NHWC", "float16"),)
MULTIPROCESSORS = 132  # of an H100
SUM_THREADS = 128


@functools.cache
def function(name: str, chosen: MmaTiles, *flags: bool) -> Any:
    """Return the kernel of the active backend for a pass ("data" or "filter"), for given tiles.

    `flags`: whether vectors fit, and for "data" whether both strides are 1.
    """
    entry = f"conv_mma_backward_{name}<{', '.join(map(str, (*astuple(chosen), *map(int, flags))))}>"
    kernel = SOURCES.function(FILE, entry)
    kernel.max_dynamic_shared_size_bytes = chosen.shared_bytes
    return kernel


def vectors_fit(conv: Convolution, *arrays: Any) -> bool:
    """Return whether eight channels, and eight filters, of a group can be copied at once."""
    return conv.c // conv.groups % 8 == 0 and conv.k // conv.groups % 8 == 0 and at_vectors(*arrays)


@dataclass(frozen=True)
class MmaBackwardDataStep(BackwardDataStep):
    """conv_mma_backward_data of mma_backward.cu."""

    def grid(self, conv: Convolution, chosen: MmaTiles) -> int:
        """Return blocks: tiles of pixels of x × channels."""
        pixels, channels = conv.n * conv.h * conv.w, conv.c // conv.groups
        return math.ceil(pixels / chosen.bm) * math.ceil(channels / chosen.bn) * conv.groups

    def tiles(self, conv: Convolution) -> MmaTiles:
        """Return the larger ones, unless they leave multiprocessors idle."""
        return FLAT if self.grid(conv, FLAT) >= MULTIPROCESSORS else SMALL

    def launch(
        self, dy: Any, w: Any, dx: Any, conv: Convolution, workspace: Any = None, chosen: MmaTiles | None = None
    ) -> None:
        """Queue the kernel, with the tiles that `tiles` says unless others are given."""
        chosen = chosen or self.tiles(conv)
        kernel = function("data", chosen, vectors_fit(conv, dy, w), conv.stride == (1, 1))
        launch(kernel, self.grid(conv, chosen), chosen.threads, (dy, w, dx, sizes(conv)), chosen.shared_bytes)


@dataclass(frozen=True)
class MmaBackwardFilterStep(BackwardFilterStep):
    """conv_mma_backward_filter of mma_backward.cu, and the sum of its parts."""

    tiles: MmaTiles = SMALL
    blocks: int = 4 * MULTIPROCESSORS  # that an H100 holds at a time
    least_tiles: int = 4  # of the depth that a block goes through, at least

    def splits(self, conv: Convolution) -> tuple[int, int]:
        """Return into how many parts the pixels of y are split, and how many a part has."""
        pixels = conv.gemm[0]
        wanted = max(1, self.blocks // self._tiles(conv))
        length = max(math.ceil(pixels / wanted), min(pixels, self.least_tiles * DEPTH))
        length = math.ceil(length / DEPTH) * DEPTH
        return math.ceil(pixels / length), length

    def _tiles(self, conv: Convolution) -> int:
        _, filters, taps = conv.gemm
        return math.ceil(filters / self.tiles.bm) * math.ceil(taps / self.tiles.bn) * conv.groups

    def grid(self, conv: Convolution) -> tuple[int, int]:
        """Return blocks: tiles of filters × taps, and splits."""
        return self._tiles(conv), self.splits(conv)[0]

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of the partial sums, float32."""
        return 4 * self.splits(conv)[0] * math.prod(conv.w_shape())

    def sum_function(self) -> Any:
        """Return the compiled kernel that adds the partial sums."""
        return SOURCES.function(FILE, "conv_mma_backward_filter_sum")

    def launch(self, x: Any, dy: Any, dw: Any, conv: Convolution, workspace: Any = None) -> None:
        """Queue both kernels."""
        partial = (self.workspace(conv, x.dtype) if workspace is None else workspace).view(np.float32)
        splits, length = self.splits(conv)
        kernel = function("filter", self.tiles, vectors_fit(conv, x, dy))
        arguments = x, dy, partial, sizes(conv), np.int32(length)
        launch(kernel, self.grid(conv), self.tiles.threads, arguments, self.tiles.shared_bytes)
        count = math.prod(conv.w_shape())
        arguments = partial, dw, np.int32(count), np.int32(splits)
        launch(self.sum_function(), math.ceil(count / SUM_THREADS), SUM_THREADS, arguments)


BACKWARD_DATA = (MmaBackwardDataStep(None, "mma_nhwc", FP16),)
BACKWARD_FILTER = (MmaBackwardFilterStep(None, "mma_nhwc", FP16),)
