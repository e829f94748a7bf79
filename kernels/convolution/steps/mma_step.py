"""Step 4, implicit GEMM on the tensor cores by mma.sync: which tiles it takes, and its launch."""

from __future__ import annotations

import functools
import math
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.sources import SOURCES, sizes
from kernels.convolution.common.step import ForwardStep
from kernels.convolution.definition.geometry import Convolution
from warpcourse.bench.lab_kernels import launch

DEPTH = 64  # of the tiles, BK in 4_mma_nhwc.cu
VECTOR_BYTES = 16
MULTIPROCESSORS = 132  # of an H100; tiles are chosen for it


@dataclass(frozen=True)
class MmaTiles:
    """Parameters of the template in 4_mma_nhwc.cu, in its order.

    `bm`, `bn`: pixels and filters that a block computes; `wm`, `wn`: of a warp; `stages`: pairs of tiles in shared
    memory; `blocks`: on a multiprocessor at a time, at least.
    """

    bm: int
    bn: int
    wm: int
    wn: int
    stages: int
    blocks: int

    @property
    def threads(self) -> int:
        """Return threads of a block."""
        return self.bm // self.wm * (self.bn // self.wn) * 32

    @property
    def shared_bytes(self) -> int:
        """Return shared memory of a block."""
        return self.stages * 2 * DEPTH * (self.bm + self.bn)

    def grid(self, conv: Convolution) -> int:
        """Return blocks for a convolution."""
        pixels, filters, _ = conv.gemm
        return math.ceil(filters / self.bn) * math.ceil(pixels / self.bm) * conv.groups


LARGE, FLAT, SMALL = MmaTiles(128, 128, 64, 64, 3, 2), MmaTiles(128, 64, 64, 32, 3, 3), MmaTiles(64, 64, 32, 32, 3, 4)


def tiles(conv: Convolution) -> MmaTiles:
    """Return the tiles that were the fastest on an H100: the flat ones, where each multiprocessor gets two or more."""
    return FLAT if FLAT.grid(conv) >= 2 * MULTIPROCESSORS else SMALL


@functools.cache
def function(chosen: MmaTiles, vectors: bool) -> Any:
    """Return the kernel of the active backend for given tiles. `vectors`: see `vectors_fit`."""
    entry = f"conv_mma_nhwc<{', '.join(map(str, astuple(chosen)))}, {str(vectors).lower()}>"
    kernel = SOURCES.function("steps/4_mma_nhwc.cu", entry)
    kernel.max_dynamic_shared_size_bytes = chosen.shared_bytes
    return kernel


def at_vectors(*arrays: Any) -> bool:
    """Return whether arrays start at multiples of 16 bytes."""
    return all(x.__cuda_array_interface__["data"][0] % VECTOR_BYTES == 0 for x in arrays)


def vectors_fit(conv: Convolution, *arrays: Any) -> bool:
    """Return whether eight channels of a group can be copied at once: a multiple of 8, and arrays at multiples of 16
    bytes."""
    return conv.c // conv.groups % 8 == 0 and at_vectors(*arrays)


@dataclass(frozen=True)
class MmaStep(ForwardStep):
    """4_mma_nhwc.cu."""

    def launch(
        self,
        x: Any,
        w: Any,
        y: Any,
        conv: Convolution,
        bias: Any = None,
        relu: bool = False,
        workspace: Any = None,
        chosen: MmaTiles | None = None,
    ) -> None:
        """Queue the kernel, with the tiles that `tiles` says unless others are given."""
        chosen = chosen or tiles(conv)
        kernel = function(chosen, vectors_fit(conv, x, w))
        arguments = x, w, bias, y, sizes(conv), np.int32(relu)
        launch(kernel, chosen.grid(conv), chosen.threads, arguments, chosen.shared_bytes)


FORWARD = (MmaStep(4, "mma_nhwc", (("NHWC", "float16"),)),)
