"""Steps 2 and 3, the convolution as a float32 matrix product: over a matrix made by im2col, and without that matrix."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.convolution.common.queued import Queued
from kernels.convolution.common.sources import sizes
from kernels.convolution.common.step import Step
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.steps.direct import FP32

TILE = 64, 128  # filters and pixels that a block computes, BM and BN in tile_product.cuh
THREADS = 128
MAX_GRID_Y = 65535


def _grid(conv: Convolution) -> int:
    """Return blocks of both products."""
    pixels, filters, _ = conv.gemm
    return math.ceil(filters / TILE[0]) * math.ceil(pixels / TILE[1]) * conv.groups


@dataclass(frozen=True)
class Im2colStep(Step):
    """2_im2col.cu."""

    def workspace_bytes(self, conv: Convolution, dtype: Any) -> int:
        """Return bytes of the matrix of depth × pixels of all groups."""
        return 4 * conv.c * conv.r * conv.s * conv.gemm[0]

    def queued(
        self, x: Any, w: Any, y: Any, conv: Convolution, bias: Any = None, relu: bool = False, workspace: Any = None
    ) -> list[Queued]:
        """Return the launches of im2col and of the product."""
        columns = (self.workspace(conv, x.dtype) if workspace is None else workspace).view(np.float32)
        file, grid = "steps/2_im2col.cu", (math.ceil(conv.gemm[0] / THREADS), min(conv.c, MAX_GRID_Y))
        arguments = columns, w, bias, y, sizes(conv), np.int32(relu)
        return [
            Queued(file, "conv_im2col", grid, THREADS, (x, columns, sizes(conv))),
            Queued(file, "conv_im2col_product", _grid(conv), THREADS, arguments),
        ]


@dataclass(frozen=True)
class ImplicitGemmStep(Step):
    """3_implicit_gemm.cu."""

    def queued(
        self, x: Any, w: Any, y: Any, conv: Convolution, bias: Any = None, relu: bool = False, workspace: Any = None
    ) -> list[Queued]:
        """Return the one launch."""
        arguments = x, w, bias, y, sizes(conv), np.int32(relu)
        return [Queued("steps/3_implicit_gemm.cu", "conv_implicit_gemm", _grid(conv), THREADS, arguments)]


FORWARD = (Im2colStep(2, "im2col", FP32), ImplicitGemmStep(3, "implicit_gemm", FP32))
