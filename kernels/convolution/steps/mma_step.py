"""Step 4, implicit GEMM on the tensor cores by mma.sync: which tiles it takes, and its launch."""

import math
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.queued import VECTOR_BYTES, Queued, address
from kernels.convolution.common.sources import sizes
from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution
from warpcourse.bench.hopper import multiprocessors

DEPTH = 64  # of the tiles, BK in 4_mma_nhwc.cu
FP16 = (("NHWC", "float16"),)


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


def vectors_fit(conv: Convolution, *arrays: Any) -> bool:
    """Return whether eight channels of a group can be copied at once: a multiple of 8, and arrays at multiples of 16
    bytes."""
    return conv.c // conv.groups % 8 == 0 and address(*arrays) % VECTOR_BYTES == 0


@dataclass(frozen=True)
class MmaStep(Step):
    """4_mma_nhwc.cu."""

    def queued(
        self,
        x: Any,
        w: Any,
        y: Any,
        conv: Convolution,
        bias: Any = None,
        relu: bool = False,
        workspace: Any = None,
        chosen: MmaTiles | None = None,
    ) -> list[Queued]:
        """Return the one launch, with the tiles that were the fastest on an H100 unless others are given."""
        # The flat ones, where each multiprocessor gets two or more.
        chosen = chosen or (FLAT if FLAT.grid(conv) >= 2 * multiprocessors() else SMALL)
        entry = f"conv_mma_nhwc<{', '.join(map(str, astuple(chosen)))}, {str(vectors_fit(conv, x, w)).lower()}>"
        arguments = x, w, bias, y, sizes(conv), np.int32(relu)
        file = "steps/4_mma_nhwc.cu"
        return [Queued(file, entry, chosen.grid(conv), chosen.threads, arguments, chosen.shared_bytes)]


FORWARD = (MmaStep(4, "mma_nhwc", FP16),)
